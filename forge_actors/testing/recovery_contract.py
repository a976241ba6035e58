"""What every store keeps of attempts that did not end well, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import (
    JobDelegated,
    Quarantined,
    QuarantineEnded,
    RepositoryChanged,
    SetAside,
    TakenBack,
)
from forge_actors.domain.claims import Claim
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.poison import Poison
from forge_actors.domain.quarantine import Quarantine
from forge_actors.testing.made_changes import dispatched, ended, job, repository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]


async def check_the_first_job_that_work_was_handed_to_is_kept(open_: Open) -> None:
    async with open_() as store:
        await store.save([repository(), job(), dispatched()]).wait()
        assert store.child_of("job") is None
        for child in ("first", "second"):
            event = Event("job_delegated", 12.0, "repo", "job")
            store.save([JobDelegated("job", 1, 1, child, event)])
        assert store.child_of("job") == "first"
        await store.save([ended()]).wait()
    async with open_() as store:
        assert store.child_of("job") == "first"
        assert store.child_of("unknown") is None


async def check_claims_are_kept_until_that_ends(open_: Open) -> None:
    claims = (Claim("write", "path", "src", "/c"),)
    left = Quarantine(
        "job", "repo", 1, 1, claims, (ProcessIdentity("b", 2, 3, 4),), "lost", 30.0
    )
    event = Event("job_quarantined", 30.0, "repo", "job")
    async with open_() as store:
        store.save([repository(), repository("other"), job(), dispatched(), ended()])
        await store.save([Quarantined(left, event)]).wait()
    async with open_() as store:
        assert store.load("repo").quarantined == {"job": left}
        assert store.load("other").quarantined == {}
        gone = Event("job_quarantine_ended", 31.0, "repo", "job")
        await store.save([QuarantineEnded("job", gone)]).wait()
    async with open_() as store:
        assert store.load("repo").quarantined == {}
        store.save([Quarantined(left, event)])
        removed = structs.replace(repository().repository, removed_at=5.0)
        event = Event("repository_removed", 5.0, "repo")
        store.save([RepositoryChanged(removed, event)])
        assert store.load("repo").quarantined == {}


async def check_what_was_set_aside_stays_so_until_it_is_taken_back(
    open_: Open,
) -> None:
    whole, one = Poison("repo", "whole", 2.0), Poison("repo", "one", 3.0, "job")
    event = Event("repository_set_aside", 3.0, "repo")
    async with open_() as store:
        store.save([repository(), repository("other"), job()])
        await store.save([SetAside(whole, event), SetAside(one, event)]).wait()
    async with open_() as store:
        assert store.load("repo").poisoned == {"": whole, "job": one}
        assert store.load("other").poisoned == {}
        jobs, unreadable = store.load_readable_jobs("repo")
        assert (jobs, unreadable) == (store.load_jobs("repo"), {})
        back = Event("repository_taken_back", 4.0, "repo")
        await store.save([TakenBack("repo", back, job="")]).wait()
    async with open_() as store:
        assert store.load("repo").poisoned == {"job": one}
        store.save([TakenBack("repo", back, job="job")])
        assert store.load("repo").poisoned == {}
        store.save([SetAside(whole, event), SetAside(one, event)])
        store.save([TakenBack("repo", back)])
        assert store.load("repo").poisoned == {}


CHECKS: tuple[Check, ...] = (
    check_the_first_job_that_work_was_handed_to_is_kept,
    check_claims_are_kept_until_that_ends,
    check_what_was_set_aside_stays_so_until_it_is_taken_back,
)
