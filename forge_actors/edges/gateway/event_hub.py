"""The fan-out of events: one task reads the log, and wakes those who want what came.

The log is read once however many read along, and each event is put into its form on the
wire once. A reader whose filter an event does not pass is not even woken. Nobody is
waited for: a reader that falls behind the ring reads the log in pages of its own, and
one that takes nothing is cut off by the server, with the id of the event it took last.

While nobody reads, nothing is read and no timer runs; while somebody does, one timer
serves all.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import GATHER_SECONDS, EventQuery
from forge_actors.edges.gateway.event_ring import Ring, piece_of
from forge_actors.edges.gateway.sse import (
    KEEP_ALIVE,
    Filter,
    end_frame,
    entry_of,
    gap_frame,
    resume_frame,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.control_events import EventControl
    from forge_actors.domain.events import EventPage
    from forge_actors.edges.gateway.sse import Entry

log = logging.getLogger(__name__)

#: Events that are read at once, from the log as it comes and by one who is behind.
HUB_PAGE = 1000
READER_PAGE = 256
#: Of a busy log, seconds between two tellings for each reader that is woken: many
#: readers are told of more at once, or they would cost more than the jobs.
SECONDS_A_READER = 0.002
MOST_SECONDS = 0.5
#: Seconds after which a reader that was told of nothing hears that we are there; after
#: twice as many at the latest.
KEEP_ALIVE_SECONDS = 25.0
STOPPING = "the service stops"
#: Events after which one that was told of none of them learns how far it has come.
RESUME_EVENTS = 10_000


class EventHub:
    """The readers of one runtime's events, at most `limit`."""

    def __init__(self, control: EventControl, limit: int) -> None:
        self.limit = limit
        self.ring = Ring()
        self._control = control
        self._readers: set[Reader] = set()
        #: The same by what they want; those who want everything under no name.
        self._by: dict[str, set[Reader]] = {}
        self._some = trio.Event()
        self._pumping = trio.CancelScope()
        self._stopped = False
        #: Why whoever reads is to end.
        self.ended: str | None = None

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def full(self) -> bool:
        return len(self._readers) >= self.limit

    @contextmanager
    def reader(self, query: EventQuery) -> Iterator[Reader]:
        """One more reader of what follows `query.after`, its filters being ids."""
        reader = Reader(self, self._control, query)
        self._readers.add(reader)
        for key in reader.filter.keys:
            self._by.setdefault(key, set()).add(reader)
        self._some.set()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            for key in reader.filter.keys:
                self._by[key].discard(reader)
                if not self._by[key]:
                    del self._by[key]
            if not self._readers and not self._stopped:
                self._some = trio.Event()
                self._pumping.cancel()

    def stop(self) -> None:
        """Let those who read have what there is; the runtime says when that is all."""
        self._stopped = True
        self.ended = STOPPING
        self._some.set()
        if not self._readers:
            self._pumping.cancel()

    async def run(self) -> None:
        """Tell the readers, until `stop`."""
        while True:
            await self._some.wait()
            if self._stopped:
                return
            with trio.CancelScope() as self._pumping:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._keep_alive)
                    try:
                        await self._pump()
                    except ForgeError as error:
                        log.warning("the events cannot be read: %s", error)
                        self.ended = str(error)
                    for reader in self._readers:
                        reader.end(self.ended or STOPPING)
                    if self._stopped:
                        nursery.cancel_scope.cancel()
                    # The last one who leaves ends this.
            if not self._stopped:
                self.ended = None
            self.ring.begin(-1)

    async def _pump(self) -> None:
        """Tell them what comes, until nothing more does."""
        _, last = await self._control.event_range()
        self.ring.begin(last)
        for reader in self._readers:
            reader.wake()
        query = EventQuery(after=last, limit=HUB_PAGE)
        while True:
            page = await self._control.events(query, wait=True)
            if not page.events:
                return
            woken = self._tell(page)
            query = page.next
            if len(page.events) < HUB_PAGE:
                seconds = max(GATHER_SECONDS, woken * SECONDS_A_READER)
                await trio.sleep(min(seconds, MOST_SECONDS))

    def _tell(self, page: EventPage) -> int:
        """Keep what came, and wake those who want some of it; how many these are."""
        assert page.next.after is not None, "a page says where the next one begins"
        entries = [entry_of(view) for view in page.events]
        self.ring.add(entries, page.next.after)
        of_all = self._by.get("", ())
        woken = sum(reader.wake() for reader in of_all)
        if len(self._readers) > len(of_all):
            for entry in entries:
                woken += sum(reader.wake(entry.seq - 1) for reader in self._for(entry))
        return woken

    def _for(self, entry: Entry) -> Iterator[Reader]:
        """Those who want an event, and not everything."""
        for key in (f"job:{entry.job}", f"repo:{entry.repo}", f"kind:{entry.kind}"):
            for reader in self._by.get(key, ()):
                if reader.filter.takes(entry):
                    yield reader

    async def _keep_alive(self) -> None:
        while True:
            await trio.sleep(KEEP_ALIVE_SECONDS)
            for reader in self._readers:
                reader.tick()


