"""Each change of the domain as the rows it alters."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
)

if TYPE_CHECKING:
    import apsw

    from forge_actors.domain.changes import Change
    from forge_actors.domain.repositories import Repository

_encoder = msgspec.json.Encoder()


def _json(value: object) -> str:
    return _encoder.encode(value).decode()


def _optional(value: object | None) -> str | None:
    return None if value is None else _json(value)


def write(db: apsw.Connection, sql: dict[str, str], change: Change, seq: int) -> None:
    """Write one change and its event into the open transaction."""
    match change:
        case JobDispatched():
            values: tuple[object, ...]
            values = (change.attempt, change.fence, change.at, change.job)
            db.execute(sql["dispatch_job"], values)
            turn = (change.fence, change.at, change.repo)
            db.execute(sql["dispatch_repository"], turn)
        case JobRan():
            values = (change.at, _json(change.identity), change.job)
            db.execute(sql["run_job"], values)
        case JobEnded():
            _end(db, sql, change)
        case JobAdded():
            _add(db, sql, change)
        case JobWaits():
            db.execute(sql["wait_job"], (change.state, change.job))
        case JobRequeued():
            values = (change.state, _optional(change.error), change.at, change.job)
            db.execute(sql["requeue_job"], values)
        case RepositoryAdded(repository):
            values = (repository.id, *_fields(repository))
            added = (*values[:6], repository.enabled, repository.added_at, None)
            db.execute(sql["add_repository"], added)
        case RepositoryChanged(repository):
            fields = (*_fields(repository), repository.enabled, repository.removed_at)
            db.execute(sql["change_repository"], (*fields, repository.id))
        case Noted():
            pass
    event = change.event
    row = (seq, event.at, event.kind, event.repo, event.job, _json(event.data))
    db.execute(sql["add_event"], row)


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
