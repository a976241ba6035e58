"""Jobs that run again, and what tells of an attempt that was another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import supervisor
from forge_actors.actors.signs import LEASE_SECONDS
from forge_actors.domain.backoff import Backoff
from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.changes import JobDelegated
from forge_actors.domain.events import Event
from forge_actors.domain.launch import Receipt, WorkerExited
from forge_actors.testing.launcher import FakeLauncher, Outcome
from tests.actors.kit import WRITE, limits, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock

BACKOFF = Backoff(first=10.0, longest=60.0)


def attempts(made: World) -> list[tuple[str, int]]:
    return [attempt.key for attempt in made.launcher.running]


async def test_an_interrupted_job_runs_again_when_its_delay_is_over(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, backoff=BACKOFF, limits=limits(workers=1)) as made:
        await made.submit(made.job("a", replay="safe", claims=WRITE))
        await made.finish("a", signal="SIGKILL")
        assert made.states() == {"a": "waiting_for_retry"}
        waits = await made.explain("a")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.until == made.clock.now() + BACKOFF.delay("a", 1)
        # It stands in nobody's way meanwhile.
        await made.submit(made.job("b", claims=WRITE))
        await made.finish("b")
        await trio.sleep(BACKOFF.delay("a", 1) - 0.1)
        assert made.running == []
        await trio.sleep(0.2)
        assert attempts(made) == [("a", 2)]
        await made.finish("a", signal="SIGKILL")
        await trio.sleep(BACKOFF.delay("a", 2) + 0.1)
        assert attempts(made) == [("a", 3)]
        await made.finish("a", signal="SIGKILL")
        assert made.states()["a"] == "failed"


async def test_what_outlives_many_leases_is_started_once(tmp_path: Path) -> None:
    """D-03: a lease is shorter than the run, and than the delay before the next."""
    far = Backoff(first=20 * LEASE_SECONDS, longest=20 * LEASE_SECONDS)
    async with world(tmp_path, backoff=far) as made:
        await made.submit(made.job("late", replay="safe"))
        await made.finish("late", signal="SIGKILL")
        due = far.delay("late", 1)
        assert due > 10 * LEASE_SECONDS
        await made.submit(made.job("long", claims=WRITE))
        await trio.sleep(due - 1)
        assert attempts(made) == [("long", 1)]
        await trio.sleep(2)
        assert attempts(made) == [("long", 1), ("late", 2)]
        await trio.sleep(20 * LEASE_SECONDS)
        made.launcher.fall_silent()  # neither does a lease that nobody confirms
        await trio.sleep(20 * LEASE_SECONDS)
        started = [(order.job, order.attempt) for order in made.launcher.orders]
        assert started == [("late", 1), ("long", 1), ("late", 2)]


async def test_a_job_of_its_own_failure_comes_back_as_often_as_it_may(
    tmp_path: Path,
) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome(exit_code=3))
    async with world(tmp_path, backoff=BACKOFF, launcher=launcher) as made:
        await made.submit(made.job("a", replay="always", exit_attempts=3))
        began = trio.current_time()
        while made.states()["a"] == "waiting_for_retry":
            await trio.sleep(1)
        assert trio.current_time() - began >= sum(BACKOFF.delay("a", n) for n in (1, 2))
        assert made.states() == {"a": "failed"}
        assert [order.attempt for order in launcher.orders] == [1, 2, 3]


async def test_the_moment_of_the_next_attempt_survives_a_restart(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, backoff=BACKOFF) as made:
        await made.submit(made.job("a", replay="safe"))
        await made.finish("a", signal="SIGKILL")
        due = made.clock.now() + BACKOFF.delay("a", 1)
    async with world(tmp_path, backoff=BACKOFF) as made:
        assert made.running == []
        waits = await made.explain("a")
        assert waits is not None
        assert waits.state == "waiting_for_retry"
        assert waits.waiting is not None
        assert waits.waiting.until == pytest.approx(due)
        await trio.sleep(BACKOFF.delay("a", 1) + 0.1)
        assert attempts(made) == [("a", 2)]


async def test_a_job_that_waits_for_its_next_attempt_is_cancelled(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, backoff=BACKOFF) as made:
        await made.submit(made.job("a", replay="safe"))
        await made.finish("a", signal="SIGKILL")
        assert not await made.cancel("a")
        await trio.sleep(100)
        assert made.states() == {"a": "cancelled"}
        assert made.launched == ["a"]


async def test_another_delay_holds_from_the_next_interruption_on(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, backoff=BACKOFF) as made:
        await made.submit(made.job("a", replay="safe"))
        each = RepositoryLimits(4, 1800.0, None, Backoff(0.0, 0.0))
        made.mailbox.tell(supervisor.SetLimits(made.limits, each))
        await trio.testing.wait_all_tasks_blocked()
        await made.finish("a", signal="SIGKILL")
        assert attempts(made) == [("a", 2)]


# Receipts of others


async def test_a_receipt_with_another_fence_changes_nothing_and_is_told(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE))
        [order] = made.launcher.orders
        late = Receipt("a", 1, order.fence - 1, "exit", 1.0, exit_code=0)
        (await made.open()).tell(WorkerExited("a", 1, late))
        await trio.sleep(1)
        assert made.states() == {"a": "running"}
        assert made.events().count("receipt_refused") == 1
        assert (await made.survey()).tokens["workers"].jobs == ("a",)
        await made.finish("a", exit_code=4)
        assert made.states() == {"a": "failed"}
        assert (await made.survey()).tokens["workers"].used == 0


async def test_an_attempt_of_another_history_is_no_proof_of_success(
    tmp_path: Path,
) -> None:
    launcher = FakeLauncher(durable=True)
    async with world(tmp_path, launcher=launcher, stop="detached") as made:
        await made.submit(made.job("a"), made.job("b", replay="safe"))
        await trio.sleep(1)
    for attempt in launcher.running:
        attempt.order = structs.replace(attempt.order, fence=77)
    launcher.finish("a")
    launcher.finish("b")
    async with world(tmp_path, launcher=launcher) as made:
        assert made.states()["a"] == "human_attention_required"
        assert attempts(made) == [("b", 2)]


# What is lost


async def test_what_is_lost_after_its_time_was_over_is_timed_out(
    tmp_path: Path,
) -> None:
    launcher = FakeLauncher()
    async with world(tmp_path, launcher=launcher) as made:
        launcher._now = made.clock.now
        jobs = [made.job(name, replay="safe") for name in ("late", "early", "paused")]
        changes = [made.added(job) for job in jobs]
        budget = structs.replace(changes[0].spec.budgets, execution=100.0)
        spec = structs.replace(changes[0].spec, budgets=budget)
        tell = supervisor.Submitted("repo", tuple(jobs))
        await made.store.save(
            [structs.replace(change, spec=spec) for change in changes],
            then=lambda: made.mailbox.tell(tell),
        ).wait()
        await trio.sleep(50)
        await made.steer("paused", "pause")
        await made.finish("early", ending="lost")
        assert ("early", 2) in attempts(made)
        await made.finish("early")
        await trio.sleep(51)
        await made.finish("late", "paused", ending="lost")
        assert made.states()["late"] == "timed_out"
        assert made.states()["paused"] == "queued"  # its budget stood still


async def test_a_job_that_handed_its_work_on_has_succeeded_with_that(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(
            made.job("parent", kind="dispatch-task"),
            made.job("alone", kind="dispatch-task"),
            made.job("plain"),
        )
        fences = {job.id: job.fence for job in made.store.load_jobs("repo")}
        for parent in ("parent", "plain"):
            event = Event("job_delegated", made.clock.now(), "repo", parent)
            for child in ("first", "second"):
                change = JobDelegated(parent, 1, fences[parent] or 0, child, event)
                await made.store.save([change]).wait()
        assert made.store.child_of("parent") == "first"
        assert made.store.child_of("alone") is None
        await made.finish("parent", "alone", "plain", signal="SIGKILL")
        assert made.states() == {
            "parent": "succeeded",
            "alone": "human_attention_required",
            "plain": "human_attention_required",
        }