class Reader:
    """One who reads the events; `next` is called by one task."""

    def __init__(self, hub: EventHub, control: EventControl, query: EventQuery) -> None:
        self.filter = Filter(query)
        self._hub = hub
        self._control = control
        self._query = structs.replace(query, limit=READER_PAGE, since=None)
        #: Everything up to this event was given, or is not wanted.
        self._cursor = query.after or 0
        #: The last one whose id was told.
        self._told = self._cursor
        self._waiting: trio.Event | None = None
        self._quiet = False
        self._beat = False
        self._end: str | None = hub.ended

    def wake(self, cursor: int | None = None) -> bool:
        """There is something for it, behind `cursor`; whether it had waited."""
        if self._waiting is None:
            return False
        # It waited, so it wants nothing of what came before.
        if cursor is not None and cursor > self._cursor:
            self._cursor = cursor
        self._waiting.set()
        self._waiting = None
        return True

    def tick(self) -> None:
        """A time has passed; it hears of us if it was told of nothing meanwhile."""
        if self._quiet:
            self._beat = True
            self.wake()
        self._quiet = True

    def end(self, reason: str) -> None:
        self._end = reason
        self.wake()

    async def next(self) -> bytes:
        """The next piece for it; none once it is to end.

        Raises:
            ForgeError: the log cannot be read.
        """
        data = await self._next()
        self._quiet = self._beat = False
        return data

    async def _next(self) -> bytes:
        ring = self._hub.ring
        while True:
            if self._cursor < ring.after:
                data = await self._page()
            else:
                data = self._take(ring)
            if data:
                self._told = self._cursor
                return data
            if self._cursor < ring.after:
                continue
            if self._end is not None:
                reason, self._end = self._end, ""
                return end_frame(reason) if reason else b""
            if self._beat:
                if self._cursor - self._told < RESUME_EVENTS:
                    return KEEP_ALIVE
                self._told = self._cursor
                return resume_frame(self._cursor)
            self._waiting = trio.Event()
            await self._waiting.wait()

    def _take(self, ring: Ring) -> bytes:
        if self.filter.everything:
            self._cursor, data = ring.whole(self._cursor)
        else:
            self._cursor, data = ring.some(self._cursor, self.filter.takes)
        return data

    async def _page(self) -> bytes:
        """What the log has for it; it may be nothing, but then it has come on."""
        first, last = await self._control.event_range()
        if self._cursor + 1 < first:
            gap = gap_frame(self._cursor, first, last)
            self._cursor = first - 1
            return gap
        query = structs.replace(self._query, after=self._cursor)
        page = await self._control.events(query, wait=False)
        assert page.next.after is not None, "a page says where the next one begins"
        entries = [entry_of(view) for view in page.events]
        self._cursor, data = piece_of(entries, page.next.after, lambda _: True)
        return data
