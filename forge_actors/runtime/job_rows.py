"""Rows of jobs: which of them a filter means, the newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import Refused
from forge_actors.domain.selection import BLOCKED, FAILED, MAX_SELECTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.domain.requests import JobQuery
    from forge_actors.domain.selection import JobFilter, Selection
    from forge_actors.edges.sqlite.store import SqliteStore

#: Jobs that are looked at, or changed, before others get their turn.
PIECE = 500

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


def list_rows(
    store: SqliteStore, query: JobQuery, repos: Sequence[str]
) -> list[tuple[Any, ...]]:
    """The rows of the jobs that a query asks for; `repos` are ids of repositories."""
    conditions, values = _conditions(query, repos)
    if query.before is not None:
        conditions.append("job.id < ?")
        values.append(query.before)
    return _newest(store, _LISTED, conditions, values, query.limit)


def pieces(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The same ids, as many at once as others can wait for."""
    for start in range(0, len(ids), PIECE):
        yield tuple(ids[start : start + PIECE])


def select_ids(
    store: SqliteStore,
    selection: Selection,
    repos: Sequence[str],
    ids: Sequence[str],
) -> list[str]:
    """The ids that a selection means; `ids` are those of its jobs.

    Raises:
        Refused: they are more than MAX_SELECTED.
    """
    conditions, values = _conditions(selection, repos)
    if ids:
        conditions.append("job.id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(ids))
    if selection.unretried:
        retried = "SELECT retry_of FROM job WHERE retry_of IS NOT NULL"
        conditions.append(f"job.id NOT IN ({retried})")
    text = "SELECT job.id FROM job"
    rows = _newest(store, text, conditions, values, MAX_SELECTED + 1)
    if len(rows) > MAX_SELECTED:
        raise Refused(
            f"more than {MAX_SELECTED} jobs are selected; narrow it by repository,"
            " state, kind or label"
        )
    return [str(row[0]) for row in rows]


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


def _newest(
    store: SqliteStore,
    select: str,
    conditions: Sequence[str],
    values: Sequence[object],
    limit: int,
) -> list[tuple[Any, ...]]:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    text = f"{select}{where} ORDER BY job.id DESC LIMIT ?"
    return store.reader.execute(text, (*values, limit)).fetchall()
