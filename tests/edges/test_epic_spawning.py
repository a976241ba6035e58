"""Workers of an EPIC as processes: what they are given, and what keeps one away."""

from __future__ import annotations

import os
import signal
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.graph import RepositoryNode
from forge_actors.domain.epic.records import (
    ABSENT,
    Admission,
    Claim,
    EpicRef,
    RunKey,
)
from forge_actors.domain.epic.workers import NotStarted, WorkerOrder
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.epic.spawning import LOG_LIMIT, SpawnedWorkers
from forge_actors.edges.machine import lives, own_identity
from forge_actors.testing.epic.graph import HOME
from forge_actors.testing.epic.workers import MOMENT, NO_DIGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUE = 12
CLAIM = Claim(
    claim_id="c-00000001",
    generation=3,
    kind="start",
    run_key=RunKey(101, ISSUE),
    issue_id=9012,
    epic=EpicRef(7, 9007),
    invocation_id="i-00000001",
    admission=Admission(NO_DIGEST, NO_DIGEST, MOMENT),
    state_ref=ABSENT,
    supersedes=None,
    opened_at=MOMENT,
)
LOG = places.log(ISSUE, 3)
#: Seconds until a process is thought to hang.
SOON = 60.0

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="tells of descriptors by /proc"
)


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = FolderRoot(str(folder))
        self.locks = FileLocks(
            self.root, own_identity(), lives, check=lambda _root: None
        )

    @contextmanager
    def order(self) -> Iterator[WorkerOrder]:
        with (
            closing(self.locks.take_controller()) as controller,
            closing(self.locks.take_run(ISSUE)) as run,
        ):
            home = RepositoryNode(101, HOME)
            yield WorkerOrder(home, CLAIM, controller.share(), run.hand_off())

    def workers(self, *command: str, **environment: str) -> SpawnedWorkers:
        return SpawnedWorkers(
            self.root, str(self.folder), environment, lambda _order: command
        )

    @property
    def log(self) -> Path:
        return self.folder.joinpath(*LOG)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    with closing(made.root):
        yield made


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def inheritable() -> Iterator[None]:
    """A descriptor that every program that is started carelessly inherits."""
    with open(os.devnull) as file:
        os.set_inheritable(file.fileno(), True)
        yield


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


SHOW = """
/bin/ls -l /proc/$$/fd
echo "told=$TOLD home=$HOME"
read line || echo "nothing to read"
echo loud >&2
exit 3
"""


async def test_a_worker_has_both_locks_its_streams_and_nothing_else(
    place: Place,
) -> None:
    with inheritable(), place.order() as order:
        workers = place.workers("/bin/sh", "-c", SHOW, TOLD="yes")
        worker = await workers.start(order)
        with trio.fail_after(SOON):
            assert await worker.wait() == 3
    told = place.log.read_text().splitlines()
    shown = [line.rsplit(" ", 3) for line in told if " -> " in line]
    links = {number: target for _, number, _, target in shown}
    locks = {
        str(order.controller): str(place.folder),
        str(order.run): str(place.folder.joinpath(*places.run_lock(ISSUE))),
    }
    streams = {"0": "/dev/null", "1": str(place.log), "2": str(place.log)}
    assert links == {**streams, **locks}
    assert told[-3:] == ["told=yes home=", "nothing to read", "loud"]
    assert worker.log == str(place.log)


async def test_only_it_is_interrupted_and_its_end_is_seen(place: Place) -> None:
    ready = place.folder / "ready"
    os.mkfifo(ready)
    script = "trap 'exit 9' INT; echo > ready; while :; do sleep 0.05; done"
    with place.order() as order:
        worker = await place.workers("/bin/sh", "-c", script, PATH=os.defpath).start(
            order
        )
        assert os.getsid(worker.pid) == worker.pid != os.getsid(0)
        with trio.fail_after(SOON):
            await trio.to_thread.run_sync(ready.read_text)
            worker.interrupt()
            assert await worker.wait() == 9
        worker.interrupt()  # nobody is there any more


async def test_one_that_nobody_waits_for_goes_on(place: Place) -> None:
    with place.order() as order:
        worker = await place.workers("/bin/sleep", "1000").start(order)
        with trio.move_on_after(0):
            await worker.wait()
    pid = worker.pid
    os.kill(pid, 0)
    assert place.locks.is_busy(ISSUE)
    end(pid)
    assert not place.locks.is_busy(ISSUE)


@pytest.mark.parametrize("what", ["a link", "a folder", "too much"])
async def test_without_a_log_there_is_no_process(place: Place, what: str) -> None:
    place.log.parent.mkdir(parents=True)
    if what == "a link":
        place.log.symlink_to(place.folder / "elsewhere")
    elif what == "a folder":
        place.log.mkdir()
    else:
        place.log.touch()
        os.truncate(place.log, LOG_LIMIT)
    workers = place.workers("/bin/sh", "-c", "touch began")
    with place.order() as order:
        before = descriptors()
        with pytest.raises(NotStarted, match=r"3\.log") as refused:
            await workers.start(order)
        assert descriptors() == before
    assert refused.value.no_process
    assert not (place.folder / "began").exists()
    assert not (place.folder / "elsewhere").exists()


async def test_what_cannot_be_started_leaves_no_descriptor_open(place: Place) -> None:
    with place.order() as order:
        await trio.to_thread.run_sync(lambda: None)  # trio keeps some for its threads
        before = descriptors()
        for command in (("/nowhere/at/all",), ("/bin/sh", "\0")):
            with pytest.raises(NotStarted) as refused:
                await place.workers(*command).start(order)
            assert not refused.value.no_process
        for _ in range(20):
            worker = await place.workers("/bin/true").start(order)
            with trio.fail_after(SOON):
                assert await worker.wait() == 0
        assert descriptors() == before
