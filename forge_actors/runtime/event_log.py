"""The event log as readers see it: pages of it, filtered, and waiting for what comes.

A page costs what it looks at, so a filter over a long log is read in bounded pieces,
with room for everybody else in between. Who follows the log without a filter is at its
end with all the others, and they share one page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.events import (
    GATHER_SECONDS,
    KINDS,
    EventPage,
    EventQuery,
    EventView,
    number_before,
)
from forge_actors.domain.requests import nearest
from forge_actors.runtime.moments import parse_moment
from forge_actors.runtime.views import event_view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.events import Event
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.redaction import Roots
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.held import Held
    from forge_actors.runtime.registry import Registry

#: Events looked at before others get their turn; a few milliseconds.
LOOKED_AT_ONCE = 2000


class EventLog:
    """The events of one runtime."""

    def __init__(
        self,
        store: SqliteStore,
        registry: Registry,
        clock: Clock,
        held: Held,
        roots: Roots,
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._held = held
        self._roots = roots
        #: The page that was read last, by what it answers.
        self._last_page: tuple[tuple[EventQuery, int], EventPage] | None = None

    @property
    def last(self) -> int:
        """The number of the last event that is durable."""
        last: int = self._store.committed.value
        return last

    @property
    def first(self) -> int:
        """The number of the first event that is kept, or that will be the first."""
        first: int = self._store.history_range()[0]
        return first

    async def page(self, query: EventQuery, *, wait: bool) -> EventPage:
        """See `Control.events`."""
        since = self._moment(query)
        query = structs.replace(await self._resolved(query), since=since)
        if wait and query.after is None and query.since is None:
            query = structs.replace(query, after=self.last)
        if query.after is None and since is not None:
            query = structs.replace(query, after=self.before(since))
        query = structs.replace(query, after=query.after or 0)
        if query.newest:
            return await self._newest(query)
        while True:
            page = await self._read(query)
            if page.events or not wait:
                return page
            if query.after != page.next.after:
                await trio.sleep(GATHER_SECONDS)  # there were some, for others
            query = page.next
            if not await self.news(query.after or 0):
                return page

    async def news(self, after: int) -> bool:
        """Wait for a later event; False if the runtime ends."""
        committed = self._store.committed
        return await self._held.wait(
            lambda: committed.wait_value(lambda last: last > after)
        )

    async def _read(self, query: EventQuery) -> EventPage:
        key = (query, self.last)
        if self._last_page is not None and self._last_page[0] == key:
            return self._last_page[1]
        after, last = query.after or 0, self.last
        found: list[Event] = []
        while after < last and len(found) < query.limit:
            until = min(after + LOOKED_AT_ONCE, last)
            found += self._find(query, after, until)
            after = until
            await trio.lowlevel.checkpoint()
        if len(found) > query.limit:
            del found[query.limit :]
            after = found[-1].seq
        page = EventPage(self._views(found), structs.replace(query, after=after))
        self._last_page = (key, page)
        return page

    async def _newest(self, query: EventQuery) -> EventPage:
        first, until = query.after or 0, self.last
        going_on = structs.replace(query, after=until, newest=False)
        found: list[Event] = []
        while until > first and len(found) < query.limit:
            after = max(first, until - LOOKED_AT_ONCE)
            found = self._find(query, after, until) + found
            until = after
            await trio.lowlevel.checkpoint()
        return EventPage(self._views(found[-query.limit :]), going_on)

    def _find(self, query: EventQuery, after: int, until: int) -> list[Event]:
        fields = {"repo": query.repo, "job": query.job, "kind": query.kind}
        found = self._store.find_events(after, until, fields)
        since = self._moment(query)
        return [event for event in found if since is None or event.at >= since]

    def _moment(self, query: EventQuery) -> float | None:
        if isinstance(query.since, str):
            return parse_moment(query.since, self._clock.wall(), field="since")
        return query.since

    def _views(self, events: list[Event]) -> list[EventView]:
        names: dict[str, str] = {}
        for query, ids in (
            ("repository_names", {event.repo for event in events if event.repo}),
            ("job_names", {event.job for event in events if event.job}),
        ):
            if ids:
                names |= dict(self._store.read(query, json.dumps(list(ids))))
        return [event_view(event, names, self._roots) for event in events]

    def before(self, moment: float) -> int:
        """The number before that of the first event at or after a moment."""

        def behind(number: int) -> tuple[int, float]:
            [event] = self._store.events(number, 1)
            return event.seq, event.at

        return number_before(moment, self.last, behind)

    async def _resolved(self, query: EventQuery) -> EventQuery:
        """The query with ids in place of names, paths and parts of ids."""
        for kind in query.kind:
            if kind not in KINDS:
                near = nearest(kind, KINDS)
                hint = f"; did you mean {near!r}?" if near else ""
                raise InvalidInput("kind", f"{kind!r} is unknown{hint}", allowed=KINDS)
        if not (query.repo or query.job):
            return query
        repos = await self.repositories(query.repo)
        jobs = [self._store.match(selector) for selector in query.job]
        return structs.replace(query, repo=tuple(repos), job=tuple(jobs))

    async def repositories(self, names: Iterable[str]) -> list[str]:
        """The ids of all repositories that are meant."""
        return [repo for name in names for repo in await self._repositories(name)]

    async def _repositories(self, name: str) -> list[str]:
        """The id of a repository; of removed ones, those of all that had the name."""
        try:
            return [(await self._registry.find(name))[0].id]
        except NotFound:
            removed = [row[0] for row in self._store.read("removed_named", name)]
            if not removed:
                raise
            return removed
