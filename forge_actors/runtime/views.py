"""Views: rows of the store and what the actors know, as readers see them."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from forge_actors.domain.accounts import AccountView
from forge_actors.domain.agent_views import AgentView, agent_view
from forge_actors.domain.claims import Claim
from forge_actors.domain.effect_views import effects_view
from forge_actors.domain.events import EventView, shown_data
from forge_actors.domain.inputs import input_text
from forge_actors.domain.jobs import Budgets, JobError, JobSpec, JobView
from forge_actors.domain.launch import AfterJob, ProcessIdentity, Receipt
from forge_actors.domain.pauses import PauseView
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.redaction import Roots, private_roots, redact, scrub
from forge_actors.domain.scopes import repository_scope
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.verifying import report_of, verify_view
from forge_actors.domain.worktrees import worktree_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.accounts import Account
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import State
    from forge_actors.domain.poison import Poison
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.scopes import Pause
    from forge_actors.domain.waiting import Waiting

_spec = msgspec.json.Decoder(JobSpec)
_claims = msgspec.json.Decoder(tuple[Claim, ...])
_NO_NAMES = "[]"
_NO_BUDGETS = Budgets()
_names = msgspec.json.Decoder(list[str])
_identity = msgspec.json.Decoder(ProcessIdentity)
_error = msgspec.json.Decoder(JobError)
_receipt = msgspec.json.Decoder(Receipt)
#: States of a worktree that is not there yet.
BEING_MADE = ("wanted", "making")
_NO_SPEC = b'{"argv": [], "cwd": ""}'


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)


def roots_of(home: str | os.PathLike[str]) -> Roots:
    """The folders whose paths readers do not see in errors, for a runtime on `home`."""
    forge, user, temporary = (
        (os.fspath(folder), os.path.realpath(folder))
        for folder in (home, os.path.expanduser("~"), tempfile.gettempdir())
    )
    return private_roots(user, forge, temporary)


def shown_text(text: str, roots: Roots) -> str:
    """A message without secrets and private paths."""
    return scrub(redact(text), roots)


def shown_error(error: JobError, roots: Roots) -> JobError:
    """An error as it was saved, without secrets and private paths."""
    return JobError(error.code, shown_text(error.message, roots))


def view(row: tuple[Any, ...], roots: Roots = ()) -> JobView:
    """A row of the query `view_job` as readers see it."""
    try:
        return _view(row, roots)
    except (msgspec.MsgspecError, RecursionError) as error:
        # It is shown all the same, since somebody has to see that it is there.
        rest = (*row[:5], _NO_SPEC, *row[6:10], "[]", "[]", *row[12:15], "[]")
        job = _view((*rest, *row[16:22], None, None, None, *row[25:]), roots)
        return structs.replace(job, problem=f"its record cannot be read: {error}")


def receipt_of(row: tuple[Any, ...]) -> Receipt | None:
    """The receipt in a row of the query `view_job`."""
    return None if row[24] is None else _receipt.decode(row[24])


def _view(row: tuple[Any, ...], roots: Roots) -> JobView:
    (job_id, state, kind, repo, name, spec, priority, attempt, max_attempts) = row[:9]
    (fence, claims, after, provider, replay, retry_of, labels, origin) = row[9:17]
    (request_id, created, queued, started, finished, identity, error, receipt) = row[
        17:25
    ]
    details = _spec.decode(spec)
    end = None if receipt is None else _receipt.decode(receipt)
    process = None if identity is None else _identity.decode(identity)
    started = started if end is None or end.started_at is None else end.started_at
    return JobView(
        id=job_id,
        state=state,
        kind=kind,
        repo=repo,
        name=name,
        argv=list(details.argv),
        priority=PRIORITIES[priority],
        attempt=attempt,
        max_attempts=max_attempts,
        exit_code=end.exit_code if end else None,
        signal=end.signal if end else None,
        forced=end.forced if end else False,
        error=None if error is None else shown_error(_error.decode(error), roots),
        waiting=None,
        claims=list(_shown_claims(claims)),
        after=[] if after == _NO_NAMES else _names.decode(after),
        provider=provider,
        replay=replay,
        retry_of=retry_of,
        labels=[] if labels == _NO_NAMES else _names.decode(labels),
        created_at=timestamp(created),
        queued_at=timestamp(queued),
        started_at=_moment(started),
        finished_at=_moment(finished),
        duration=_duration(started, finished),
        pid=process.pid if process and finished is None else None,
        fence=fence,
        cwd=details.cwd,
        origin=origin,
        work=details.work,
        request_id=request_id,
        usage=_usage(end),
        leftovers=list(end.leftovers) if end else [],
        output_held=end.output_held if end else False,
        budgets=_budgets(details.budgets),
        secrets=list(details.secrets),
        inputs=[input_text(one) for one in details.inputs],
        after_job=_after_job(end, roots),
        problem=_problem(end, roots),
        paused_seconds=end.paused_seconds or None if end else None,
        agent=_agent(details, end),
        verify=None if details.verify is None else verify_view(details.verify, attempt),
        refused=row[27],
        effects=effects_view(details.authority, job_id, end, timestamp),
        worktree=None
        if details.isolation is None
        else worktree_view(details.isolation, None, ""),
    )


def _budgets(given: Budgets) -> dict[str, float]:
    found: dict[str, float] = msgspec.to_builtins(given) if given != _NO_BUDGETS else {}
    return found


@lru_cache(maxsize=1024)
def _shown_claims(claims: str) -> tuple[str, ...]:
    """Most jobs of a queue claim what many others do."""
    return tuple(map(str, _claims.decode(claims)))


def _agent(spec: JobSpec, end: Receipt | None) -> AgentView | None:
    agent = spec.agent
    if agent is None:
        return None
    told = report_of(spec.verify, None if end is None else end.agent)
    return agent_view(agent.name, told, timestamp, agent.continues)


def _after_job(receipt: Receipt | None, roots: Roots) -> AfterJob | None:
    told = None if receipt is None else receipt.after_job
    if told is None or told.error is None:
        return told
    return structs.replace(told, error=scrub(redact(told.error), roots))


def _problem(receipt: Receipt | None, roots: Roots) -> str | None:
    """What went wrong beside the job. That it did not start is its error instead."""
    if receipt is None or receipt.error is None or receipt.ending in ("spawn", "lost"):
        return None
    return scrub(redact(receipt.error), roots)


def _duration(started: float | None, finished: float | None) -> float | None:
    if started is None or finished is None:
        return None
    return round(max(0.0, finished - started), 3)


def _usage(receipt: Receipt | None) -> dict[str, float]:
    if receipt is None or receipt.identity is None:
        return {}
    usage = {
        "user_seconds": receipt.user_seconds,
        "system_seconds": receipt.system_seconds,
        "max_rss_kib": receipt.max_rss_kib,
        "stdout_bytes": receipt.stdout_bytes,
        "stderr_bytes": receipt.stderr_bytes,
    }
    if receipt.stdout_lost:
        usage["stdout_lost"] = receipt.stdout_lost
    if receipt.stderr_lost:
        usage["stderr_lost"] = receipt.stderr_lost
    return usage


def waiting_view(waiting: Waiting) -> dict[str, object]:
    """What a job waits for, with every field that the contract names."""
    return {
        "kind": waiting.kind,
        "since": timestamp(waiting.since),
        "until": _moment(waiting.until),
        "holders": list(waiting.holders),
        "position": waiting.position,
        "resource": waiting.resource,
        "used": waiting.used,
        "limit": waiting.limit,
        "detail": waiting.detail + waiting.note,
    }


def with_waiting(job: JobView, state: State, waiting: Waiting | None) -> JobView:
    """The same view, which has what its repository's actor knows from now on."""
    job.state = state
    job.waiting = None if waiting is None else waiting_view(waiting)
    return job


