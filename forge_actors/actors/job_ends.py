"""The half of the lookout that is about jobs: which have ended that are waited for.

That there is something to be read is told by the store; what has ended is read in the
history, from where it was read last. What one end costs goes by the schedules that wait
for it, not by all there are.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import structs

from forge_actors.actors.followed import Found
from forge_actors.domain.causes import AllOf, Ended
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.sightings import (
    End,
    EndsSeen,
    comes_of,
    end_of,
    heeds,
    see_end,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from forge_actors.actors.followed import Followed
    from forge_actors.actors.lookout_messages import EndsStore
    from forge_actors.domain.causes import By, Traits
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.triggers import Window

log = logging.getLogger(__name__)

#: Events that are looked through before others have their turn.
PIECE = 5000
#: Events after which it is saved that there was nothing in them.
SAVED_AFTER = 10_000
_ENDS = {f"job_{state}": state for state in sorted(TERMINAL)}


class Tell(Protocol):
    """Tells a schedule how far is seen now, and what came to pass."""

    def __call__(
        self,
        one: Followed,
        windows: Sequence[Window] = (),
        earlier: int = 0,
        blind: str = "",
    ) -> None: ...


class _Waiting:
    """The schedules of one repository that wait for ends of its jobs."""

    def __init__(self, last: int) -> None:
        self.ones: dict[str, Followed] = {}
        #: Those that were added since the history was read last.
        self.fresh: dict[str, Followed] = {}
        #: Up to where it was read for all the others, and where that was saved.
        self.after = self.saved = last
        self._exact: dict[tuple[By, str], dict[str, Followed]] = {}
        self._patterns: dict[str, Followed] = {}

    def add(self, one: Followed) -> None:
        self.ones[one.id] = self.fresh[one.id] = one
        for each in one.jobs:
            if each.exact:
                of = self._exact.setdefault((each.by, each.value), {})
                of[one.id] = one
            else:
                self._patterns[one.id] = one

    def drop(self, one: Followed) -> None:
        del self.ones[one.id]
        self.fresh.pop(one.id, None)
        self._patterns.pop(one.id, None)
        for each in one.jobs:
            of = self._exact.get((each.by, each.value), {})
            of.pop(one.id, None)
            if not of:
                self._exact.pop((each.by, each.value), None)

    def heeding(self, job: Traits) -> list[Followed]:
        """Those that may wait for a job such as this."""
        found = dict(self._patterns)
        for key in job.keys:
            found |= self._exact.get(key, {})
        return list(found.values())


class JobEnds:
    """Those of one lookout, which alone calls it."""

    def __init__(
        self,
        store: EndsStore,
        clock: Clock,
        *,
        ring: Callable[[str], None],
        guard: Callable[[Followed, Callable[[Followed], None]], None],
        tell: Tell,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ring = ring
        self._guard = guard
        self._tell = tell
        self._repos: dict[str, _Waiting] = {}

    def close(self) -> None:
        for repo in self._repos:
            self._store.hear_ends(repo, None)

    def add(self, one: Followed) -> None:
        """Look out for one too; what has come to pass before is read when `read` is
        called, which this has rung for."""
        last = self._store.last_event()
        if one.repo not in self._repos:
            self._repos[one.repo] = _Waiting(last)
            self._store.hear_ends(one.repo, partial(self._ring, one.repo))
        if one.ends is None:
            one.ends = EndsSeen(last)
            self._tell(one)
        elif one.ends.after > last:  # of a store that was restored since
            one.ends = structs.replace(one.ends, after=last)
            self._tell(one, blind=one.blind)
        self._repos[one.repo].add(one)
        self._ring(one.repo)

    def drop(self, one: Followed) -> None:
        of = self._repos[one.repo]
        of.drop(one)
        if not of.ones:
            del self._repos[one.repo]
            self._store.hear_ends(one.repo, None)

    async def read(self, repo: str) -> None:
        """Read in the history which jobs have ended since it was read last."""
        of = self._repos.get(repo)
        if of is None:
            return
        until, before, fresh = self._store.last_event(), of.after, dict(of.fresh)
        after = min((self._after(one) for one in fresh.values()), default=before)
        found: dict[str, Found] = {}
        after = min(after, before)
        while after < until:
            upto = min(after + PIECE, until)
            for end in self._ends(repo, after, upto):
                for one in of.heeding(end.job):
                    least = self._after(one) if one.id in fresh else before
                    if end.seq > least:
                        to = found.setdefault(one.id, Found())
                        self._guard(one, partial(self._see, end, to))
            after = upto
            await trio.lowlevel.checkpoint()
        for one in fresh.values():
            to = found.setdefault(one.id, Found())
            self._guard(one, partial(self._see_job, to))
        of.after, of.fresh = until, {}
        self._say(of, found, fresh, until)

    def _say(
        self,
        of: _Waiting,
        found: dict[str, Found],
        fresh: Iterable[str],
        until: int,
    ) -> None:
        """Tell what came to pass; and how far it was read, once in a while."""
        save = until - of.saved > SAVED_AFTER
        if save:
            of.saved = until
        for key in of.ones if save else {**found, **dict.fromkeys(fresh)}:
            one, news = of.ones.get(key), found.get(key)
            if one is None or one.ends is None:
                continue
            late = until - one.ends.after > SAVED_AFTER
            one.ends = structs.replace(one.ends, after=until)
            if news is not None and news.any:
                self._tell(one, tuple(news.windows), news.earlier, news.blind)
            elif save or late:
                self._tell(one, blind=one.blind)

    @staticmethod
    def _after(one: Followed) -> int:
        assert one.ends is not None, "it has been added"
        return one.ends.after

    def _ends(self, repo: str, after: int, until: int) -> Iterator[End]:
        fields = {"kind": tuple(_ENDS), "repo": (repo,)}
        for event in self._store.find_events(after, until, fields):
            job = None if event.job is None else self._store.traits(event.job)
            if job is not None:
                yield End(event.seq, _ENDS[event.kind], event.at, job)

    def _see(self, end: End, found: Found, one: Followed) -> None:
        cause, seen = one.cause, one.ends
        assert isinstance(cause, Ended | AllOf), "it waits for jobs"
        assert seen is not None, "it has been added"
        if one.of_one_job:
            self._see_job(found, one)
            return
        if not heeds(cause, end):
            return
        if comes_of(one.name, end.job, self._store.traits, self._store.window_of):
            log.info("job %s comes of schedule %s itself", end.job.job, one.name)
            return
        one.ends, window = see_end(cause, seen, end)
        found.add(window)

    def _see_job(self, found: Found, one: Followed) -> None:
        """One job may have ended before anybody waited for it."""
        cause, seen = one.cause, one.ends
        if not isinstance(cause, Ended) or not one.of_one_job or seen is None:
            return
        if seen.reached:
            return
        job = self._store.traits(cause.jobs.value)
        state = None if job is None else self._store.state(job.job)
        if job is None or state is None:
            blind = f"job {cause.jobs.value} is not known any more"
        elif state not in TERMINAL:
            return
        elif cause.counts(state):
            one.ends = structs.replace(seen, reached={"job": job.job})
            found.add(end_of(job, state, self._clock.wall()))
            return
        else:
            blind = f"job {job.job} is {state}, and comes to nothing else"
        found.any, found.blind = blind != one.blind, blind
