"""Entry: which jobs the policy lets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.effects import job_of
from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.policies import check_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.changes import JobAdded
    from forge_actors.domain.policies import Policy
    from forge_actors.domain.requests import Parent
    from forge_actors.edges.sqlite.store import SqliteStore


def check_let_in(
    store: SqliteStore,
    policy: Policy,
    changes: Sequence[JobAdded],
    children: Mapping[Parent, list[str]],
) -> None:
    """Whether all of these jobs are accepted; `children` are those of jobs that run.

    Raises:
        AdmissionBlocked: the policy does not let one in.
    """
    known = {job for jobs in children.values() for job in jobs}
    for change in changes:
        child = change.job.id in known or _runs(store, job_of(change.details.origin))
        check_job(policy, change.job.work, child=child)


def _runs(store: SqliteStore, job: str | None) -> bool:
    if job is None:
        return False
    rows = store.read_pending("job_state", job)
    return bool(rows) and rows[0][0] in RESERVED
