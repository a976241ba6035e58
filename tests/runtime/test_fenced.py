"""A runtime whose home another one took over, although it was locked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.runtime import STORE_FILE
from tests.runtime.control_kit import controlled
from tests.runtime.embedding_kit import (
    home,
    lasting,
    repo,
    start_sleeping,
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.ownership import Owner

__all__ = ["home", "lasting", "repo"]


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

    with trio.fail_after(10), pytest.raises(WriterFenced) as caught:
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

async def lose(self, *words):
    mailbox = await start(self, *words)
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
        with trio.fail_after(10):
            # The cancel was for the attempt that had no say, so the job goes on.
            assert (await case.control.job(late)).state != "cancelled"
            [view] = await case.end(late)
            assert (view.state, view.attempt >= 2) == ("cancelled", True)
            # And jobs go on to be run there, with larger fences than ever.
            [ended] = await case.control.wait([await case.submit()])
        assert ended.state == "succeeded"
        assert ended.fence is not None
        assert ended.fence > 12