def quarantine_view(left: Quarantine, repo: str) -> dict[str, object]:
    """Claims that an ended job left held, as readers see them."""
    return {
        "job": left.job,
        "repo": repo,
        "attempt": left.attempt,
        "claims": [str(claim) for claim in left.claims],
        "pids": [process.pid for process in left.remaining],
        "reason": left.reason,
        "since": timestamp(left.since),
    }


def poison_view(poison: Poison, repo: str) -> dict[str, object]:
    """What was set aside, as readers see it; all of a repository if `job` is None."""
    return {
        "repo": repo,
        "job": poison.job or None,
        "error": poison.error,
        "since": timestamp(poison.since),
    }


def pause_view(pause: Pause, repo: str | None) -> PauseView:
    """A pause as readers see it; `repo` is the name of its repository."""
    scope = pause.scope if repo is None else repository_scope(repo)
    return PauseView(scope, timestamp(pause.since), pause.jobs)


def account_view(account: Account, roots: Roots = ()) -> AccountView:
    """A closed account as readers see it."""
    return AccountView(
        account.reason,
        timestamp(account.since),
        _moment(account.retry_at),
        account.stated,
        account.job,
        shown_text(account.detail, roots),
    )


def event_view(event: Event, names: Mapping[str, str], roots: Roots = ()) -> EventView:
    """An event of the store as readers see it; `names` are those of ids."""
    return EventView(
        seq=event.seq,
        at=timestamp(event.at),
        kind=event.kind,
        repo=names.get(event.repo or ""),
        job=event.job,
        data=shown_data(event.data, roots),
        repo_id=event.repo,
        job_name=names.get(event.job or ""),
    )


def as_json(job: JobView) -> dict[str, Any]:
    """The view as plain JSON values, as `show --json` prints it."""
    table: dict[str, Any] = msgspec.to_builtins(job)
    return table
