"""Dependencies of jobs that are accepted: the jobs that they run after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import ForgeError, InvalidInput
from forge_actors.domain.jobs import TERMINAL
from forge_actors.runtime.fields import forgotten_dependency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.changes import JobAdded
    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.sqlite.store import SqliteStore


def dependencies_of(
    store: SqliteStore, request: JobRequest, names: Mapping[str, str], prefix: str
) -> tuple[tuple[str, ...], bool]:
    """The ids a job runs after, and whether all of them have ended.

    Raises:
        InvalidInput: one is no job, or was removed.
    """
    #: Whether each is of this batch.
    ids: dict[str, bool] = {}
    for selector in request.after:
        try:
            job_id = names.get(selector) or store.match(selector)
        except ForgeError as error:
            raise InvalidInput(f"{prefix}after", str(error)) from None
        ids[job_id] = selector in names
    met = True
    for job_id, new in ids.items():
        rows = store.read_pending("job_state", job_id)
        # A job of the same batch has no row yet, and has certainly not ended.
        if not (rows or new):
            raise forgotten_dependency(job_id, prefix)
        met = met and bool(rows) and rows[0][0] in TERMINAL
    return tuple(ids), met


def check_dependencies(store: SqliteStore, changes: Sequence[JobAdded]) -> None:
    """While they were checked jobs were removed; not those that they run after.

    Raises:
        InvalidInput: one of those too.
    """
    own = {change.job.id for change in changes}
    for change in changes:
        for job_id in change.job.after:
            if job_id in own or store.read_pending("job_state", job_id):
                continue
            raise forgotten_dependency(job_id)
