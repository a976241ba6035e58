"""What every store keeps of what agents used, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from forge_actors.domain.agents import Usage
from forge_actors.domain.changes import AttemptUsed
from forge_actors.domain.spending import AttemptUsage
from forge_actors.testing.made_changes import ended_waiting, job, repository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]


def used(
    attempt: int, usage: Usage, session: str | None = "s", *, resumed: bool = False
) -> AttemptUsed:
    """That an attempt of the job used so much."""
    return AttemptUsed(
        AttemptUsage(
            job="job",
            attempt=attempt,
            repo="repo",
            provider="codex",
            agent="codex",
            usage=usage,
            at=30.0 + attempt,
            session=session,
            resumed=resumed,
        )
    )


async def check_what_a_session_used_is_known_from_its_beginning(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job()])
        assert store.session_usage("codex", "s") is None
        store.save([used(1, Usage(100, 7, 3))])
        assert store.session_usage("codex", "s") == Usage(100, 7, 3), "at once"
        # Of this one nothing was told: it is counted with the next that is.
        await store.save([used(2, Usage(), resumed=True)]).wait()
    async with open_() as store:
        await store.save([used(3, Usage(20, 1, 0, 0.5), resumed=True)]).wait()
        assert store.session_usage("codex", "s") == Usage(120, 8, 3, 0.5)
        assert store.session_usage("claude", "s") is None


async def check_a_session_that_began_elsewhere_is_not_known(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job()])
        await store.save([used(1, Usage(100, 7, 3), resumed=True)]).wait()
        assert store.session_usage("codex", "s") is None


async def check_what_was_used_outlives_the_end_of_its_job(open_: Open) -> None:
    async with open_() as store:
        store.save([repository(), job(), used(1, Usage(100, 7, 3))])
        await store.save([ended_waiting()]).wait()
    async with open_() as store:
        assert store.session_usage("codex", "s") == Usage(100, 7, 3)


CHECKS: tuple[Check, ...] = (
    check_what_a_session_used_is_known_from_its_beginning,
    check_a_session_that_began_elsewhere_is_not_known,
    check_what_was_used_outlives_the_end_of_its_job,
)
