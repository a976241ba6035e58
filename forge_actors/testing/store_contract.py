"""What every store keeps, as checks to run against one.

Call each of `CHECKS` with a function that opens a store. Opened again within one check
it must be the same store, with what was durable when it was left.
"""

from __future__ import annotations

import copy
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.changes import (
    JobEdited,
    JobHeld,
    JobWaits,
    Noted,
    PauseBegan,
    PauseEnded,
    RepositoryChanged,
    SettingsChanged,
)
from forge_actors.domain.claims import Claim
from forge_actors.domain.edits import Edit
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Budgets
from forge_actors.domain.scopes import Pause, repository_scope
from forge_actors.testing import (
    accounts_contract,
    controllers_contract,
    epics_contract,
    fence_contract,
    inbox_contract,
    kept_contract,
    looks_contract,
    ownership_contract,
    policies_contract,
    recovery_contract,
    relocation_contract,
    schedules_contract,
    trust_contract,
    usage_contract,
    verify_contract,
    workflows_contract,
    worktree_rows_contract,
)
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    job,
    ran,
    repository,
    requeued,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from forge_actors.domain.jobs import State
    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]

#: Seconds within which a lazy move is durable.
LAZY_LIMIT = 0.25


async def check_then_follows_the_commit(open_: Open) -> None:
    async with open_() as store:
        told: list[str] = []
        first = store.save([repository()], then=lambda: told.append("first"))
        second = store.save([job()], then=lambda: told.append("second"))
        assert told == [], "`then` is not called before the move is durable"
        await second.wait()
        await first.wait()
        assert told == ["first", "second"]
        await first.wait()  # as often as one likes


async def check_many_may_wait_for_one_move(open_: Open) -> None:
    async with open_() as store:
        saved = store.save([repository()])
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(saved.wait)


async def check_a_waiter_may_leave(open_: Open) -> None:
    async with open_() as store:
        saved = store.save([repository()])
        with trio.CancelScope() as scope:
            scope.cancel()
            await saved.wait()
        await saved.wait()
        assert store.load("repo").repo == "repo"


async def check_loading_sees_what_is_saved_but_not_yet_durable(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job()])
        assert [held.id for held in store.load_jobs("repo")] == ["job"]
        assert store.load("repo").fence == 0
        store.save([dispatched(fence=5)])
        assert store.load("repo").fence == 5
        assert store.load_jobs("repo")[0].state == "dispatched"
        assert store.spec("job").argv == ("true", "job")


async def check_lazy_moves_ride_along(open_: Open) -> None:
    async with open_() as store:
        lazy = store.save([repository()], lazy=True)
        with trio.fail_after(LAZY_LIMIT / 2):
            await store.save([job()]).wait()
            await lazy.wait()


async def check_lazy_moves_are_soon_durable(open_: Open) -> None:
    async with open_() as store:
        began = trio.current_time()
        with trio.fail_after(2 * LAZY_LIMIT):
            await store.save([repository()], lazy=True).wait()
        assert trio.current_time() >= began


async def check_what_is_hastened_is_durable_in_order(open_: Open) -> None:
    async with open_() as store:
        store.hasten()  # there is nothing
        order: list[int] = []
        for number in range(6):
            repo = repository(f"repo{number}", inode=number)
            then = partial(order.append, number)
            move = store.save([repo], then=then, lazy=number != 2)
            if number % 2:
                store.hasten()
        await move.wait()
        assert order == list(range(6))


async def check_changed_settings_are_durable_when_it_is_told(open_: Open) -> None:
    async with open_() as store:
        told, changed = [0], SettingsChanged(Event("settings_changed", 1.0))
        await store.save([changed], then=lambda: told.append(1)).wait()
        assert told == [0, 1]


async def check_moves_are_durable_in_order(open_: Open) -> None:
    async with open_() as store:
        order: list[int] = []
        for number in range(20):
            name = f"repo{number}"
            store.save(
                [repository(name, inode=number)],
                then=lambda number=number: order.append(number),  # type: ignore[misc]
                lazy=number % 3 == 0,
            )
        await store.save([Noted(Event("end", 1.0))]).wait()
        assert order == list(range(20))


async def check_a_job_comes_back_as_it_was_saved(open_: Open) -> None:
    claims = (Claim("read", "path", "src", "/c"), Claim("write", "git-ref", "main"))
    wanted = job(
        kind="check",
        claims=claims,
        after=("one", "two"),
        state="waiting_for_dependency",
        replay="always",
        max_attempts=7,
        exit_attempts=6,
        queue_budget=60.0,
        priority=4,
    )
    async with open_() as store:
        await store.save([repository(), wanted]).wait()
    async with open_() as store:
        assert store.load_jobs("repo") == [wanted.job]
        assert store.spec("job") == wanted.spec


