"""What everything keeps that looks at checkouts or watches them, as checks to run.

Call each of `SAMPLER_CHECKS` and `WATCH_CHECKS` with a `Place`: where a repository is
that the checks may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import FileWatch, StatusSampler
    from forge_actors.domain.repositories import Repository

    Check = Callable[["Place"], Awaitable[None]]

#: Seconds that git may take in these checks, and that a change takes to be told.
LIMIT, SOON = 60.0, 60.0
#: Seconds in which nothing is told that should not be.
NEVER = 0.3


class Place(Protocol):
    """A clean checkout with one commit, and another one beside it."""

    sampler: StatusSampler
    watch: FileWatch
    repository: Repository
    other: Repository

    def change(self, repository: Repository) -> None:
        """Add a file that is not tracked."""

    def remove(self) -> None:
        """The folder of `repository` is gone."""

    def hang(self) -> None:
        """From now on git never ends in `repository`."""


async def check_a_sample_tells_the_status_and_what_it_cost(place: Place) -> None:
    first = await place.sampler.sample(place.repository, LIMIT)
    assert first.problem is None
    assert first.status is not None
    assert first.status.clean
    assert first.status.branch == "main"
    assert first.status.head is not None
    assert first.cost > 0
    place.change(place.repository)
    second = await place.sampler.sample(place.repository, LIMIT)
    assert second.status is not None
    assert (second.status.untracked, second.status.clean) == (1, False)


async def check_what_cannot_be_sampled_is_an_answer(place: Place) -> None:
    place.remove()
    gone = await place.sampler.sample(place.repository, LIMIT)
    assert gone.status is None
    assert place.repository.path in (gone.problem or "")
    other = await place.sampler.sample(place.other, LIMIT)
    assert other.status is not None


async def check_a_sample_ends_at_its_limit(place: Place) -> None:
    place.hang()
    late = await place.sampler.sample(place.repository, 0.2)
    assert late.status is None
    assert late.problem == "git took longer than 0.2 s"


async def check_a_sample_can_be_cancelled(place: Place) -> None:
    place.hang()
    with trio.fail_after(LIMIT), trio.move_on_after(0.2) as scope:
        await place.sampler.sample(place.repository, 60.0)
    assert scope.cancelled_caught


async def check_samples_of_several_repositories_go_on_at_once(place: Place) -> None:
    place.hang()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.sampler.sample, place.repository, 60.0)
        with trio.fail_after(LIMIT):
            sample = await place.sampler.sample(place.other, LIMIT)
        nursery.cancel_scope.cancel()
    assert sample.status is not None


SAMPLER_CHECKS: tuple[Check, ...] = (
    check_a_sample_tells_the_status_and_what_it_cost,
    check_what_cannot_be_sampled_is_an_answer,
    check_a_sample_ends_at_its_limit,
    check_a_sample_can_be_cancelled,
    check_samples_of_several_repositories_go_on_at_once,
)


async def _told(place: Place) -> set[str]:
    with trio.move_on_after(SOON):
        return await place.watch.changed()
    return set()


async def _silent(place: Place) -> bool:
    with trio.move_on_after(NEVER):
        await place.watch.changed()
        return False
    return True


async def check_a_change_is_told(place: Place) -> None:
    assert await place.watch.watch(place.repository) is None
    assert await place.watch.watch(place.other) is None
    assert await _silent(place)
    place.change(place.other)
    assert await _told(place) == {place.other.id}
    place.change(place.repository)
    assert await _told(place) == {place.repository.id}


async def check_a_change_waits_for_whoever_asks_next(place: Place) -> None:
    assert await place.watch.watch(place.repository) is None
    place.change(place.repository)
    assert await _told(place) == {place.repository.id}
    assert await _silent(place)


async def check_what_is_forgotten_is_not_told(place: Place) -> None:
    assert await place.watch.watch(place.repository) is None
    assert await place.watch.watch(place.other) is None
    place.watch.forget(place.repository.id)
    place.watch.forget(place.repository.id)  # as often as one likes
    place.change(place.repository)
    assert await _silent(place)
    place.change(place.other)
    assert await _told(place) == {place.other.id}


async def check_a_sample_changes_nothing(place: Place) -> None:
    assert await place.watch.watch(place.repository) is None
    await place.sampler.sample(place.repository, LIMIT)
    assert await _silent(place)


WATCH_CHECKS: tuple[Check, ...] = (
    check_a_change_is_told,
    check_a_change_waits_for_whoever_asks_next,
    check_what_is_forgotten_is_not_told,
    check_a_sample_changes_nothing,
)
