"""Changes as tests save them: a repository, a job, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.changes import (
    JobAdded,
    JobDetails,
    JobDispatched,
    JobEnded,
    JobRan,
    JobRequeued,
    RepositoryAdded,
)
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Budgets, Job, JobError, JobSpec
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.domain.repositories import Repository

if TYPE_CHECKING:
    from typing import Any

    from forge_actors.domain.jobs import State


def repository(repo: str = "repo", **changes: Any) -> RepositoryAdded:
    """A repository as a change that adds it."""
    number = 1 + sum(map(ord, repo))
    values: dict[str, Any] = {
        "id": repo,
        "name": repo,
        "path": f"/{repo}",
        "common_dir": f"/{repo}/.git",
        "device": 1,
        "inode": number,
        "added_at": 1.0,
    }
    added = Repository(**(values | changes))
    return RepositoryAdded(added, Event("repository_added", 1.0, repo))


def job(job_id: str = "job", repo: str = "repo", **changes: Any) -> JobAdded:
    """A job as a change that adds it."""
    kind = changes.get("kind", "repository-command")
    values: dict[str, Any] = {
        "id": job_id,
        "repo": repo,
        "kind": kind,
        "priority": 2,
        "claims": (),
        "tokens": tokens_for(kind, None),
        "queued_at": 10.0,
    }
    added = Job(**(values | changes))
    spec = JobSpec(
        argv=("true", job_id),
        cwd="/",
        env={"A": "b"},
        exit_attempts=added.exit_attempts,
        budgets=Budgets(admission=added.admission_budget, queue=added.queue_budget),
    )
    details = JobDetails(created_at=added.queued_at, origin="test")
    event = Event(f"job_{added.state}", 10.0, repo, job_id)
    return JobAdded(added, spec, details, event)


def dispatched(
    job_id: str = "job", repo: str = "repo", *, attempt: int = 1, fence: int = 1
) -> JobDispatched:
    event = Event("job_dispatched", 20.0, repo, job_id)
    return JobDispatched(job_id, repo, attempt, fence, 20.0, event)


def ran(
    job_id: str = "job", repo: str = "repo", *, attempt: int = 1, fence: int = 1
) -> JobRan:
    identity = ProcessIdentity("boot", 100, 7)
    event = Event("job_running", 21.0, repo, job_id)
    return JobRan(job_id, attempt, fence, identity, 21.0, event)


def requeued(
    job_id: str = "job",
    repo: str = "repo",
    state: State = "queued",
    *,
    attempt: int = 1,
    fence: int = 1,
    at: float = 40.0,
    retry_at: float | None = None,
    place: float | None = None,
) -> JobRequeued:
    error = JobError("INTERRUPTED", "it was")
    event = Event(f"job_{state}", at, repo, job_id)
    return JobRequeued(
        job_id, attempt, fence, state, error, at, event, retry_at, queued_at=place
    )


def ended(
    job_id: str = "job",
    repo: str = "repo",
    state: State = "succeeded",
    *,
    attempt: int = 1,
    fence: int = 1,
) -> JobEnded:
    receipt = Receipt(
        job_id, attempt, fence, "exit", 30.0, started_at=21.5, exit_code=0
    )
    event = Event(f"job_{state}", 30.0, repo, job_id)
    return JobEnded(job_id, attempt, fence, state, None, 30.0, receipt, event)


def ended_waiting(
    job_id: str = "job", repo: str = "repo", state: State = "cancelled"
) -> JobEnded:
    event = Event(f"job_{state}", 30.0, repo, job_id)
    return JobEnded(job_id, 0, None, state, None, 30.0, None, event)
