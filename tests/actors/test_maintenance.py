"""The maintenance actor: when it runs, never two at once, and what a failure does."""

from __future__ import annotations

import logging

import pytest
import trio
from msgspec import structs

from forge_actors.actors.maintenance_messages import Reconsider
from forge_actors.domain.errors import ActorStopped, StoreFailed
from tests.actors.maintenance_kit import PERIOD, Kept

pytestmark = pytest.mark.mock_clock


async def test_nothing_runs_while_no_job_has_ended() -> None:
    kept = Kept()
    async with kept.running():
        await trio.sleep(10 * PERIOD)
        assert kept.runs == 0


async def test_it_runs_a_period_after_a_job_has_ended_and_then_rests() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD - 1)
        assert kept.runs == 0
        await trio.sleep(2)
        assert kept.runs == 1
        await trio.sleep(100 * PERIOD)
        assert kept.runs == 1


async def test_jobs_that_go_on_ending_make_one_run_a_period() -> None:
    kept = Kept()
    async with kept.running():
        for _ in range(100):
            await kept.end_job()
            await trio.sleep(PERIOD / 10)
        assert 4 <= kept.runs <= 10


async def test_a_run_that_has_more_to_do_is_followed_by_another_one() -> None:
    kept = Kept(jobs="cursor:m")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(3.5 * PERIOD)
        assert kept.runs == 3
        kept.behave()
        await trio.sleep(10 * PERIOD)
        assert kept.runs == 4


async def test_it_runs_when_the_first_thing_becomes_old_enough() -> None:
    kept = Kept()
    async with kept.running():
        due = kept.clock.wall() + 20 * PERIOD
        kept.behave(logs=f"due:{due}")
        await kept.end_job()
        await trio.sleep(19.5 * PERIOD)
        assert kept.runs == 1
        kept.behave()
        await trio.sleep(PERIOD)
        assert kept.runs == 2
        await trio.sleep(100 * PERIOD)
        assert kept.runs == 2


async def test_that_a_run_begins_is_durable_before_it_does() -> None:
    kept = Kept(jobs="hang")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD + 1)
        assert kept.clean_up.running == 1
        run = kept.rows.run
        assert run is not None
        assert (run.runs, run.ended_at) == (1, None)


async def test_a_crash_in_a_run_is_not_followed_by_a_run_at_once() -> None:
    kept = Kept(jobs="hang")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD + 1)
        saved = kept.rows.run
    kept.rows.run = saved  # as a kill leaves it
    kept.behave()
    async with kept.running():
        await trio.sleep(PERIOD - 5)
        assert kept.runs == 0
        await trio.sleep(2 * PERIOD)
        assert kept.runs == 1


async def test_a_restart_does_not_repeat_what_was_looked_at() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        await trio.sleep(2 * PERIOD)
        assert kept.runs == 1
    async with kept.running():
        await trio.sleep(10 * PERIOD)
        assert kept.runs == 0


async def test_what_ended_before_a_restart_is_looked_at_after_it() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
    async with kept.running():
        await trio.sleep(PERIOD + 1)
        assert kept.runs == 1


async def test_a_run_that_fails_is_a_line_a_count_and_an_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = Kept(logs="crash")
    async with kept.running():
        await kept.end_job()
        with caplog.at_level(logging.ERROR):
            await trio.sleep(PERIOD + 1)
        assert [record.getMessage() for record in caplog.records] == [
            "the clean-up failed: the clean-up ended too early with status 9"
        ]
        assert kept.told == ["clean_failed"]
        run = kept.rows.run
        assert run is not None
        assert (run.failures, run.in_a_row, run.more) == (1, 1, True)


async def test_runs_that_fail_come_at_longer_intervals_until_one_does_not() -> None:
    kept = Kept(logs="crash")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(100 * PERIOD)
        # After 1, 3, 7, 15, 31, 63 periods, counted from the first end.
        assert kept.runs == 6
        assert kept.problems[-1] is not None
        assert kept.problems[-1].startswith("the clean-up failed 6 times in a row: ")
        assert kept.problems[:3] == [None] * 3
    # Whoever starts it again is told at once.
    kept.problems.clear()
    async with kept.running():
        assert kept.problems[0] is not None
        kept.behave()
        await trio.sleep(64 * PERIOD)
        assert kept.runs == 1
        assert kept.problems[-1] is None
        run = kept.rows.run
        assert run is not None
        assert (run.failures, run.in_a_row) == (6, 0)


