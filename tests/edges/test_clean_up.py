"""The clean-up: one contract for process and fake, and what only a process has."""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.cleaning import CLASSES
from forge_actors.domain.errors import CleanUpFailed
from forge_actors.domain.maintenance import CleanLimits
from forge_actors.edges.cleanup import process
from forge_actors.edges.cleanup.process import CleanUpProgram
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.testing.clean_up import FakeCleanUp
from forge_actors.testing.clean_up_contract import CHECKS, Noting, order
from tests.edges import behaving_program

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.testing.clean_up_contract import Check

PUT_LAST_IN_LINE = process._put_last_in_line
PROGRAM = (sys.executable, "-P", str(behaving_program.__file__))


def make_home(folder: Path, moments: dict[CleanClass, float]) -> str:
    with opened_alone(folder / "store.sqlite") as db:
        for name, at in moments.items():
            insert = "INSERT INTO clean_class (name, visited_at) VALUES (?, ?)"
            db.execute(insert, (name, at))
    return str(folder)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_program_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    def make(moments: dict[CleanClass, float]) -> tuple[CleanUpProgram, str]:
        home = make_home(tmp_path, moments)
        return CleanUpProgram(PROGRAM, overtime=1.0), home

    await check(make)
    assert not left_behind()


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_fake_keeps_the_contract(check: Check) -> None:
    await check(lambda moments: (FakeCleanUp(lambda: moments), "/home"))


#: A variable that a clean-up keeps; others on this machine have none of this value.
MARK = f"LC_OF_THIS_TEST={os.getpid()}.{secrets.token_hex(4)}"


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*MARK.split("="))
    # Where all of the machine is busy, the last in line waits for ever.
    monkeypatch.setattr(process, "_put_last_in_line", lambda _: None)


def left_behind() -> list[str]:
    """The processes of our clean-ups that are there still."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environ = (entry / "environ").read_bytes()
        except OSError:
            continue
        told = environ.split(b"\0")
        if b"FORGE_RUNTIME_MAINTENANCE_WORKER=1" in told and MARK.encode() in told:
            found.append(entry.name)
    return found


async def run(home: Path, limits: CleanLimits | None = None, **behave: str) -> Noting:
    books = Noting()
    clean_up = CleanUpProgram(PROGRAM, overtime=1.0)
    await clean_up.run(order(make_home(home, {}), limits, **behave), books)
    return books


async def test_it_is_alone_limited_and_last_in_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_SECRET", "hunter2")
    put: list[int] = []
    monkeypatch.setattr(process, "_put_last_in_line", put.append)
    report = tmp_path / "report"
    limits = CleanLimits(cpu_seconds=77, memory_bytes=300 << 20)
    lock = os.open(tmp_path / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    os.set_inheritable(lock, True)
    await run(tmp_path, limits, jobs=f"show:{report}")
    os.close(lock)
    told = report.read_text().splitlines()
    facts = dict(line.split(" ", 1) for line in told if not line.startswith("open"))
    assert facts["session"] == facts["pid"]
    assert put == [int(facts["pid"])]
    assert facts["data"] == str(300 << 20)
    assert facts["cpu"] == "77"
    assert facts["worker"] == "1"
    assert facts["secret"] == "None"
    ours = ("open pipe:", f"open {tmp_path}/store.sqlite", f"open {report}")
    opened = [line for line in told if line.startswith("open")]
    assert [line for line in opened if not line.startswith(ours)] == []


def test_who_is_last_in_line_lets_everybody_else_have_the_processor() -> None:
    """One that needs none itself, as it would not get any where all is busy."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as waits:
        PUT_LAST_IN_LINE(waits.pid)
        assert os.getpriority(os.PRIO_PROCESS, waits.pid) == 19
        waits.kill()


@pytest.mark.mock_clock
async def test_all_that_it_started_ends_with_it(tmp_path: Path) -> None:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, trio.testing.MockClock)
    clock.autojump_threshold = math.inf
    children = tmp_path / "children"
    os.mkfifo(children)

    async def take_too_long() -> None:
        with pytest.raises(CleanUpFailed, match=r"took too long .* in the class jobs"):
            await run(tmp_path, jobs=f"children:{children}")

    told = os.open(children, os.O_RDWR | os.O_NONBLOCK)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_too_long)
            pids = b""
            while pids.count(b"\n") < 2:
                await trio.lowlevel.wait_readable(told)
                pids += os.read(told, 100)
            clock.jump(2 * CleanLimits().seconds)
    finally:
        os.close(told)
    assert not left_behind()


