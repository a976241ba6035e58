"""The timeline of a home that nothing serves, as the service would tell it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.client import offline
from forge_actors.domain.errors import NotFound
from forge_actors.domain.events import Event, number_before
from forge_actors.domain.timeline import (
    LIMITS_WITHIN,
    MAX_STILL,
    PastFacts,
    events_to_read,
)
from forge_actors.domain.timeline_record import Record
from forge_actors.domain.timeline_telling import Known, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import apsw

_FACTS = """\
SELECT id, repo, name, kind, provider, state, attempt, created_at, queued_at,
    dispatched_at, started_at, finished_at,
    json_extract(CAST(receipt AS TEXT), '$.exit_code'), held_at
FROM job WHERE {}"""
_THESE = "id IN (SELECT value FROM json_each(?))"
_STILL = f"finished_at IS NULL ORDER BY repo, id LIMIT {MAX_STILL}"
_NAMES = "SELECT id, name FROM repository"
_NAMED = "SELECT id FROM repository WHERE ? IN (name, id, path)"
_PAGES = """\
SELECT first, events FROM history
WHERE first >= coalesce((SELECT max(first) FROM history WHERE first <= ?1 + 1), 0)
ORDER BY first"""
_LAST = "SELECT first, events FROM history ORDER BY first DESC LIMIT 1"

_decode = msgspec.json.Decoder(list[Event]).decode


def told(
    home: str,
    since: float,
    until: float,
    repos: Sequence[str],
    limit: int,
    *,
    live: bool,
) -> dict[str, Any]:
    """What a `GET /v1/timeline` would say of this window.

    Raises:
        Unavailable, StoreFromTheFuture: there is no store, or a newer one.
        NotFound: there is no such repository.
    """
    with offline.opened(home) as store:
        names: dict[str, str] = dict(_rows(store, _NAMES))
        wanted = [repo for name in repos for repo in _repositories(store, name)]
        record = Record(since, until, limit=limit, repos=wanted or None)
        read_from = _read_into(record, store)
        for row in _rows(store, _FACTS.format(_STILL)):
            record.stood(PastFacts(*row))
        record.close()
        ids = json.dumps(sorted(record.jobs()))
        rows = _rows(store, _FACTS.format(_THESE), ids)
    facts = {row[0]: PastFacts(*row) for row in rows}
    known = Known(facts, names, _moment, live=live, read_from=read_from)
    shown: dict[str, Any] = msgspec.to_builtins(timeline(record, known))
    return shown


def _read_into(record: Record, store: apsw.Connection) -> float:
    """Tell it all events that it needs; the moment from which on they were."""
    last = _last(store)

    def behind(number: int) -> tuple[int, float]:
        seq, event = next(iter(_events(store, number)))
        return seq, event.at

    begins = number_before(record.since, last, behind)
    after, until = events_to_read(
        begins, number_before(record.until, last, behind), last
    )
    first: float | None = None
    for seq, event in _events(store, after):
        if seq > until:
            break
        if first is None and after > 0:
            first = event.at
        record.apply(event)
    if not record.limits:
        near = _events(store, max(0, last - LIMITS_WITHIN))
        for event in [event for _, event in near if event.kind == "limits"][-1:]:
            record.apply(event)
    return record.since if first is None else max(first, record.since)


def _last(store: apsw.Connection) -> int:
    for first, page in _rows(store, _LAST):
        return int(first) + len(_decode(page)) - 1
    return 0


def _events(store: apsw.Connection, after: int) -> Iterator[tuple[int, Event]]:
    rows: Iterator[tuple[Any, ...]] = store.execute(_PAGES, (after,))
    for first, page in rows:
        for number, event in enumerate(_decode(page), start=first):
            if number > after:
                yield number, event


def _repositories(store: apsw.Connection, name: str) -> list[str]:
    rows = _rows(store, _NAMED, offline.findable(name))
    if not rows:
        raise NotFound(f"repo: no repository is called {name!r}")
    return [row[0] for row in rows]


def _rows(store: apsw.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    return store.execute(query, values).fetchall()


def _moment(seconds: float) -> str:
    return offline.moment(seconds) or ""
