"""Reads the events of a home that nothing serves, as the service would tell them."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forge_actors.client import offline
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.events import KINDS, shown_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import apsw

_NAMES = "SELECT id, name FROM {} WHERE id IN (SELECT value FROM json_each(?))"


def lines(home: str, query: Sequence[tuple[str, object]]) -> list[bytes]:
    """The lines that a `GET /v1/events` with these parameters would answer.

    Raises:
        Unavailable, StoreFromTheFuture: there is no store, or a newer one.
        NotFound, Refused, InvalidInput: what is asked for is not there, or no event.
    """
    single = dict(query)
    limit, after = int(str(single["limit"])), int(str(single.get("after") or 0))
    since = _since(single.get("since"))
    wanted: dict[str, list[str]] = {"repo": [], "job": [], "kind": []}
    with offline.opened(home) as store:
        for name, value in query:
            if name == "repo":
                wanted["repo"] += _repositories(store, str(value))
            elif name == "job":
                wanted["job"].append(offline.job(home, str(value))["id"])
            elif name == "kind" and value not in KINDS:
                raise InvalidInput("kind", f"{value!r} is unknown", allowed=KINDS)
            elif name == "kind":
                wanted["kind"].append(str(value))
        found: list[dict[str, Any]] = []
        for event in _events(store, after):
            if event["at"] >= since and all(
                not values or event.get(name) in values
                for name, values in wanted.items()
            ):
                found.append(event)
                if single.get("newest"):
                    found = found[-limit:]
                elif len(found) == limit:
                    break
        names = _names(store, found)
    roots = offline.roots_of(home)
    return [_line(event, names, roots) for event in found]


def _events(store: apsw.Connection, after: int) -> Iterator[dict[str, Any]]:
    first_page = "SELECT coalesce(max(first), 0) FROM history WHERE first <= ?"
    start = store.execute(first_page, (after + 1,)).get
    rows = store.execute(
        "SELECT first, events FROM history WHERE first >= ? ORDER BY first", (start,)
    )
    for first, page in rows:
        for number, event in enumerate(json.loads(page), start=first):
            if number > after:
                yield {**event, "seq": number}


def _since(text: object) -> float:
    if text is None:
        return 0.0
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return time.time() - parse_duration(str(text), field="since")
    if moment.tzinfo is None:
        raise InvalidInput("since", f"{text!r} names no zone, such as Z")
    return moment.timestamp()


def _repositories(store: apsw.Connection, name: str) -> list[str]:
    rows = store.execute(
        "SELECT id FROM repository WHERE ? IN (name, id, path)",
        (offline.findable(name),),
    ).fetchall()
    if not rows:
        raise NotFound(f"repo: no repository is called {name!r}")
    return [str(row[0]) for row in rows]


def _names(store: apsw.Connection, events: Sequence[dict[str, Any]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for field, table in (("repo", "repository"), ("job", "job")):
        ids = json.dumps([event[field] for event in events if field in event])
        names |= {
            str(key): str(name)
            for key, name in store.execute(_NAMES.format(table), (ids,)).fetchall()
            if name is not None
        }
    return names


def _line(event: dict[str, Any], names: dict[str, str], roots: Any) -> bytes:
    repo, job = event.get("repo"), event.get("job")
    told = {
        "seq": event["seq"],
        "at": offline.moment(event["at"]),
        "kind": event["kind"],
        "repo": names.get(repo or ""),
        "job": job,
        "data": shown_data(event.get("data", {}), roots),
        "repo_id": repo,
        "job_name": names.get(job or ""),
    }
    required = ("repo", "job")
    kept = {k: v for k, v in told.items() if v is not None or k in required}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
