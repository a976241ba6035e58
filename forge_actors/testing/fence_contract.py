"""What every store keeps of fences: only the current attempt of a job has a say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.changes import JobDelegated
from forge_actors.domain.errors import StaleFence
from forge_actors.domain.events import Event
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    ended_waiting,
    job,
    ran,
    repository,
    requeued,
)

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.ports import Store
    from forge_actors.testing.store_contract import Check, Open


def _never() -> None:
    raise AssertionError("it was told that it was saved")


def _refused(store: Store, *changes: Change) -> StaleFence:
    try:
        store.save(changes, then=_never)
    except StaleFence as error:
        return error
    raise AssertionError("a late attempt was listened to")


def _late(attempt: int, fence: int) -> tuple[Change, ...]:
    """Everything an attempt may have to say."""
    return (
        ran(attempt=attempt, fence=fence),
        requeued(attempt=attempt, fence=fence),
        ended(attempt=attempt, fence=fence),
        JobDelegated(
            "job", attempt, fence, "child", Event("job_delegated", 1.0, "repo", "job")
        ),
    )


async def check_only_the_current_attempt_is_listened_to(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job(), dispatched(), ran(), requeued()])
        # It waits again: the attempt that it had is over.
        for change in _late(1, 1):
            told = str(_refused(store, change))
            assert told.startswith("FENCING_TOKEN_STALE: attempt 1 with the fence 1 ")
        store.save([dispatched(attempt=2, fence=2)])
        for attempt, fence in ((1, 1), (2, 1), (1, 2), (3, 3)):
            for change in _late(attempt, fence):
                _refused(store, change)
        await store.save([ran(attempt=2, fence=2), ended(attempt=2, fence=2)]).wait()
        # And an end is one for good.
        for change in (*_late(2, 2), ended_waiting()):
            _refused(store, change)


async def check_a_reserved_job_does_not_end_as_one_that_waits(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job(), job("second"), dispatched()])
        _refused(store, ended_waiting())
        await store.save([ended_waiting("second")]).wait()
        assert [held.state for held in store.load_jobs("repo")] == ["dispatched"]


async def check_a_job_is_dispatched_once_and_with_a_larger_fence(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job(), job("second"), dispatched(fence=5)])
        _refused(store, dispatched(attempt=2, fence=6))
        for fence in (4, 5):
            _refused(store, dispatched("second", fence=fence))
        await store.save([dispatched("second", fence=6)]).wait()
        store.save([ended(fence=5)])
        _refused(store, dispatched(attempt=2, fence=7))
        assert store.load("repo").fence == 6


async def check_what_is_refused_harms_nobody_else(open_: Open) -> None:
    """Not those before it in a commit, nor those after. Of itself all is gone."""
    async with open_() as store:
        await store.save([repository(), job(), job("second"), job("third")]).wait()
        told: list[str] = []
        store.save([dispatched("second")], then=lambda: told.append("before"))
        _refused(store, dispatched("third", fence=2), job("fourth"), ended())
        store.save(
            [ended("second"), dispatched(fence=2)], then=lambda: told.append("after")
        )
        await store.save([]).wait()
        assert told == ["before", "after"]
    async with open_() as store:
        found = [(held.id, held.state, held.fence) for held in store.load_jobs("repo")]
        assert found == [("job", "dispatched", 2), ("third", "queued", None)]


CHECKS: tuple[Check, ...] = (
    check_only_the_current_attempt_is_listened_to,
    check_a_reserved_job_does_not_end_as_one_that_waits,
    check_a_job_is_dispatched_once_and_with_a_larger_fence,
    check_what_is_refused_harms_nobody_else,
)
