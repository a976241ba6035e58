"""A runtime whose home another one took over, although it was locked."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime import ownership
from forge_actors.runtime.readiness import Board
from forge_actors.runtime.runtime import STORE_FILE, Serving, open_served
from tests.edges.node_jobs import end_agent
from tests.runtime.control_kit import controlled
from tests.runtime.embedding_kit import (
    home,
    lasting,
    repo,
    start_sleeping,
)
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.ownership import Owner
    from forge_actors.runtime.handles import Runtime

__all__ = ["home", "lasting", "repo"]


async def _owned(*_: object) -> None:
    """Nobody is told."""
    await trio.lowlevel.checkpoint()


async def take_over(home: Path) -> Owner:
    """Do what a runtime does that the lock did not keep away."""
    async with open_store(
        home / STORE_FILE, repository_workers=1, overtake_after=1.0
    ) as store:
        process = ProcessIdentity("boot", 1, 2)
        return store.take_over("runtime_younger", process, "1.0", 5.0)


async def test_a_runtime_that_lost_its_home_ends_with_the_reason(
    home: Path, repo: Path, lasting: str
) -> None:
    refusals: list[WriterFenced] = []
    jobs: list[str] = []

    async def lose() -> None:
        async with running(home) as runtime:
            job = await start_sleeping(runtime, repo, lasting)
            jobs.append(job.id)
            assert (await take_over(home)).epoch == 2
            with pytest.raises(WriterFenced) as refused:
                await runtime.submit("app", ["true"])
            refusals.append(refused.value)
            await job.wait()

    with trio.fail_after(30), pytest.raises(WriterFenced) as caught:
        await lose()
    assert refusals == [caught.value]
    reason = "runtime_instance_fenced"
    assert str(caught.value) == f"WRITER_FENCED:scheduler_write:{reason}"
    # It saved nothing of how that job ended here: the other one has to find out.
    async with open_store(
        home / STORE_FILE, repository_workers=1, overtake_after=1.0
    ) as store:
        [(state, _)] = store.read("job_progress", *jobs)
        assert state in ("dispatched", "running")
        assert "runtime_stopped" not in {e.kind for e in store.events(0, 1000)}


async def test_an_owner_is_saved_before_anything_else(home: Path) -> None:
    for epoch in (1, 2, 3):
        async with running(home) as runtime:
            assert runtime.control._store.owner is not None
            assert runtime.control._store.owner.epoch == epoch
            assert runtime.control._store.owner.instance.startswith("runtime_")


_FENCED_SERVICE = """
import sys, trio
from pathlib import Path
from functools import partial
from forge_actors.edges.sqlite import store as module
from forge_actors.runtime import parts
from tests.runtime.test_fenced import take_over

home = Path(sys.argv[1])
start = parts.Parts.start

async def lose(self, *words, **more):
    mailbox = await start(self, *words, **more)
    await take_over(home)
    self._store.save([], lazy=True)
    return mailbox

parts.Parts.start = lose
from forge_actors.cli.main import main
sys.exit(main(["serve", "--home", str(home)]))
"""


async def test_a_service_that_lost_its_home_ends_with_the_status_of_one_replaced(
    home: Path,
) -> None:
    done = await trio.run_process(
        [sys.executable, "-c", _FENCED_SERVICE, str(home)],
        check=False,
        capture_stderr=True,
    )
    last = done.stderr.decode().splitlines()[-1]
    fenced = "WRITER_FENCED:scheduler_write:runtime_instance_fenced"
    assert (done.returncode, last) == (75, f"forge-actors: {fenced}")


async def test_an_attempt_that_was_replaced_in_the_store_has_no_say(
    tmp_path: Path,
) -> None:
    """Its end changes nothing of the job; the actor starts anew from what is saved."""
    async with controlled(tmp_path) as case:
        late = await case.hold()
        # As if somebody else had dispatched it once more.
        db = apsw.Connection(str(tmp_path / "home" / STORE_FILE))
        db.execute(
            "UPDATE job SET fence = fence + 10, attempt = 2 WHERE id = ?", (late,)
        )
        db.execute("UPDATE repository SET fence = fence + 10")
        db.close()
        await case.control.cancel(late)
        async for event in case.runtime.events(after=0):
            if event.kind == "write_refused":
                break
        assert (event.job, event.data["reason"]) == (late, "FENCING_TOKEN_STALE")
        assert (event.data["attempt"], event.data["fence"]) == (1, 1)
        with trio.fail_after(30):
            # The cancel was for the attempt that had no say, so the job goes on.
            assert (await case.control.job(late)).state != "cancelled"
            [view] = await case.end(late)
            assert (view.state, view.attempt >= 2) == ("cancelled", True)
            # And jobs go on to be run there, with larger fences than ever.
            [ended] = await case.control.wait([await case.submit()])
        assert ended.state == "succeeded"
        assert ended.fence is not None
        assert ended.fence > 11


class Gate:
    """A durable runtime of a home that is not locked, whose job waits for a word."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        text = "[pressure]\nmin_free_memory_mb = 64\nmax_load_per_cpu = 10000.0\n"
        (self.home / "settings.toml").write_text(text)
        self.repo = make_repository(folder / "app")
        self.fifo = folder / "fifo"
        os.mkfifo(self.fifo)
        self.ended = trio.Event()

    def open(self) -> AbstractAsyncContextManager[Runtime]:
        socket = str(self.home / "agent.sock")
        return open_served(self.home, Serving(lambda: socket, Board(), _owned))

    async def run(self, task_status: trio.TaskStatus[tuple[Runtime, str]]) -> None:
        """Run until another one has the home."""
        with pytest.raises(WriterFenced):
            await self._run(task_status)
        self.ended.set()

    async def _run(self, task_status: trio.TaskStatus[tuple[Runtime, str]]) -> None:
        async with self.open() as runtime:
            words = ["cat", str(self.fifo)]
            job = await runtime.submit(self.repo, words, replay="never")
            async for event in runtime.events(after=0):
                if event.kind == "job_running":
                    break
            task_status.started((runtime, job.id))
            await trio.sleep_forever()

    async def finish(self, runtime: Runtime, job: str) -> JobView:
        """Give the word; how the job ends."""
        async with await trio.open_file(self.fifo, "w"):
            pass
        [view] = await runtime.control.wait([job])
        runtime.control.ends_jobs = True
        return view


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    monkeypatch.setattr(ownership, "_lock", lambda _: True)
    opened = Gate(tmp_path)
    yield opened
    end_agent(opened.home)


async def test_a_runtime_without_anything_to_save_learns_it_from_the_node_agent(
    gate: Gate,
) -> None:
    async with trio.open_nursery() as nursery:
        _, job = await nursery.start(gate.run)
        async with gate.open() as younger:
            await gate.ended.wait()
            view = await gate.finish(younger, job)
    assert (view.state, view.attempt, view.exit_code) == ("succeeded", 1, 0)


async def test_a_runtime_that_lost_its_home_ends_nothing_that_runs(gate: Gate) -> None:
    """Although its actors fail with work in hand, before the other one is there."""
    async with trio.open_nursery() as nursery:
        older, job = await nursery.start(gate.run)
        await take_over(gate.home)
        with pytest.raises(WriterFenced):
            await older.submit(gate.repo, ["true"])
        await gate.ended.wait()
        async with gate.open() as younger:
            view = await gate.finish(younger, job)
    assert (view.state, view.attempt, view.exit_code) == ("succeeded", 1, 0)