async def test_one_that_hangs_is_ended_and_the_next_visits_the_others_first() -> None:
    kept = Kept(jobs="hang")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(10 * PERIOD)
        assert kept.runs >= 2
        visits = kept.rows.visits
        assert visits["jobs"].report is None
        assert all(visits[name].report for name in visits if name != "jobs")


async def test_nothing_removed_and_nothing_failed_is_no_event() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        await trio.sleep(2 * PERIOD)
        assert kept.told == []


async def test_what_was_removed_is_an_event_and_gone_from_the_store() -> None:
    kept = Kept(jobs="forget:old,never")
    async with kept.running():
        await kept.end_job("old")
        await trio.sleep(3 * PERIOD)
        result = await kept.clean()
        assert [each.what for each in result.removals] == ["old"]
        assert kept.told == ["clean_ended"]
        assert "old" not in kept.rows.jobs
        assert list(kept.rows.forgotten) == ["old"]


async def test_a_job_that_ended_just_now_stays() -> None:
    kept = Kept(jobs="forget:old")
    async with kept.running():
        await kept.end_job("old")
        result = await kept.clean()
        assert result.removed == 0
        assert "old" in kept.rows.jobs


async def test_who_asks_waits_for_the_run_that_goes_on() -> None:
    kept = Kept(jobs="take:30")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD + 1)
        assert kept.clean_up.running == 1
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(kept.clean)
        assert trio.current_time() - began == pytest.approx(29 + 3 * 30)
        assert kept.clean_up.most == 1


async def test_a_dry_run_changes_nothing_that_is_saved() -> None:
    kept = Kept(jobs="cursor:m")
    async with kept.running():
        result = await kept.clean(dry_run=True)
        assert result.dry_run
        assert kept.rows.run is None
        assert kept.rows.visits == {}


async def test_a_run_of_some_classes_leaves_the_others_to_the_next_one() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        await kept.clean(classes=("logs",))
        assert set(kept.rows.visits) == {"logs"}
        await trio.sleep(2 * PERIOD)
        assert kept.runs == 2


async def test_whoever_asked_learns_that_the_actor_ends() -> None:
    kept = Kept(jobs="hang")
    failures = []

    async def ask() -> None:
        try:
            await kept.clean()
        except ActorStopped as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        async with kept.running():
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert kept.clean_up.running == 1
        # The one of the run that was ended was told what that came to.
        await trio.testing.wait_all_tasks_blocked()
    assert len(failures) == 1
    assert kept.clean_up.running == 0


async def test_a_run_that_ends_with_the_runtime_is_no_failure() -> None:
    kept = Kept(jobs="hang")
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD + 1)
        assert kept.clean_up.running == 1
    run = kept.rows.run
    assert run is not None
    assert (run.failures, run.in_a_row, run.more) == (0, 0, True)
    assert run.ended_at is not None


async def test_switched_off_it_runs_only_when_asked() -> None:
    kept = Kept()
    kept.policy = structs.replace(kept.policy, enabled=False)
    async with kept.running():
        await kept.end_job()
        await trio.sleep(5 * PERIOD)
        assert kept.runs == 0
        await kept.clean()
        assert kept.runs == 1
        kept.policy = structs.replace(kept.policy, enabled=True)
        kept.mailbox.tell(Reconsider())
        await kept.end_job()
        await trio.sleep(5 * PERIOD)
        assert kept.runs == 2


async def test_on_a_disk_that_is_full_it_runs_all_the_same() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        kept.store.failure = StoreFailed("the disk is full")
        result = await kept.clean()
        assert result.error is None
        assert len(result.reports) > 5


async def test_a_clock_that_was_set_back_holds_no_run_up() -> None:
    kept = Kept()
    async with kept.running():
        await kept.end_job()
        await trio.sleep(PERIOD + 1)
        assert kept.runs == 1
        kept.clock.set_wall(-100 * PERIOD)
        await kept.end_job()
        await trio.sleep(2 * PERIOD)
        assert kept.runs == 2