async def test_one_that_takes_too_much_memory_is_a_failure(tmp_path: Path) -> None:
    limits = CleanLimits(memory_bytes=200 << 20)
    books = await run(tmp_path, limits, jobs="memory:1000")
    report = next(each for each in books.reports if each.clean_class == "jobs")
    assert (report.failed, report.error) == (1, "MemoryError: ")
    assert books.visits == list(CLASSES)


async def test_one_that_spins_is_ended(tmp_path: Path) -> None:
    # By the system; on a busy machine it has not used up its second before its time.
    how = "(was ended by SIGXCPU|took too long and was ended) in the class logs"
    with pytest.raises(CleanUpFailed, match=how):
        await run(tmp_path, CleanLimits(seconds=10, cpu_seconds=1), logs="spin")


async def test_what_is_printed_by_accident_is_not_taken_for_talk(
    tmp_path: Path,
) -> None:
    books = await run(tmp_path, jobs="babble")
    assert books.visits == list(CLASSES)


async def test_what_it_complains_of_last_is_told(tmp_path: Path) -> None:
    with pytest.raises(CleanUpFailed, match=r"class jobs: something went wrong$"):
        await run(tmp_path, jobs="crash")


@pytest.mark.parametrize(
    "said", ["not json", '{"op":"forget_jobs","jobs":[1]}', '{"op":"nothing"}']
)
async def test_one_that_is_not_understood_is_ended(tmp_path: Path, said: str) -> None:
    script = "import sys,time; print(sys.argv[1], flush=True); time.sleep(1000)"
    clean_up = CleanUpProgram((sys.executable, "-c", script, said))
    with pytest.raises(CleanUpFailed, match="is not understood"):
        await clean_up.run(order(str(tmp_path)), Noting())
    assert not left_behind()


async def test_one_that_says_too_much_is_ended(tmp_path: Path) -> None:
    script = "while True: print('x' * 65536, end='')"
    clean_up = CleanUpProgram((sys.executable, "-c", script))
    with pytest.raises(CleanUpFailed, match="says too much"):
        await clean_up.run(order(str(tmp_path)), Noting())


async def test_one_that_goes_on_and_on_is_ended(tmp_path: Path) -> None:
    said = '{"op":"visiting","clean_class":"logs"}'
    report = '{"op":"visited","report":{"clean_class":"logs"}}'
    script = f"import sys\nwhile True: print({said!r}), print({report!r}, flush=True)"
    clean_up = CleanUpProgram((sys.executable, "-c", script))
    with pytest.raises(CleanUpFailed, match="begins anew"):
        await clean_up.run(order(str(tmp_path)), Noting())


async def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(CleanUpFailed, match="could not be started: No such file"):
        await CleanUpProgram(("/nothing/there",)).run(order(str(tmp_path)), Noting())


_OWNER = """
import sys, trio
from forge_actors.domain.maintenance import CleanLimits
from forge_actors.edges.cleanup.process import CleanUpProgram
from forge_actors.testing.clean_up_contract import Noting, order

class Telling(Noting):
    async def visiting(self, name):
        print(name, flush=True)

async def main():
    clean_up = CleanUpProgram(tuple(sys.argv[3:]))
    await clean_up.run(order(sys.argv[1], jobs=sys.argv[2]), Telling())

trio.run(main)
"""


@pytest.mark.parametrize("how", ["hang", "spin"])
async def test_it_ends_with_an_owner_that_is_killed(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", _OWNER, make_home(tmp_path, {}), how, *PROGRAM]
    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
        owner: trio.Process = await nursery.start(start)
        assert owner.stdout is not None
        assert (await owner.stdout.receive_some()).startswith(b"jobs")
        [pid] = left_behind()
        fd = os.pidfd_open(int(pid))
        owner.kill()
        with trio.fail_after(30):
            await trio.lowlevel.wait_readable(fd)
        os.close(fd)
