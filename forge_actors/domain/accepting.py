"""The event by which a job is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.events import ACCEPTED, Event
from forge_actors.domain.priority import PRIORITIES

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobDetails
    from forge_actors.domain.effects import Authority
    from forge_actors.domain.jobs import Job


def accepted_event(
    job: Job, details: JobDetails, authority: Authority | None = None
) -> Event:
    """The event that accepts a job: all of it that does not change, said once."""
    data: dict[str, object] = {
        "reason": ACCEPTED,
        "origin": details.origin,
        "kind": job.kind,
        "priority": PRIORITIES[job.priority],
    }
    if job.claims:
        data["claims"] = job.claims
    if job.after:
        data["after"] = job.after
    if details.provider is not None:
        data["provider"] = details.provider
    if details.name is not None:
        data["name"] = details.name
    if details.labels:
        data["labels"] = details.labels
    if details.retry_of is not None:
        data["retry_of"] = details.retry_of
    if job.work is not None:
        data["work"] = job.work
    if authority is not None and authority.declared:
        data["effects"] = authority.declared
    if authority is not None and authority.automated:
        data["authorised"] = authority.authorised
    return Event(f"job_{job.state}", details.created_at, job.repo, job.id, data)
