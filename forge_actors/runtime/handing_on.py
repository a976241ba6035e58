"""What jobs hand on to those that come after them, as the store has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import MsgspecError

from forge_actors.domain import outputs
from forge_actors.domain.inputs import InputsMissing
from forge_actors.domain.outputs import Outputs
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from forge_actors.domain.launch import Collected
    from forge_actors.edges.sqlite.store import SqliteStore


def last_attempt(store: SqliteStore, job: str) -> tuple[int, Collected | None]:
    """The last attempt of a job, and what it told of its artifacts.

    Raises:
        InputsMissing: nobody knows of it any more.
    """
    rows = store.read("view_job", job)
    if not rows:
        raise InputsMissing(f"job {job} was removed by retention")
    try:
        receipt = receipt_of(rows[0])
    except (MsgspecError, RecursionError) as error:
        problem = f"the record of job {job} cannot be read: {error}"
        raise InputsMissing(problem) from None
    return rows[0][7], None if receipt is None else receipt.artifacts


def outputs_of(store: SqliteStore, job: str) -> Outputs:
    """The values that a job which has ended hands on, and what is wrong with them.

    Raises:
        NotFound: there is no such job.
    """
    rows = store.read("view_job", job)
    if not rows:
        raise store.not_found(job)
    try:
        spec = spec_from((rows[0][5],))
        receipt = receipt_of(rows[0]) if spec.outputs else None
    except (MsgspecError, RecursionError) as error:
        return Outputs({}, f"its record cannot be read: {error}")
    return outputs.outputs_of(spec, receipt)