async def check_every_move_of_a_job_survives(open_: Open) -> None:
    expected = copy.copy(job().job)
    moves: list[tuple[Any, dict[str, Any]]] = [
        (
            JobWaits("job", "waiting_for_workspace", Event("w", 11.0, "repo", "job")),
            {"state": "waiting_for_workspace"},
        ),
        (
            dispatched(attempt=1, fence=1),
            {"state": "dispatched", "attempt": 1, "fence": 1},
        ),
        (ran(), {"state": "running", "started_at": 21.0}),
        (requeued(), {"state": "queued", "queued_at": 40.0}),
        (
            dispatched(attempt=2, fence=2),
            {"state": "dispatched", "attempt": 2, "fence": 2, "started_at": None},
        ),
        (
            requeued(
                attempt=2,
                fence=2,
                state="waiting_for_retry",
                at=50.0,
                retry_at=55.5,
                place=7.5,
            ),
            {"state": "waiting_for_retry", "queued_at": 7.5, "retry_at": 55.5},
        ),
        (
            JobWaits("job", "queued", Event("job_queued", 56.0, "repo", "job")),
            {"state": "queued"},
        ),
        (
            dispatched(attempt=3, fence=3),
            {"state": "dispatched", "attempt": 3, "fence": 3},
        ),
    ]
    async with open_() as store:
        await store.save([repository(), job()]).wait()
    for change, fields in moves:
        async with open_() as store:
            await store.save([change]).wait()
        async with open_() as store:
            expected = structs.replace(expected, **fields)
            assert store.load_jobs("repo") == [expected]
    async with open_() as store:
        await store.save([ended(attempt=3, fence=3)]).wait()
        assert store.load_jobs("repo") == []
    async with open_() as store:
        assert store.load_jobs("repo") == []


async def check_jobs_are_loaded_oldest_first(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), repository("other")])
        store.save([job("b", queued_at=5.0), job("c", queued_at=4.0)])
        store.save([job("a", queued_at=5.0), job("z", "other", queued_at=1.0)])
        assert [held.id for held in store.load_jobs("repo")] == ["c", "a", "b"]


async def check_the_fence_is_never_reset(open_: Open) -> None:
    async with open_() as store:
        added = repository()
        await store.save([added, job(), dispatched(fence=41)]).wait()
        # Renamed, disabled, enabled again: whoever writes this knows no fence.
        for enabled in (False, True):
            changed = structs.replace(added.repository, enabled=enabled)
            event = Event("repository_changed", 1.0, "repo")
            await store.save([RepositoryChanged(changed, event)]).wait()
            assert store.load("repo").enabled is enabled
            assert store.load("repo").fence == 41
    async with open_() as store:
        assert store.load("repo").fence == 41


async def check_a_removed_repository_starts_nothing(open_: Open) -> None:
    async with open_() as store:
        added = repository()
        removed = structs.replace(added.repository, removed_at=5.0)
        event = Event("repository_removed", 5.0, "repo")
        store.save([added, RepositoryChanged(removed, event)])
        assert not store.load("repo").enabled


async def check_an_end_is_told_once_it_is_durable(open_: Open) -> None:
    async with open_() as store:
        told: list[State] = []
        store.save([repository(), job(), dispatched()])
        store.when_ended("job", told.append)
        store.when_ended("job", told.append)
        saved = store.save([ended(state="failed")])
        store.when_ended("job", told.append)
        assert told == [], "an end that a crash can undo is not told"
        await saved.wait()
        assert told == ["failed"] * 3
        store.when_ended("job", told.append)
        assert told == ["failed"] * 4


async def check_an_end_is_told_also_before_the_job_is_known(open_: Open) -> None:
    async with open_() as store:
        told: list[State] = []
        store.when_ended("job", told.append)
        await store.save([repository(), job(), dispatched(), ended()]).wait()
        assert told == ["succeeded"]


async def check_a_hold_survives_until_it_ends(open_: Open) -> None:
    async with open_() as store:
        held = JobHeld("job", 12.0, Event("job_held", 12.0, "repo", "job"))
        await store.save([repository(), job(), held]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].held_at == 12.0
        let_go = JobHeld("job", None, Event("job_unheld", 13.0, "repo", "job"))
        await store.save([let_go]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].held_at is None


