"""The repository actor: failures, deadlines and sleep."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors import repository, supervisor
from forge_actors.actors.repository import LINGER_SECONDS
from forge_actors.domain.errors import ActorStopped, MailboxClosed
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.testing.launcher import FakeLauncher, Outcome
from tests.actors.kit import BROKEN, WRITE, limits, world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mock_clock


async def test_a_crash_in_the_batch_of_a_grant_loses_no_token(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("first"))
        await made.submit(made.job("a"), made.job("b"))
        actor = await made.open()
        made.launcher.finish("first")
        # The grant for `a` is on its way when the bug strikes.
        while (await made.survey()).tokens["workers"].jobs == ("first",):
            pass
        actor.tell(BROKEN)
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(30)
        assert len(made.running) == 1
        for _ in range(2):
            if made.running:
                await made.finish(*made.running)
        survey = await made.survey()
        assert survey.tokens["workers"].used == 0
        assert survey.active_repositories == 0


async def test_who_asks_a_crashing_actor_is_told(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        actor = await made.open()
        failures: list[type] = []

        async def ask() -> None:
            try:
                await actor.ask(lambda reply: repository.Explain(("a",), reply))
            except ActorStopped as error:
                failures.append(type(error))

        async with trio.open_nursery() as nursery:
            actor.tell(BROKEN)
            nursery.start_soon(ask)
            nursery.start_soon(ask)
        assert len(failures) == 2


async def test_starting_decides_what_nobody_watched(tmp_path: Path) -> None:
    jobs = {
        "exited": ("running", {}),
        "unknown": ("running", {}),
        "repeatable": ("running", {"replay": "safe"}),
        "unlaunched": ("dispatched", {}),
        "waits": ("queued", {}),
    }
    async with world(tmp_path, started=False) as made:
        for number, (name, (state, fields)) in enumerate(jobs.items(), start=1):
            await made.save(made.job(name, **fields))
            if state != "queued":
                made.store._db.execute(
                    "UPDATE job SET state = ?, attempt = 1, fence = ?,"
                    " dispatched_at = 1.0 WHERE id = ?",
                    (state, number, name),
                )
    receipt = Receipt(
        "exited",
        1,
        1,
        "exit",
        5.0,
        started_at=1.0,
        identity=ProcessIdentity("boot", 1, 1),
        exit_code=0,
    )
    stale = Receipt("unknown", 7, 1, "exit", 5.0, exit_code=0)
    unclaimed = {("exited", 1): receipt, ("unknown", 7): stale}
    async with world(tmp_path, unclaimed=unclaimed) as made:
        await trio.sleep(1)
        assert made.states() == {
            "exited": "succeeded",
            "unknown": "human_attention_required",
            "repeatable": "running",
            "unlaunched": "running",
            "waits": "running",
        }
        attempts = {a.order.job: a.order.attempt for a in made.launcher.running}
        assert attempts == {"repeatable": 2, "unlaunched": 2, "waits": 1}
        assert made.unclaimed == {("unknown", 7): stale}


# Time and sleep


async def test_a_queue_budget_that_runs_out_ends_the_job(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"))
        await made.submit(made.job("b", queue_budget=90.0), made.job("c"))
        await trio.sleep(89.5)
        assert made.states()["b"] == "queued"
        await trio.sleep(1)
        assert made.states()["b"] == "timed_out"
        await made.finish("a")
        assert made.running == ["c"]


async def test_a_queue_budget_stands_still_while_a_dependency_holds_the_job(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=2)) as made:
        await made.submit(made.job("a"), made.job("blocker"))
        await made.submit(made.job("b", queue_budget=90.0, after=("a",)))
        await trio.sleep(1000)
        assert made.states()["b"] == "waiting_for_dependency"
        await made.submit(made.job("urgent", priority=0))
        await made.finish("a")
        assert set(made.running) == {"blocker", "urgent"}
        await trio.sleep(89)
        assert made.states()["b"] == "queued"
        await trio.sleep(2)
        assert made.states()["b"] == "timed_out"


async def test_a_requeued_job_has_its_whole_queue_budget_again(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a", queue_budget=90.0, replay="safe", priority=4))
        await trio.sleep(80)
        await made.submit(made.job("b", priority=0))
        await made.finish("a", signal="SIGKILL")
        assert made.running == ["b"]
        await trio.sleep(60)
        assert made.states()["a"] == "queued"
        await trio.sleep(40)
        assert made.states()["a"] == "timed_out"


async def test_a_repository_without_jobs_falls_asleep_and_wakes(tmp_path: Path) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a"))
        assert (await made.survey()).awake == 1
        await trio.sleep(LINGER_SECONDS + 1)
        assert (await made.survey()).awake == 0
        await made.submit(made.job("b"))
        assert made.states() == {"a": "succeeded", "b": "succeeded"}


async def test_a_job_submitted_while_its_repository_falls_asleep_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("first"))
        actor = await made.open()
        discard = repository.Inbox.close
        late = [made.job("late")]

        def close(inbox: repository.Inbox[object]) -> list[object]:
            rest = discard(inbox)
            while late:  # saved in the very moment in which the actor ends
                job = late.pop()
                made.store.save([made.added(job)])
                made.mailbox.tell(supervisor.Submitted("repo", (job,)))
            return rest

        monkeypatch.setattr(repository.Inbox, "close", close)
        await trio.sleep(LINGER_SECONDS + 1)
        assert late == []
        assert actor is not await made.open()
        assert made.states() == {"first": "succeeded", "late": "succeeded"}


async def test_a_message_in_the_moment_of_falling_asleep_is_handled(
    tmp_path: Path,
) -> None:
    # Which task of one turn runs first is chance: many repositories see every order.
    repos = tuple(f"r{number}" for number in range(16))
    async with world(tmp_path, repos=repos) as made:
        actors = [await made.open(repo) for repo in repos]
        await trio.sleep(LINGER_SECONDS)
        for actor in actors:
            with suppress(MailboxClosed):
                actor.tell(repository.Pass())
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        assert (await made.survey()).awake == 0


async def test_a_disabled_repository_starts_nothing_new(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        actor = await made.open()
        actor.tell(repository.SetEnabled(enabled=False))
        await made.finish("a")
        assert made.running == []
        assert made.states()["a"] == "succeeded"
        waits = await made.explain("b")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.kind == "disabled"
        assert (await made.survey()).waiting == 0
        await trio.sleep(600)
        assert made.running == []
        actor.tell(repository.SetEnabled(enabled=True))
        await trio.testing.wait_all_tasks_blocked()
        assert made.running == ["b"]


async def test_a_repository_disabled_in_the_store_starts_nothing(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, repos=(), started=False) as made:
        await made.add_repository("repo", enabled=False)
        await made.save(made.job("a"))
    async with world(tmp_path) as made:
        await trio.sleep(100)
        assert made.launched == []
        assert made.states() == {"a": "queued"}


async def test_a_job_that_was_loaded_is_not_taken_in_twice(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        job = made.job("a")
        await made.submit(job)
        (await made.open()).tell(repository.Enqueue((job,)))
        await trio.testing.wait_all_tasks_blocked()
        assert made.launched == ["a"]


async def test_a_job_that_was_loaded_and_ended_at_once_does_not_end_twice(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        await made.finish("a", exit_code=1)
        await trio.sleep(10)
        # Its actor sleeps: it is woken, loads the job, and is told of it then.
        await made.submit(made.job("b", after=("a",)))
        assert made.states()["b"] == "human_attention_required"
        assert made.events().count("job_human_attention_required") == 1


async def test_what_waiting_jobs_wait_for_is_saved_at_the_safety_pass(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE), made.job("b", claims=WRITE))
        assert made.states()["b"] == "queued"
        await trio.sleep(6)
        assert made.states()["b"] == "waiting_for_workspace"
        waits = await made.explain("b")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.holders == ("a",)
        await made.finish("a")
        assert made.running == ["b"]
