"""What every store keeps that a clean-up may have things removed from, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from forge_actors.domain.changes import (
    ClassVisited,
    CleanRunChanged,
    EventsForgotten,
    JobDelegated,
    JobsForgotten,
    Noted,
    Quarantined,
)
from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.maintenance import ClassVisit, CleanRun
from forge_actors.domain.quarantine import Quarantine
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from forge_actors.testing.worktree_rows_contract import changed, worktree

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change, JobAdded
    from forge_actors.domain.jobs import State
    from forge_actors.domain.ports import KeptStore, Store
    from forge_actors.testing.store_contract import Open

#: All jobs of `ended` end at 30.0.
LATER = 1000.0


def _kept(store: Store) -> KeptStore:
    return cast("KeptStore", store)


def _done(*jobs: str) -> list[Change]:
    """Jobs that have ended, in one repository."""
    changes: list[Change] = [repository()]
    for number, name in enumerate(jobs, start=1):
        changes += [
            job(name),
            dispatched(name, fence=number),
            ended(name, fence=number),
        ]
    return changes


def _retried(old: str, new: str) -> JobAdded:
    added = job(new)
    details = structs.replace(added.details, retry_of=old)
    return structs.replace(added, details=details)


async def _goes(store: Store, *jobs: str, ended_before: float = LATER) -> list[str]:
    kept = _kept(store)
    async with kept.forgetting():
        return [each.job for each in kept.forgettable(jobs, ended_before)]


async def check_an_ended_job_may_go_and_is_gone_then(open_: Open) -> None:
    async with open_() as store:
        await store.save(_done("old", "other")).wait()
        kept = _kept(store)
        async with kept.forgetting():
            [found] = kept.forgettable(["old"], LATER)
            assert (found.repo, found.state) == ("repo", "succeeded")
            await store.save([JobsForgotten((found,), LATER)]).wait()
            assert kept.forgettable(["old"], LATER) == ()
        told: list[State] = []
        store.when_ended("old", told.append)
        assert told == ["stale"], "whoever asks late is not left waiting for ever"
    async with open_() as store:
        assert await _goes(store, "old", "other", "never") == ["other"]


async def check_a_job_that_ended_just_now_stays(open_: Open) -> None:
    async with open_() as store:
        await store.save(_done("old")).wait()
        assert await _goes(store, "old", ended_before=30.0) == []
        assert await _goes(store, "old", ended_before=30.1) == ["old"]


async def check_a_job_that_waits_or_runs_stays(open_: Open) -> None:
    async with open_() as store:
        await store.save([repository(), job("waits"), job("runs")]).wait()
        await store.save([dispatched("runs")]).wait()
        assert await _goes(store, "waits", "runs") == []


async def check_what_a_job_runs_after_stays_until_that_has_ended(open_: Open) -> None:
    async with open_() as store:
        await store.save([*_done("old"), job("new", after=("old",))]).wait()
        assert await _goes(store, "old") == []
        await store.save([dispatched("new", fence=9)]).wait()
        await store.save([ended("new", fence=9)]).wait()
        assert await _goes(store, "old") == ["old"]


async def check_what_a_job_runs_after_that_comes_meanwhile_stays(open_: Open) -> None:
    async with open_() as store:
        await store.save(_done("old")).wait()
        kept = _kept(store)
        async with kept.forgetting():
            assert kept.forgettable(["old"], LATER)
            store.save([job("new", after=("old",))])  # and not durable yet
            assert kept.forgettable(["old"], LATER) == ()


async def check_a_job_that_was_retried_stays_as_long_as_its_retry(open_: Open) -> None:
    async with open_() as store:
        changes = [*_done("old"), _retried("old", "new")]
        changes += [dispatched("new", fence=9), ended("new", fence=9)]
        await store.save(changes).wait()
        assert await _goes(store, "old", "new") == ["new"]
        kept = _kept(store)
        async with kept.forgetting():
            found = kept.forgettable(["new"], LATER)
            await store.save([JobsForgotten(found, LATER)]).wait()
        assert await _goes(store, "old") == ["old"]


async def check_the_child_of_a_job_stays_as_long_as_that(open_: Open) -> None:
    async with open_() as store:
        told = Event("job_delegated", 25.0, "repo", "parent")
        changes = [
            *_done("child"),
            job("parent"),
            dispatched("parent", fence=9),
            JobDelegated("parent", 1, 9, "child", told),
        ]
        await store.save(changes).wait()
        assert await _goes(store, "child") == []


async def check_a_job_whose_claims_are_kept_stays(open_: Open) -> None:
    async with open_() as store:
        left = (ProcessIdentity("boot", 5, 5),)
        kept = Quarantine("old", "repo", 1, 1, (), left, "alive", 40.0)
        told = Event("job_quarantined", 40.0, "repo", "old")
        await store.save([*_done("old"), Quarantined(kept, told)]).wait()
        assert await _goes(store, "old") == []


async def check_a_job_with_a_worktree_stays_until_that_is_removed(open_: Open) -> None:
    async with open_() as store:
        tree = worktree("old")
        await store.save([*_done("old"), changed(tree)]).wait()
        assert await _goes(store, "old") == []
        gone = structs.replace(tree, state="removed", removed_at=50.0)
        await store.save([changed(gone, "worktree_removed")]).wait()
        assert await _goes(store, "old") == ["old"]


async def check_old_events_go_and_numbers_go_on(open_: Open) -> None:
    async with open_() as store:
        for number in range(5):
            event = Event("limits", float(number))
            await store.save([Noted(event)]).wait()
        kept = _kept(store)
        assert kept.history_range() == (1, 5)
        rows = kept.old_history(0, 4, 10)
        assert rows == [(1, 2, 0.0), (2, 3, 1.0), (3, 4, 2.0)]
        await store.save([EventsForgotten(4)]).wait()
        assert kept.history_range() == (4, 5)
        assert kept.old_history(0, 9, 1) == [(4, 5, 3.0)]
        await store.save([Noted(Event("limits", 9.0))]).wait()
    async with open_() as store:
        assert _kept(store).history_range() == (4, 6)


async def check_the_oldest_job_that_has_not_ended_is_known(open_: Open) -> None:
    async with open_() as store:
        assert await _kept(store).oldest_active() is None
        await store.save([*_done("old"), job("waits", queued_at=17.0)]).wait()
        assert await _kept(store).oldest_active() == 17.0


async def check_visits_and_runs_are_kept(open_: Open) -> None:
    report = ClassReport("logs", removed=3, skipped={"it is young": 2})
    visit = ClassVisit("logs", 70.0, "cursor", report, size=5)
    run = CleanRun(60.0, runs=4, error="it failed", more=True)
    async with open_() as store:
        assert _kept(store).clean_run() is None
        assert _kept(store).class_visits() == {}
        began = ClassVisited(ClassVisit("logs", 70.0))
        await store.save([CleanRunChanged(run), began]).wait()
        assert _kept(store).class_visits()["logs"].report is None
        done = structs.replace(run, ended_at=80.0, due_at=90.0)
        told = Event("clean_ended", 80.0)
        await store.save([ClassVisited(visit), CleanRunChanged(done, told)]).wait()
    async with open_() as store:
        assert _kept(store).clean_run() == done
        assert _kept(store).class_visits() == {"logs": visit}


async def check_the_next_end_is_told_once(open_: Open) -> None:
    async with open_() as store:
        ends: list[str] = []
        _kept(store).once_ended(lambda: ends.append("first"))
        _kept(store).once_ended(lambda: ends.append("second"))
        await store.save([repository(), job("a"), job("b")]).wait()
        assert ends == []
        for number, name in enumerate(("a", "b"), start=1):
            await store.save([dispatched(name, fence=number)]).wait()
            await store.save([ended(name, fence=number)]).wait()
        assert ends == ["second"]


CHECKS = [
    check_an_ended_job_may_go_and_is_gone_then,
    check_a_job_that_ended_just_now_stays,
    check_a_job_that_waits_or_runs_stays,
    check_what_a_job_runs_after_stays_until_that_has_ended,
    check_what_a_job_runs_after_that_comes_meanwhile_stays,
    check_a_job_that_was_retried_stays_as_long_as_its_retry,
    check_the_child_of_a_job_stays_as_long_as_that,
    check_a_job_whose_claims_are_kept_stays,
    check_a_job_with_a_worktree_stays_until_that_is_removed,
    check_old_events_go_and_numbers_go_on,
    check_the_oldest_job_that_has_not_ended_is_known,
    check_visits_and_runs_are_kept,
    check_the_next_end_is_told_once,
]