async def check_an_edit_changes_what_it_names_and_nothing_else(open_: Open) -> None:
    before = job(queue_budget=60.0, priority=4, claims=(Claim("read", "path", "a"),))
    event = Event("job_edited", 12.0, "repo", "job")
    budgets = Edit(queue_timeout=None, timeout=5.0, idle_timeout=6.0)
    async with open_() as store:
        await store.save([repository(), before]).wait()
        await store.save([JobEdited("job", budgets, event)]).wait()
        # The spec is that of the edited job at once, wherever a copy of it was.
        assert store.spec("job").budgets == Budgets(execution=5.0, idle=6.0)
        assert store.spec("job").argv == before.spec.argv
        assert store.load_jobs("repo") == [
            structs.replace(before.job, queue_budget=None)
        ]
        claims = (Claim("write", "path", "b"),)
        again = Edit(priority=1, claims=claims, labels=("x",))
        await store.save([JobEdited("job", again, event)]).wait()
    async with open_() as store:
        assert store.spec("job").budgets == Budgets(execution=5.0, idle=6.0)
        assert store.load_jobs("repo") == [
            structs.replace(before.job, queue_budget=None, priority=1, claims=claims)
        ]


async def check_the_pause_of_a_repository_survives_until_it_ends(open_: Open) -> None:
    scope = repository_scope("repo")
    began = Event("paused", 12.0, "repo")
    async with open_() as store:
        pause = PauseBegan(Pause(scope, 12.0), began)
        await store.save([repository(), repository("other"), pause]).wait()
        everything = PauseBegan(Pause("all", 12.0), Event("paused", 12.0))
        await store.save([everything]).wait()
    async with open_() as store:
        assert list(store.load("repo").pauses) == [Pause(scope, 12.0)]
        assert not store.load("other").pauses
        more = PauseBegan(Pause(scope, 12.0, jobs=True), began)
        await store.save([more]).wait()
    async with open_() as store:
        assert list(store.load("repo").pauses) == [Pause(scope, 12.0, jobs=True)]
        ended = Event("resumed", 14.0, "repo")
        await store.save([PauseEnded(scope, ended)]).wait()
    async with open_() as store:
        assert not store.load("repo").pauses


async def check_a_removed_repository_is_not_paused_any_more(open_: Open) -> None:
    async with open_() as store:
        added = repository()
        pause = Pause(repository_scope("repo"), 4.0)
        store.save([added, PauseBegan(pause, Event("paused", 4.0, "repo"))])
        removed = structs.replace(added.repository, removed_at=5.0)
        event = Event("repository_removed", 5.0, "repo")
        store.save([RepositoryChanged(removed, event)])
        assert not store.load("repo").pauses


CHECKS: tuple[Check, ...] = (
    check_then_follows_the_commit,
    check_many_may_wait_for_one_move,
    check_a_waiter_may_leave,
    check_loading_sees_what_is_saved_but_not_yet_durable,
    check_lazy_moves_ride_along,
    check_lazy_moves_are_soon_durable,
    check_what_is_hastened_is_durable_in_order,
    check_changed_settings_are_durable_when_it_is_told,
    check_moves_are_durable_in_order,
    check_a_job_comes_back_as_it_was_saved,
    check_every_move_of_a_job_survives,
    check_jobs_are_loaded_oldest_first,
    check_the_fence_is_never_reset,
    check_a_removed_repository_starts_nothing,
    check_an_end_is_told_once_it_is_durable,
    check_an_end_is_told_also_before_the_job_is_known,
    check_a_hold_survives_until_it_ends,
    check_an_edit_changes_what_it_names_and_nothing_else,
    check_the_pause_of_a_repository_survives_until_it_ends,
    check_a_removed_repository_is_not_paused_any_more,
    *ownership_contract.CHECKS,
    *recovery_contract.CHECKS,
    *fence_contract.CHECKS,
    *relocation_contract.CHECKS,
    *(*usage_contract.CHECKS, *worktree_rows_contract.CHECKS),
    *kept_contract.CHECKS,
    *looks_contract.CHECKS,
    *inbox_contract.CHECKS,
    *accounts_contract.CHECKS,
    *schedules_contract.CHECKS,
    *trust_contract.CHECKS,
    *policies_contract.CHECKS,
    *workflows_contract.CHECKS,
    *controllers_contract.CHECKS,
    *epics_contract.CHECKS,
    *verify_contract.CHECKS,
)
