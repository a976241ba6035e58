"""Each change of the domain as the rows it alters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw
import msgspec
from msgspec import UNSET, structs

from forge_actors.domain.answers import answered, approved
from forge_actors.domain.changes import (
    AccountChanged,
    AttemptUsed,
    ClassVisited,
    CleanRunChanged,
    EffectsRefused,
    EventsForgotten,
    HookChanged,
    ItemMarked,
    JobAdded,
    JobAnswered,
    JobApproved,
    JobDelegated,
    JobDispatched,
    JobEdited,
    JobEnded,
    JobHeld,
    JobIsolated,
    JobRan,
    JobRedirected,
    JobRequeued,
    JobsForgotten,
    JobWaits,
    LookSaved,
    Noted,
    PauseBegan,
    PauseEnded,
    Quarantined,
    QuarantineEnded,
    RepositoryAdded,
    RepositoryChanged,
    SetAside,
    SettingsChanged,
    TakenBack,
    WorktreeChanged,
)
from forge_actors.domain.errors import StaleFence
from forge_actors.domain.inbox import MAX_MARKS
from forge_actors.domain.isolation import with_isolation
from forge_actors.domain.jobs import redirected
from forge_actors.domain.policy_changes import PolicySet
from forge_actors.domain.scopes import repository_scope
from forge_actors.edges.sqlite import (
    controller_rows,
    epic_rows,
    forgetting,
    scheduled,
    trusted,
    workflow_rows,
)
from forge_actors.edges.sqlite.closings import (
    begin_pause,
    end_pause,
    keep_account,
    set_policy,
)
from forge_actors.edges.sqlite.looks import save_look
from forge_actors.edges.sqlite.rows import claims_from, quarantine_from, spec_from
from forge_actors.edges.sqlite.spending import save_usage

if TYPE_CHECKING:
    from forge_actors.domain.changes import OfAttempt
    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Repository

_encoder = msgspec.json.Encoder()


def _json(value: object) -> str:
    return _encoder.encode(value).decode()


def _optional(value: object | None) -> str | None:
    return None if value is None else _json(value)


def _check(db: apsw.Connection, change: OfAttempt) -> None:
    """Refuse a change that found no row: its attempt is not the current one.

    Raises:
        StaleFence: it is not; what else was written of the move must be undone.
    """
    if not db.changes():
        raise StaleFence(change.job, change.attempt, change.fence)


def _dispatch(db: apsw.Connection, sql: dict[str, str], change: JobDispatched) -> None:
    values = (change.attempt, change.fence, change.at, change.job)
    db.execute(sql["dispatch_job"], values)
    _check(db, change)
    db.execute(sql["dispatch_repository"], (change.fence, change.at, change.repo))
    _check(db, change)


def _run(db: apsw.Connection, sql: dict[str, str], change: JobRan) -> None:
    attempt = (change.job, change.attempt, change.fence)
    db.execute(sql["run_job"], (change.at, _json(change.identity), *attempt))
    _check(db, change)


def _wait(db: apsw.Connection, sql: dict[str, str], change: JobWaits) -> None:
    db.execute(sql["wait_job"], (change.state, change.job))


def _requeue(db: apsw.Connection, sql: dict[str, str], change: JobRequeued) -> None:
    attempt = (change.job, change.attempt, change.fence)
    error = _optional(change.error)
    queued_at = change.at if change.queued_at is None else change.queued_at
    values = (change.state, error, queued_at, change.retry_at, change.refused, *attempt)
    db.execute(sql["requeue_job"], values)
    _check(db, change)
    if change.verify is not None:
        spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
        spec = structs.replace(spec, verify=change.verify)
        db.execute(sql["respecify_job"], (_encoder.encode(spec), change.job))


def _delegate(db: apsw.Connection, sql: dict[str, str], change: JobDelegated) -> None:
    attempt = (change.job, change.attempt, change.fence)
    db.execute(sql["delegate_job"], (change.child, *attempt))
    _check(db, change)


def _quarantine(db: apsw.Connection, sql: dict[str, str], change: Quarantined) -> None:
    left = change.quarantine
    values = (
        left.job,
        left.repo,
        left.attempt,
        left.fence,
        _json(left.claims),
        _json(left.remaining),
        left.reason,
        left.since,
    )
    db.execute(sql["quarantine"], values)


def _end_quarantine(
    db: apsw.Connection, sql: dict[str, str], change: QuarantineEnded
) -> None:
    db.execute(sql["end_quarantine"], (change.job,))


def _set_aside(db: apsw.Connection, sql: dict[str, str], change: SetAside) -> None:
    poison = change.poison
    values = (poison.repo, poison.job, poison.error, poison.since)
    db.execute(sql["set_aside"], values)


def _take_back(db: apsw.Connection, sql: dict[str, str], change: TakenBack) -> None:
    db.execute(sql["take_back"], (change.repo, change.job))


def _hold(db: apsw.Connection, sql: dict[str, str], change: JobHeld) -> None:
    db.execute(sql["hold_job"], (change.since, change.job))


def _edit(db: apsw.Connection, sql: dict[str, str], change: JobEdited) -> None:
    edit = change.edit
    spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
    spec = structs.replace(spec, budgets=edit.budgets(spec.budgets))
    values = (
        None if edit.priority is UNSET else edit.priority,
        None if edit.claims is UNSET else _json(edit.claims),
        None if edit.labels is UNSET else _json(edit.labels),
        _encoder.encode(spec),
        change.job,
    )
    db.execute(sql["edit_job"], values)


def _isolate(db: apsw.Connection, sql: dict[str, str], change: JobIsolated) -> None:
    spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
    spec = with_isolation(spec, change.isolation)
    claims = _json(change.claims)
    values = (None, claims, None, _encoder.encode(spec), change.job)
    db.execute(sql["edit_job"], values)


def _redirect(db: apsw.Connection, sql: dict[str, str], change: JobRedirected) -> None:
    spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
    spec = redirected(spec, change.choice)
    values = (change.choice.provider, _encoder.encode(spec), change.job)
    db.execute(sql["redirect_job"], values)


def _answer(db: apsw.Connection, sql: dict[str, str], change: JobAnswered) -> None:
    spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
    values = (_encoder.encode(answered(spec, change)), change.job)
    db.execute(sql["answer_job"], values)


def _approve(db: apsw.Connection, sql: dict[str, str], change: JobApproved) -> None:
    spec = spec_from(db.execute(sql["job_spec"], (change.job,)).fetchall()[0])
    values = (change.state, _encoder.encode(approved(spec, change)), change.job)
    db.execute(sql["approve_job"], values)


def _refuse_effects(
    db: apsw.Connection, sql: dict[str, str], change: EffectsRefused
) -> None:
    db.execute(sql["refuse_effects"], (_json(change.refused), change.job))


def _mark(db: apsw.Connection, sql: dict[str, str], change: ItemMarked) -> None:
    mark = change.mark
    values = (mark.item, mark.dismissed_at, mark.notified_at)
    db.execute(sql["mark_item"], values)
    db.execute(sql["forget_marks"], (MAX_MARKS,))


def _keep_hook(db: apsw.Connection, sql: dict[str, str], change: HookChanged) -> None:
    db.execute(sql["keep_webhook"], structs.astuple(change.mark))


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
    if repository.removed_at is not None:
        db.execute(sql["end_pause"], (repository_scope(repository.id),))
        db.execute(sql["end_quarantines"], (repository.id,))
        db.execute(sql["take_back"], (repository.id, None))
        db.execute(sql["forget_look"], (repository.id,))
        db.execute(sql["remove_trust"], (repository.id,))
    if change.moved is not None:
        move_jobs(db, sql, repository.id, change.moved)


def move_jobs(
    db: apsw.Connection, sql: dict[str, str], repo: str, moved: Relocation
) -> None:
    """Let the jobs of a repository that have not ended follow it, and what is kept."""
    for job, claims, spec in db.execute(sql["jobs_to_move"], (repo,)).fetchall():
        there = moved.spec(spec_from((spec,)))
        values = (_json(moved.claims(claims_from(claims))), _encoder.encode(there), job)
        db.execute(sql["move_job"], values)
    for row in db.execute(sql["quarantines_of"], (repo,)).fetchall():
        left = quarantine_from(row)
        claims = _json(moved.claims(left.claims))
        db.execute(sql["move_quarantine"], (claims, left.job))


def _keep_worktree(
    db: apsw.Connection, sql: dict[str, str], change: WorktreeChanged
) -> None:
    known = change.worktree
    values = (
        known.id,
        known.repo,
        known.path,
        known.branch,
        known.made_at,
        known.state,
        known.base,
        known.base_commit,
        known.kept,
        known.reason,
        known.removed_at,
    )
    db.execute(sql["keep_worktree"], values)


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
    how = (change.state, _optional(change.error), change.at)
    if change.fence is None:
        db.execute(sql["end_waiting_job"], (*how, change.job))
    else:
        values = (
            *how,
            None if receipt is None else _encoder.encode(receipt),
            None if receipt is None else receipt.started_at,
            change.job,
            change.attempt,
            change.fence,
        )
        db.execute(sql["end_job"], values)
    _check(db, change)


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
    if job.work is not None:
        db.execute(sql["set_work"], (job.work, job.id))


#: What writes the rows of a change, not its event, into the open transaction, or raises
#: StaleFence: its attempt is not the current one. By type, as many tests of a `match`
#: cost more than the statement for the last.
WRITERS: dict[type, Callable[[apsw.Connection, dict[str, str], Any], None]] = {
    JobAdded: _add,
    JobWaits: _wait,
    JobDispatched: _dispatch,
    JobRan: _run,
    JobRequeued: _requeue,
    JobEnded: _end,
    JobDelegated: _delegate,
    AttemptUsed: save_usage,
    Quarantined: _quarantine,
    QuarantineEnded: _end_quarantine,
    SetAside: _set_aside,
    TakenBack: _take_back,
    JobAnswered: _answer,
    JobApproved: _approve,
    EffectsRefused: _refuse_effects,
    JobHeld: _hold,
    JobIsolated: _isolate,
    JobRedirected: _redirect,
    JobEdited: _edit,
    PauseBegan: begin_pause,
    PauseEnded: end_pause,
    AccountChanged: keep_account,
    PolicySet: set_policy,
    ItemMarked: _mark,
    HookChanged: _keep_hook,
    RepositoryAdded: _add_repository,
    RepositoryChanged: _change_repository,
    WorktreeChanged: _keep_worktree,
    LookSaved: save_look,
    **scheduled.WRITERS,
    **trusted.WRITERS,
    **workflow_rows.WRITERS,
    **controller_rows.WRITERS,
    **epic_rows.WRITERS,
    SettingsChanged: _nothing,
    Noted: _nothing,
    JobsForgotten: forgetting.forget_jobs,
    EventsForgotten: forgetting.forget_events,
    ClassVisited: forgetting.keep_visit,
    CleanRunChanged: forgetting.keep_run,
}
