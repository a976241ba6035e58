"""Holds, pauses and edits through the actors, with a launcher that starts nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors import repository, supervisor
from forge_actors.actors.repository_messages import EditJob
from forge_actors.actors.tokens import Grant
from forge_actors.domain.edits import Edit
from forge_actors.domain.errors import Outdated, Refused
from forge_actors.edges.sqlite.store import SqliteStore
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import limits, world
from tests.actors.repository_kit import memory

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_held_job_starts_only_when_it_is_let_go() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("first"), made.job("second"), made.job("third"))
        await made.steer("second", "hold")
        await made.finish("first")
        assert made.running == ["third"]
        await made.finish("third")
        assert made.running == []
        await made.steer("second", "unhold")
        await trio.testing.wait_all_tasks_blocked()
        assert made.running == ["second"]
        kinds = made.events()
        assert kinds.index("job_held") < kinds.index("job_unheld")


async def test_a_hold_outlives_the_actor_and_the_runtime(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("first"), made.job("second"))
        await made.steer("second", "hold")
        await made.crash()
        await made.finish("first")
        assert made.running == []
    async with world(tmp_path) as made:
        assert made.running == []
        waits = await made.explain("second")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.kind == "pause"


async def test_what_has_ended_or_is_being_stopped_cannot_be_steered() -> None:
    async with world(launcher=FakeLauncher(obeys_stop=False)) as made:
        await made.submit(made.job("a"), made.job("stays"))
        await made.cancel("a")
        with pytest.raises(Refused, match="job a is being stopped"):
            await made.steer("a", "pause")
        await made.finish("a", ending="stop", signal="SIGTERM")
        with pytest.raises(Refused, match="job a has ended"):
            await made.steer("a", "pause")
        with pytest.raises(Refused, match="job a has ended"):
            await made.edit("a", Edit(priority=0))
        await made.finish("stays")


async def test_a_paused_job_stands_still_and_keeps_its_token() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        await made.steer("a", "pause")
        assert made.paused == ["a"]
        assert made.running == ["a"]
        assert (await made.survey()).tokens["workers"].used == 1
        with pytest.raises(Refused, match="runs: hold is for jobs that wait"):
            await made.steer("a", "hold")
        await made.steer("a", "resume")
        assert made.paused == []


async def test_a_job_that_is_paused_before_it_is_launched_begins_so() -> None:
    async with world() as made:
        job = made.job("a")
        await made.save(job)
        # Its dispatch does not become durable, so nothing is launched.
        memory(made).hold("repo")
        made.mailbox.tell(supervisor.Submitted("repo", (job,)))
        await trio.testing.wait_all_tasks_blocked()
        assert made.launched == []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.steer, "a", "pause")
            await trio.testing.wait_all_tasks_blocked()
            memory(made).release("repo")
        await trio.testing.wait_all_tasks_blocked()
        assert made.paused == ["a"]


async def test_a_cancelled_job_that_was_paused_ends() -> None:
    """P-08: the launcher continues what it stops."""
    async with world() as made:
        await made.submit(made.job("a"))
        await made.steer("a", "pause")
        await made.cancel("a")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "cancelled"}


async def test_a_stop_of_the_runtime_ends_what_is_paused() -> None:
    """P-08: one job by itself, the other by a pause of everything."""
    async with world() as made:
        await made.submit(made.job("a"), made.job("b", replay="safe"))
        await made.steer("b", "pause")
        await made.pause("all", jobs=True)
        assert set(made.paused) == {"a", "b"}
        await made.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "human_attention_required", "b": "queued"}
        assert memory(made).durable.jobs["b"].held_at is not None


@pytest.mark.parametrize("scope", ["all", "repo", "provider:local"])
async def test_nothing_new_starts_where_there_is_a_pause(scope: str) -> None:
    async with world(limits=limits(workers=1, local=1)) as made:
        await made.submit(made.job("runs", provider="local"))
        await made.pause(scope)
        assert made.running == ["runs"]
        assert made.paused == []
        await made.submit(made.job("waits", provider="local"))
        await made.finish("runs")
        assert made.running == []
        waits = await made.explain("waits")
        assert waits is not None
        assert waits.waiting is not None
        assert (waits.state, waits.waiting.kind) == ("queued", "pause")
        await made.pause(scope, on=False)
        assert made.running == ["waits"]
        kinds = [kind for kind in made.events() if kind in ("paused", "resumed")]
        assert kinds == ["paused", "resumed"]


async def test_a_paused_provider_leaves_the_other_jobs_alone() -> None:
    async with world(repos=("repo", "other"), limits=limits(local=2)) as made:
        await made.pause("provider:local")
        await made.submit(
            made.job("a", provider="local"), made.job("b", "other"), made.job("c")
        )
        assert set(made.running) == {"b", "c"}


@pytest.mark.parametrize("scope", ["all", "repo", "provider:local"])
async def test_pauses_outlive_the_runtime(tmp_path: Path, scope: str) -> None:
    providers = limits(local=1)
    async with world(tmp_path, limits=providers) as made:
        await made.pause(scope)
        await made.submit(made.job("a", provider="local"))
        assert made.running == []
    async with world(tmp_path, limits=providers) as made:
        assert made.running == []
        await made.pause(scope, on=False)
        assert made.running == ["a"]
    async with world(tmp_path, limits=providers) as made:
        await made.submit(made.job("b", provider="local"))
        assert made.running == ["b"]


@pytest.mark.parametrize("scope", ["all", "repo", "provider:local"])
async def test_running_jobs_are_suspended_only_if_asked_for(scope: str) -> None:
    async with world(limits=limits(local=2)) as made:
        await made.submit(made.job("a", provider="local"), made.job("b"))
        await made.pause(scope)
        assert made.paused == []
        await made.pause(scope, jobs=True)
        covered = {"a"} if scope == "provider:local" else {"a", "b"}
        assert set(made.paused) == covered
        await made.steer("a", "pause")
        await made.pause(scope, on=False)
        assert made.paused == ["a"], "this one was paused by itself"
        await made.pause(scope, on=False, jobs=True)
        assert made.paused == []


@pytest.mark.parametrize("turns", range(8))
async def test_a_job_that_is_offered_when_a_pause_begins_does_not_start_after_it(
    turns: int,
) -> None:
    """Wherever its grant is: no dispatch follows the pause in the event log."""
    async with world() as made:
        job = made.job("a")
        await made.save(job)
        made.mailbox.tell(supervisor.Submitted("repo", (job,)))
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        await made.pause("all")
        kinds = made.events()
        assert "job_dispatched" not in kinds[kinds.index("paused") :]
        await made.pause("all", on=False)
        assert made.running == ["a"]


async def test_a_withdrawn_grant_goes_back_unused() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        returned: list[object] = []
        grant = Grant("g", "repo", ("workers",), returned.append)
        grant.withdrawn = True
        (await made.open()).tell(repository.Granted(grant))
        await trio.testing.wait_all_tasks_blocked()
        assert len(returned) == 1
        assert made.launched == ["a"]


@pytest.mark.mock_clock
async def test_a_queue_budget_stands_still_under_a_pause_of_everything() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b", queue_budget=60.0))
        await made.pause("all")
        await trio.sleep(600)
        assert made.states()["b"] == "queued"
        await made.pause("all", on=False)
        await trio.sleep(59)
        assert made.states()["b"] == "queued"
        await trio.sleep(2)
        assert made.states()["b"] == "timed_out"


async def test_an_edited_job_is_offered_at_its_new_place(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("first"), made.job("second"), made.job("third"))
        await made.edit("third", Edit(priority=0, timeout=5.0, labels=("x",)))
        await made.finish("first")
        assert made.running == ["third"]
        assert "job_edited" in made.events()
    async with world(tmp_path, started=False) as made:
        [job] = [j for j in made.store.load_jobs("repo") if j.id == "third"] or [None]
        assert job is None or job.priority == 0
        assert made.store.spec("third").budgets.execution == 5.0


async def test_of_two_edits_of_the_same_record_at_once_one_is_made(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("first"), made.job("second"))
        actor, store = await made.open(), made.store
        assert isinstance(store, SqliteStore)
        read = store.read_pending("view_job", "second")
        problems: list[str] = []

        async def edit(label: str) -> None:
            wanted = partial(EditJob, "second", Edit(labels=(label,)))
            try:
                await actor.ask(
                    lambda reply: wanted(
                        reply, lambda: store.read_pending("view_job", "second") == read
                    )
                )
            except Outdated as error:
                problems.append(str(error))

        async with trio.open_nursery() as nursery:
            for label in ("one", "other"):
                nursery.start_soon(edit, label)
        assert problems == [
            "job second is not as it was when it was read: read it again"
        ]
        assert made.events().count("job_edited") == 1
