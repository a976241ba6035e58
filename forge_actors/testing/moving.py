"""What of a store in memory follows a repository that moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from forge_actors.domain.relocation import Relocation
    from forge_actors.testing.store import Rows


def move_jobs(rows: Rows, repo: str, moved: Relocation) -> None:
    """Let the jobs of a repository that have not ended follow it, and what is kept."""
    for job in rows.jobs.values():
        if job.repo == repo and job.state not in TERMINAL:
            job.claims = moved.claims(job.claims)
            rows.specs[job.id] = moved.spec(rows.specs[job.id])
    for left in tuple(rows.quarantined.values()):
        if left.repo == repo:
            claims = moved.claims(left.claims)
            rows.quarantined[left.job] = structs.replace(left, claims=claims)
