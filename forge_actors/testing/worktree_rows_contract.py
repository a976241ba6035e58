"""What every store keeps of worktrees, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import WorktreeChanged
from forge_actors.domain.events import Event
from forge_actors.domain.worktrees import Worktree
from forge_actors.testing.made_changes import ended_waiting, job, repository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]


def worktree(job_id: str = "job", repo: str = "repo") -> Worktree:
    return Worktree(
        job_id,
        repo,
        f"worktrees/{repo}/{job_id}",
        f"forge/{job_id}",
        20.0,
        base="origin/main",
        base_commit="c" * 40,
    )


def changed(known: Worktree, kind: str = "worktree_making") -> WorktreeChanged:
    """That this is known of a worktree."""
    return WorktreeChanged(known, Event(kind, 20.0, known.repo, known.id))


async def check_a_worktree_is_what_was_said_of_it_last(open_: Open) -> None:
    known = worktree()
    async with open_() as store:
        assert store.worktree("job") is None
        store.save([repository(), job(), changed(known)])
        assert store.worktree("job") == known, "also before it is durable"
        await store.save([changed(worktree("other"))]).wait()
    ready = structs.replace(known, state="ready", kept=True, reason="somebody wants it")
    async with open_() as store:
        assert store.worktree("job") == known
        await store.save([changed(ready, "worktree_made")]).wait()
    removed = structs.replace(ready, state="removed", removed_at=50.0, base=None)
    async with open_() as store:
        assert store.worktree("job") == ready
        assert store.worktree("other") == worktree("other")
        await store.save([changed(removed)]).wait()
    async with open_() as store:
        assert store.worktree("job") == removed


async def check_a_worktree_outlives_the_end_of_its_job(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job(), changed(worktree())])
        await store.save([ended_waiting()]).wait()
    async with open_() as store:
        assert store.worktree("job") == worktree()


CHECKS: tuple[Check, ...] = (
    check_a_worktree_is_what_was_said_of_it_last,
    check_a_worktree_outlives_the_end_of_its_job,
)
