"""The repository actor: saved, then acted on; restarted from what was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.launch import Receipt, WorkerExited
from forge_actors.testing.launcher import FakeLauncher, Outcome
from tests.actors.kit import BROKEN, WRITE, limits, world

if TYPE_CHECKING:
    from pathlib import Path

from tests.actors.repository_kit import memory

pytestmark = pytest.mark.mock_clock


# One job


async def test_a_job_runs_from_acceptance_to_its_end(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        assert made.running == ["a"]
        await trio.sleep(1)  # the start is saved lazily
        assert made.states() == {"a": "running"}
        await made.finish("a")
        assert made.states() == {"a": "succeeded"}
        assert made.launcher.forgotten == [("a", 1)]
        assert (await made.survey()).tokens["workers"].used == 0
        order = made.launcher.orders[0]
        assert (order.repo, order.attempt, order.fence) == ("repo", 1, 1)
        moves = [kind for kind in made.events() if kind.startswith("job_")]
    assert moves == ["job_queued", "job_dispatched", "job_running", "job_succeeded"]


async def test_a_failed_job_keeps_its_reason(tmp_path: Path) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome(exit_code=3))
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a"))
        assert made.states() == {"a": "failed"}
        [(error,)] = made.store.reader.execute("SELECT error FROM job").fetchall()
        assert "EXIT_NONZERO" in error


async def test_nothing_is_launched_before_its_dispatch_is_durable() -> None:
    async with world() as made:
        store = memory(made)
        await made.save(made.job("a"))
        store.hold("repo")
        await made.open()
        await trio.sleep(600)
        assert made.launched == []
        assert store.load_jobs("repo")[0].state == "dispatched"
        assert store.durable.jobs["a"].state == "queued"
        assert (await made.survey()).tokens["workers"].jobs == ("a",)
        store.release("repo")
        await trio.testing.wait_all_tasks_blocked()
        assert made.launched == ["a"]
        assert store.durable.jobs["a"].state == "dispatched"


async def test_the_launcher_forgets_only_what_is_durable() -> None:
    async with world() as made:
        await made.submit(made.job("a"))
        memory(made).hold("repo")
        await made.finish("a")
        assert made.launcher.forgotten == []
        memory(made).release("repo")
        await trio.testing.wait_all_tasks_blocked()
        assert made.launcher.forgotten == [("a", 1)]


async def test_fences_of_one_repository_only_grow(tmp_path: Path) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(*(made.job(f"a{n}") for n in range(5)))
    async with world(
        tmp_path, launcher=FakeLauncher(auto=lambda _: Outcome())
    ) as again:
        await again.submit(again.job("b"))
        assert again.launcher.orders[0].fence == 6
    fences = sorted(order.fence for order in launcher.orders)
    assert fences == [1, 2, 3, 4, 5]


async def test_an_exit_of_an_older_attempt_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", replay="safe"))
        made.launcher.finish("a", signal="SIGKILL")  # someone else's signal
        await trio.testing.wait_all_tasks_blocked()
        assert [attempt.key for attempt in made.launcher.running] == [("a", 2)]
        late = Receipt("a", 1, 1, "exit", 1.0, exit_code=0)
        (await made.open()).tell(WorkerExited("a", 1, late))
        await trio.testing.wait_all_tasks_blocked()
        assert made.running == ["a"]
        assert made.states()["a"] != "succeeded"
        await made.finish("a")
        assert made.states() == {"a": "succeeded"}


async def test_claims_that_conflict_are_never_held_together(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(*(made.job(f"a{n}", claims=WRITE) for n in range(4)))
        for number in range(4):
            assert made.running == [f"a{number}"]
            await made.finish(f"a{number}")
        assert set(made.states().values()) == {"succeeded"}


async def test_a_grant_without_a_job_that_fits_goes_back(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("first"))
        await made.submit(made.job("a", claims=WRITE))
        # The only job is cancelled in the moment in which its tokens become free.
        actor = await made.open()
        made.launcher.finish("first")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.cancel, "a")
            await trio.testing.wait_all_tasks_blocked()
        assert made.states()["a"] == "cancelled"
        survey = await made.survey()
        assert survey.tokens["workers"].used == 0
        assert survey.waiting == 0
        assert actor is await made.open()


# Cancelling


async def test_a_waiting_job_is_cancelled_when_that_is_durable() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        memory(made).hold("repo")
        answers: list[bool] = []
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                answers.append(await made.cancel("b"))

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
            memory(made).release("repo")
        assert answers == [False]
        assert made.states()["b"] == "cancelled"
        await made.finish("a")
        assert made.launched == ["a"]


async def test_a_running_job_is_cancelled_once_its_tree_is_gone(tmp_path: Path) -> None:
    async with world(tmp_path, launcher=FakeLauncher(obeys_stop=False)) as made:
        await made.submit(made.job("a"))
        assert await made.cancel("a")
        assert made.running == ["a"]
        await made.finish("a", signal="SIGTERM", ending="stop")
        assert made.states() == {"a": "cancelled"}


async def test_a_job_that_succeeds_in_spite_of_its_cancel_has_succeeded(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, launcher=FakeLauncher(obeys_stop=False)) as made:
        await made.submit(made.job("a"))
        await made.cancel("a")
        await made.finish("a")
        assert made.states() == {"a": "succeeded"}


async def test_a_job_is_cancelled_between_its_dispatch_and_its_launch() -> None:
    async with world() as made:
        await made.save(made.job("a"))
        memory(made).hold("repo")
        await made.open()
        await trio.testing.wait_all_tasks_blocked()
        assert await made.cancel("a")
        memory(made).release("repo")
        await trio.testing.wait_all_tasks_blocked()
        assert made.launched == []
        assert made.states() == {"a": "cancelled"}
        assert (await made.survey()).tokens["workers"].used == 0


async def test_cancelling_what_has_ended_changes_nothing(tmp_path: Path) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a"))
        assert not await made.cancel("a")
        assert made.states() == {"a": "succeeded"}


async def test_an_asker_that_left_does_not_stop_its_cancel(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        actor = await made.open()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(made.cancel, "b")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["b"] == "cancelled"
        assert actor is await made.open()


# Dependencies


async def test_a_job_starts_when_what_it_runs_after_has_succeeded(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, repos=("up", "down")) as made:
        await made.submit(
            made.job("first", "up"),
            made.job("second", "down", after=("first",)),
            made.job("third", "up", after=("second", "first")),
        )
        assert made.running == ["first"]
        waits = await made.explain("second", "down")
        assert waits is not None
        assert waits.state == "waiting_for_dependency"
        await made.finish("first")
        assert made.running == ["second"]
        await made.finish("second")
        assert made.running == ["third"]


async def test_a_job_can_never_start_when_what_it_runs_after_failed(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, repos=("up", "down")) as made:
        await made.submit(
            made.job("first", "up"),
            made.job("second", "down", after=("first",)),
            made.job("third", "up", after=("second",)),
        )
        await made.finish("first", exit_code=1)
        assert made.states() == {
            "first": "failed",
            "second": "human_attention_required",
            "third": "human_attention_required",
        }


async def test_a_dependency_that_ended_while_nobody_was_awake_counts(
    tmp_path: Path,
) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    async with world(tmp_path, repos=("up", "down"), launcher=launcher) as made:
        await made.submit(made.job("first", "up"))
        await made.submit(made.job("second", "down", after=("first",)))
        assert made.launched == ["first", "second"]


# Crashes


async def test_a_crashed_actor_comes_back_with_its_jobs(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"), made.job("c", after=("b",)))
        await made.crash()
        assert made.running == ["a"]
        assert made.launcher.stops == []
        await made.finish("a", exit_code=3)
        assert made.states()["a"] == "failed"
        assert made.running == ["b"]
        await made.finish("b")
        await made.finish("c")
        assert made.states()["c"] == "succeeded"
        assert (await made.survey()).tokens["workers"].used == 0


async def test_an_interruption_repeats_what_is_safe_to_repeat(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", replay="safe", max_attempts=2))
        await made.finish("a", signal="SIGKILL")
        assert [attempt.key for attempt in made.launcher.running] == [("a", 2)]
        await made.finish("a", signal="SIGKILL")
        assert made.states() == {"a": "failed"}
        [(error,)] = made.store.reader.execute("SELECT error FROM job").fetchall()
        assert "all 2 attempts are used" in error


async def test_an_exit_behind_the_crash_is_not_lost(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        actor = await made.open()
        actor.tell(BROKEN)
        made.launcher.finish("a")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "succeeded"}


async def test_an_exit_that_the_crash_leaves_unread_is_not_lost(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        actor = await made.open()
        [attempt] = made.launcher.running
        made.launcher.finish("a")
        assert attempt.receipt is not None
        actor.tell(BROKEN)
        actor.tell(WorkerExited("a", 1, attempt.receipt))
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "succeeded"}


async def test_an_exit_just_before_the_crash_is_not_lost(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        actor = await made.open()
        [attempt] = made.launcher.running
        made.launcher.finish("a")
        receipt = attempt.receipt
        assert receipt is not None
        # Both in one batch: what was handled before the bug stays done.
        actor.tell(WorkerExited("a", 1, receipt))
        actor.tell(BROKEN)
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "succeeded"}


async def test_a_crash_before_the_launch_has_launched_nothing() -> None:
    async with world() as made:
        await made.save(made.job("a"))
        memory(made).hold("repo")
        await made.open()
        await trio.testing.wait_all_tasks_blocked()
        assert memory(made).load_jobs("repo")[0].state == "dispatched"
        (await made.open()).tell(BROKEN)
        await trio.testing.wait_all_tasks_blocked()
        memory(made).release("repo")
        await trio.testing.wait_all_tasks_blocked()
        # It certainly never ran, so it may run now, whatever its replay policy is.
        assert made.running == ["a"]
        survey = await made.survey()
        assert survey.tokens["workers"].used == 1
        await made.finish("a")
        assert (await made.survey()).tokens["workers"].used == 0
