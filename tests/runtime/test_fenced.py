"""A runtime whose home another one took over, although it was locked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.runtime import STORE_FILE
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
