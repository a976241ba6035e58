"""Each change of the domain as the rows it alters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from forge_actors.domain.changes import (
    JobAdded,
    JobDispatched,
    JobEnded,
    JobRan,
    JobRequeued,
    JobWaits,
    Noted,
    RepositoryAdded,
    RepositoryChanged,
    SettingsChanged,
)

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.repositories import Repository

_encoder = msgspec.json.Encoder()


def _json(value: object) -> str:
    return _encoder.encode(value).decode()


def _optional(value: object | None) -> str | None:
    return None if value is None else _json(value)


def write(db: apsw.Connection, sql: dict[str, str], change: Change) -> None:
    """Write the rows of one change, not its event, into the open transaction."""
    _WRITERS[type(change)](db, sql, change)


def _dispatch(db: apsw.Connection, sql: dict[str, str], change: JobDispatched) -> None:
    values = (change.attempt, change.fence, change.at, change.job)
    db.execute(sql["dispatch_job"], values)
    db.execute(sql["dispatch_repository"], (change.fence, change.at, change.repo))


def _run(db: apsw.Connection, sql: dict[str, str], change: JobRan) -> None:
    db.execute(sql["run_job"], (change.at, _json(change.identity), change.job))


def _wait(db: apsw.Connection, sql: dict[str, str], change: JobWaits) -> None:
    db.execute(sql["wait_job"], (change.state, change.job))


def _requeue(db: apsw.Connection, sql: dict[str, str], change: JobRequeued) -> None:
    values = (change.state, _optional(change.error), change.at, change.job)
    db.execute(sql["requeue_job"], values)


def _add_repository(
    db: apsw.Connection, sql: dict[str, str], change: RepositoryAdded
) -> None:
    repository = change.repository
    values = (repository.id, *_fields(repository))
    added = (*values, repository.enabled, repository.added_at, None)
    db.execute(sql["add_repository"], added)


def _change_repository(
    db: apsw.Connection, sql: dict[str, str], change: RepositoryChanged
) -> None:
    repository = change.repository
    fields = (*_fields(repository), repository.enabled, repository.removed_at)
    db.execute(sql["change_repository"], (*fields, repository.id))


def _nothing(
    db: apsw.Connection, sql: dict[str, str], change: Noted | SettingsChanged
) -> None:
    """The event says all of it."""


def _fields(repository: Repository) -> tuple[object, ...]:
    return (
        repository.name,
        repository.path,
        repository.common_dir,
        repository.device,
        repository.inode,
    )


def _end(db: apsw.Connection, sql: dict[str, str], change: JobEnded) -> None:
    receipt = change.receipt
    values = (
        change.state,
        _optional(change.error),
        change.at,
        None if receipt is None else _encoder.encode(receipt),
        None if receipt is None else receipt.started_at,
        change.job,
    )
    db.execute(sql["end_job"], values)


def _add(db: apsw.Connection, sql: dict[str, str], change: JobAdded) -> None:
    job, details = change.job, change.details
    values = (
        job.id,
        job.repo,
        job.kind,
        job.state,
        job.priority,
        details.provider,
        _json(job.claims),
        _json(job.after),
        job.replay,
        job.attempt,
        job.max_attempts,
        _encoder.encode(change.spec),
        details.name,
        _json(details.labels),
        details.origin,
        details.unique,
        details.request_id,
        details.digest,
        details.retry_of,
        details.created_at,
        job.queued_at,
    )
    db.execute(sql["add_job"], values)


#: By type, as nine tests of a `match` cost more than the statement for the last.
_WRITERS: dict[type, Callable[[apsw.Connection, dict[str, str], Any], None]] = {
    JobAdded: _add,
    JobWaits: _wait,
    JobDispatched: _dispatch,
    JobRan: _run,
    JobRequeued: _requeue,
    JobEnded: _end,
    RepositoryAdded: _add_repository,
    RepositoryChanged: _change_repository,
    SettingsChanged: _nothing,
    Noted: _nothing,
}
