"""Jobs and repositories as a line of a list, and where there is more about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.redaction import bounded
from forge_actors.edges.gateway.mcp.answers import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.repositories import RepositoryView
    from forge_actors.edges.gateway.mcp.answers import Json

#: Characters of a command in a list, and of the message of an error there.
SHORT = 200
SCHEME = "forge"


def job_uri(job: str, *rest: str) -> str:
    return "/".join((f"{SCHEME}://jobs", job, *rest))


def job_row(job: JobView) -> Json:
    """What tells a job from the others, and how it is."""
    row: Json = {
        "id": job.id,
        "state": job.state,
        "kind": job.kind,
        "repo": job.repo,
        "name": job.name,
        "command": bounded(command_line(job.argv), SHORT),
        "priority": job.priority,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "exit_code": job.exit_code,
        "error": None
        if job.error is None
        else f"{job.error.code}: {bounded(job.error.message, SHORT)}",
        "waits_for": None if job.waiting is None else job.waiting.get("kind"),
        "labels": list(job.labels),
        "retry_of": job.retry_of,
    }
    return {name: value for name, value in row.items() if value not in (None, [])}


def job_rows(jobs: Sequence[JobView]) -> list[Json]:
    """Every one of the jobs, with what to do about it; shorter if they are too many."""
    rows = [_advised(job) for job in jobs]
    if len(fitting(rows)) == len(rows):
        return rows
    short = ("id", "state", "exit_code")
    return [{name: row[name] for name in short if name in row} for row in rows]


def _advised(job: JobView) -> Json:
    row, step = job_row(job), next_step(job)
    return row if step is None else {**row, "next_step": step}


def command_line(argv: Sequence[str | dict[str, str]]) -> str:
    return " ".join(part if isinstance(part, str) else "<bytes>" for part in argv)


def pointers(job: JobView) -> Json:
    """Where there is more about a job, as resources."""
    more: Json = {"whole": job_uri(job.id)}
    if job.attempt:
        more["stdout"] = job_uri(job.id, "logs", "stdout")
        more["stderr"] = job_uri(job.id, "logs", "stderr")
    if job.worktree is not None:
        more["diff"] = job_uri(job.id, "diff")
    return more


def next_step(job: JobView) -> str | None:
    """What to do about a job, where that can be told from its state."""
    if job.state in RESERVED:
        return "It runs: `wait` for it, or read its output with `logs`."
    if job.state == "waiting_for_approval":
        return "It asks something: see `error.message`, and answer with `approve`."
    if job.state not in TERMINAL:
        return "It waits: `why` says what for."
    if job.state == "succeeded":
        return None
    if job.attempt:
        return "Read the end of its output with `logs`, of stderr too; then `retry`."
    return "It never ran: see `error`."


def repository_row(repo: RepositoryView) -> Json:
    told = to_builtins(repo.status)
    status = {name: value for name, value in told.items() if value is not None}
    row: dict[str, Any] = {
        "name": repo.name,
        "path": repo.path,
        "enabled": repo.enabled,
        "waiting": repo.waiting,
        "running": repo.running,
        "need_a_person": repo.attention,
        "note": repo.note,
        "status": status,
    }
    return {name: value for name, value in row.items() if value is not None}
