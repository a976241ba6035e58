"""Rows of jobs: which of them a filter means, the newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from forge_actors.domain.errors import Refused
from forge_actors.domain.jobs import ACTIVE, TERMINAL
from forge_actors.domain.selection import BLOCKED, FAILED, MAX_SELECTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from forge_actors.domain.jobs import State
    from forge_actors.domain.requests import JobQuery
    from forge_actors.domain.selection import JobFilter, Selection
    from forge_actors.edges.sqlite.store import SqliteStore

#: Jobs that are looked at, or changed, before others get their turn.
PIECE = 500
#: Rows that are looked at for some like those wanted: at first, and then at once.
FIRST_LOOK = 200
LOOK = 2000
#: As many jobs are looked up one by one sooner than all are looked at.
FEW = 5000
#: Behind every id.
_NEWEST = "~"
#: States of jobs that are known one by one, and those that `failed` may mean.
_APART = ACTIVE - {"queued"}
_UNSUCCESSFUL = TERMINAL - {"succeeded"}

_LISTED = """\
SELECT job.id, state, kind, repository.name, job.name, spec, priority, attempt,
    max_attempts, job.fence, claims, after, provider, replay, retry_of, labels, origin,
    request_id, created_at, queued_at, started_at, finished_at, identity, error,
    receipt, job.repo, held_at, refused
FROM job JOIN repository ON repository.id = job.repo"""

_FAILED = (
    f"(state IN ({', '.join('?' * len(FAILED))}) OR"
    " (error IS NOT NULL AND json_extract(error, '$.code') = ?))"
)


class _Where(NamedTuple):
    """What rows must be like; `few`: only those few are looked at."""

    conditions: list[str]
    values: list[object]
    few: bool


async def list_rows(
    store: SqliteStore, query: JobQuery, repos: Sequence[str]
) -> list[tuple[Any, ...]]:
    """The rows of the jobs that a query asks for; `repos` are ids of repositories."""
    where = _where(store, query, repos)
    if where is None:
        return []
    return await _newest(store, _LISTED, where, query.limit, query.before)


def pieces(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The same ids, as many at once as others can wait for."""
    for start in range(0, len(ids), PIECE):
        yield tuple(ids[start : start + PIECE])


async def select_ids(
    store: SqliteStore,
    selection: Selection,
    repos: Sequence[str],
    ids: Sequence[str],
) -> list[str]:
    """The ids that a selection means; `ids` are those of its jobs.

    Raises:
        Refused: they are more than MAX_SELECTED.
    """
    where = _where(store, selection, repos)
    if where is None:
        return []
    if ids:
        where.conditions.append("job.id IN (SELECT value FROM json_each(?))")
        where.values.append(json.dumps(ids))
    if selection.unretried:
        retried = "SELECT retry_of FROM job WHERE retry_of IS NOT NULL"
        where.conditions.append(f"job.id NOT IN ({retried})")
    if ids or selection.unretried:
        where = where._replace(few=True)  # what is looked up is looked up once
    text = "SELECT job.id FROM job"
    rows = await _newest(store, text, where, MAX_SELECTED + 1, None)
    if len(rows) > MAX_SELECTED:
        raise Refused(
            f"more than {MAX_SELECTED} jobs are selected; narrow it by repository,"
            " state, kind or label"
        )
    return [str(row[0]) for row in rows]


def _where(
    store: SqliteStore, wanted: JobFilter, repos: Sequence[str]
) -> _Where | None:
    """What the jobs must be like, and how to find them; None: there are none.

    How many are in which state is known without looking at any.
    """
    conditions, values = _conditions(wanted, repos)
    states: Collection[State] = wanted.state or (_UNSUCCESSFUL if wanted.failed else ())
    there = store.tally.by_state()
    if states and there.keys().isdisjoint(states):
        return None
    if states and _APART.issuperset(states):
        ids = [job for state in set(states) for job in store.tally.those(state)]
        if len(ids) <= FEW:
            conditions.append("job.id IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(ids))
            return _Where(conditions, values, few=True)
    active = wanted.active or (states and ACTIVE.issuperset(states))
    if active and store.active <= FEW:
        conditions.append("job.id IN (SELECT id FROM job WHERE finished_at IS NULL)")
        return _Where(conditions, values, few=True)
    return _Where(conditions, values, few=not conditions)


def _conditions(
    wanted: JobFilter, repos: Sequence[str]
) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    for column, words in (
        ("job.repo", repos),
        ("state", wanted.state),
        ("kind", wanted.kind),
        ("origin", wanted.origin),
        ("work", wanted.work),
    ):
        if words:
            marks = ", ".join("?" * len(words))
            conditions.append(f"{column} IN ({marks})")
            values += words
    for label in wanted.label:
        conditions.append("EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)")
        values.append(label)
    if wanted.failed:
        conditions.append(_FAILED)
        values += (*FAILED, BLOCKED)
    if wanted.active:
        conditions.append("finished_at IS NULL")
    return conditions, values


async def _newest(
    store: SqliteStore, select: str, where: _Where, limit: int, before: str | None
) -> list[tuple[Any, ...]]:
    """The newest rows. Where many may have to be looked at for them, it is some at a
    time, so that others have their turn."""
    rows: list[tuple[Any, ...]] = []
    size = FIRST_LOOK
    while True:
        conditions, values = [*where.conditions], [*where.values]
        if before is not None:
            conditions.append("job.id < ?")
            values.append(before)
        last = None if where.few else _place(store, before, size)
        if last is not None:
            conditions.append("job.id >= ?")
            values.append(last)
        such = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        text = f"{select}{such} ORDER BY job.id DESC LIMIT ?"
        rows += store.reader.execute(text, (*values, limit - len(rows))).fetchall()
        if last is None or len(rows) >= limit:
            return rows
        before, size = last, LOOK
        await trio.lowlevel.checkpoint()


def _place(store: SqliteStore, before: str | None, count: int) -> str | None:
    """The job so many places further back; None if there are not so many."""
    found = store.reader.execute(
        "SELECT id FROM job WHERE id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
        (_NEWEST if before is None else before, count - 1),
    ).fetchall()
    return str(found[0][0]) if found else None
