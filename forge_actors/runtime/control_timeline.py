"""What can be asked of the past: a timeline of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.timeline import (
    DEFAULT_SPAN,
    LIMITS_WITHIN,
    MAX_STILL,
    PastFacts,
    Timeline,
    TimelineQuery,
    events_to_read,
)
from forge_actors.domain.timeline_record import Record
from forge_actors.domain.timeline_telling import Known, timeline
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.event_log import LOOKED_AT_ONCE
from forge_actors.runtime.moments import window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.events import Event

#: Jobs that are looked up before others get their turn.
JOBS_AT_ONCE = 500


class TimelineControl(ControlBase):
    """The part of the port `Control` that is about what ran when."""

    async def timeline(self, query: TimelineQuery) -> Timeline:
        now = self._clock.wall()
        since, until = window(query.since or DEFAULT_SPAN, query.until, now)
        repos = await self._events.repositories(query.repo) if query.repo else None
        record = Record(since, until, limit=query.limit, repos=repos)
        read_from = await self._read_into(record, since, until)
        await self._stood(record)
        record.close()
        facts = await self._past_facts(record.jobs())
        ids = json.dumps(sorted(record.repositories()))
        named = dict(self._store.read("repository_names", ids))
        live = query.until is None or until >= round(now, 3)
        known = Known(facts, named, timestamp, live, read_from)
        return timeline(record, known)

    async def _read_into(self, record: Record, since: float, until: float) -> float:
        """Tell it all events that it needs; the moment from which on they were."""
        log = self._events
        begins, ends = log.before(since), log.before(until)
        after, last = events_to_read(begins, ends, log.last)
        whole, first = after == 0, since
        while after < last:
            page = self._store.events(after, min(LOOKED_AT_ONCE, last - after))
            if not page:
                break
            if not whole:
                whole, first = True, max(page[0].at, since)
            for event in page:
                record.apply(event)
            after = page[-1].seq
            await trio.lowlevel.checkpoint()
        if not record.limits:
            for event in self._last_limits(log.last):
                record.apply(event)
        return first

    def _last_limits(self, last: int) -> Iterable[Event]:
        """The last event that told them, if it is among the last ones."""
        after = max(0, last - LIMITS_WITHIN)
        return self._store.find_events(after, last, {"kind": ("limits",)})[-1:]

    async def _stood(self, record: Record) -> None:
        repo, job, left = "", "", MAX_STILL
        while left > 0:
            rows = self._store.read("still_facts", repo, job, LOOKED_AT_ONCE)
            for row in rows:
                record.stood(PastFacts(*row))
            if len(rows) < LOOKED_AT_ONCE:
                return
            job, repo = rows[-1][:2]
            left -= len(rows)
            await trio.lowlevel.checkpoint()

    async def _past_facts(self, jobs: set[str]) -> dict[str, PastFacts]:
        found: dict[str, PastFacts] = {}
        wanted = sorted(jobs)
        for start in range(0, len(wanted), JOBS_AT_ONCE):
            ids = json.dumps(wanted[start : start + JOBS_AT_ONCE])
            for row in self._store.read("past_facts", ids):
                found[row[0]] = PastFacts(*row)
            await trio.lowlevel.checkpoint()
        return found
