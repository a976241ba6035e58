"""What jobs hand on to those that come after them, as the store has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain import outputs
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from forge_actors.domain.outputs import Outputs
    from forge_actors.edges.sqlite.store import SqliteStore


def outputs_of(store: SqliteStore, job: str) -> Outputs:
    """The values that a job which has ended hands on, and what is wrong with them.

    Raises:
        NotFound: there is no such job.
    """
    rows = store.read("view_job", job)
    if not rows:
        raise store.not_found(job)
    return outputs.outputs_of(spec_from((rows[0][5],)), receipt_of(rows[0]))
