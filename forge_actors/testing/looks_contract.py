"""What every store keeps of the looks at repositories, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import LookSaved, RepositoryChanged
from forge_actors.domain.events import Event
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.looking import JOB_ENDED, Look
from forge_actors.testing.made_changes import dispatched, job, repository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]

STATUS = GitStatus("main", "a" * 40, "origin/main", 1, 2, 3, 4, 5, 6, True, "rebase")


async def check_a_look_is_kept_whole(open_: Open) -> None:
    look = (
        Look("repo")
        .marked(JOB_ENDED, 10.0)
        .sampled(1, STATUS, 11.0, busy=True, fence=7)
    )
    look = look.marked("files changed", 12.0, "source").failed(1, "git is gone", 13.0)
    async with open_() as store:
        await store.save([repository()]).wait()
        assert store.look("repo") is None
        store.save([LookSaved(look)])
        assert store.look("repo") == look, "also before it is durable"
    async with open_() as store:
        assert store.look("repo") == look
        await store.save([LookSaved(look.sampled(9, GitStatus(), 20.0))]).wait()
        found = store.look("repo")
        assert found is not None
        assert (found.status, found.dirty, found.error) == (GitStatus(), None, None)


async def check_what_needs_a_look_is_found_again(open_: Open) -> None:
    clean = Look("clean").sampled(1, STATUS, 50.0, fence=1)
    busy = Look("busy").sampled(1, STATUS, 50.0, busy=True)
    marked = Look("marked").sampled(1, STATUS, 50.0).marked(JOB_ENDED, 51.0)
    older = Look("older").sampled(1, STATUS, 50.0)
    async with open_() as store:
        names = ("clean", "busy", "marked", "older", "never", "idle")
        for name in names:
            store.save([repository(name)])
        store.save(list(map(LookSaved, (clean, busy, marked, older))))
        # The first dispatch of each.
        for name in ("older", "clean", "never"):
            store.save([job(f"job-{name}", name), dispatched(f"job-{name}", name)])
    async with open_() as store:
        found = {look.repo for look in store.unfinished_looks()}
        assert found == {"busy", "marked", "older", "never"}


async def check_the_repository_that_waits_longest_is_next(open_: Open) -> None:
    async with open_() as store:
        assert store.oldest_look() is None
        for name in ("a", "b", "c"):
            store.save([repository(name)])
        assert store.oldest_look() == "a"
        store.save([LookSaved(Look("a").sampled(1, STATUS, 5.0))])
        assert store.oldest_look() == "b"
        store.save([LookSaved(Look("b").failed(1, "it is gone", 3.0))])
        assert store.oldest_look() == "c"
        await store.save([LookSaved(Look("c").sampled(1, STATUS, 4.0))]).wait()
    async with open_() as store:
        assert store.oldest_look() == "b"


async def check_a_removed_repository_is_not_looked_at(open_: Open) -> None:
    async with open_() as store:
        added = repository()
        await store.save([added, LookSaved(Look("repo").marked(JOB_ENDED, 5.0))]).wait()
        gone = structs.replace(added.repository, removed_at=9.0)
        event = Event("repository_removed", 9.0, "repo")
        await store.save([RepositoryChanged(gone, event)]).wait()
        # One that was under way meanwhile.
        await store.save([LookSaved(Look("repo").sampled(1, STATUS, 9.5))]).wait()
        assert store.look("repo") is None
        assert store.unfinished_looks() == []
        assert store.oldest_look() is None


CHECKS: tuple[Check, ...] = (
    check_a_look_is_kept_whole,
    check_what_needs_a_look_is_found_again,
    check_the_repository_that_waits_longest_is_next,
    check_a_removed_repository_is_not_looked_at,
)
