"""The ends of jobs, as the workflows hear of them whose steps they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.jobs import HEAVY_KINDS, JobError
from forge_actors.domain.launch import Receipt
from forge_actors.domain.redaction import bounded, redact
from forge_actors.domain.validation import validate
from forge_actors.domain.workflow_steps import StepEnd
from forge_actors.runtime.handing_on import outputs_of

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.edges.sqlite.store import SqliteStore

#: Characters of what is told of a step that failed.
MAX_WHY = 500
_error = msgspec.json.Decoder(JobError)
_receipt = msgspec.json.Decoder(Receipt)


def step_end(store: SqliteStore, job: str, state: State) -> StepEnd:
    """How a job that is saved as ended did; whatever is saved of it, it is told."""
    rows = store.read("job_end", job)
    if not rows:
        return StepEnd(state)
    kind, error_row, receipt_row = rows[0]
    error, receipt, malformed = None, None, False
    try:
        error = None if error_row is None else _error.decode(error_row)
        receipt = None if receipt_row is None else _receipt.decode(receipt_row)
    except (msgspec.MsgspecError, RecursionError):
        malformed = True
    if kind not in HEAVY_KINDS:
        return _plain(store, job, state, error)
    code = None if error is None else error.code
    found = validate(state, code, receipt, malformed=malformed)
    if found.found == "passed":
        end = _plain(store, job, state, None)
        return msgspec.structs.replace(end, validation="passed")
    why = f"{state}: {error.message}" if error is not None else state
    if found.found == "infrastructure_failure":
        why = f"{why}; infrastructure failure: {found.reason}"
    # What succeeded without a receipt has not: nobody knows what it came to.
    shown: State = "failed" if state == "succeeded" else state
    return StepEnd(shown, _why(job, why), retryable=found.again, validation=found.found)


def _plain(
    store: SqliteStore, job: str, state: State, error: JobError | None
) -> StepEnd:
    if error is not None:
        return StepEnd(state, _why(job, f"{state}: {error.message}"))
    if state != "succeeded":
        return StepEnd(state, _why(job, state))
    values, problem = outputs_of(store, job)
    why = None if problem is None else f"of its outputs: {problem}"
    return StepEnd(state, why, values)


def _why(job: str, text: str) -> str:
    return bounded(redact(f"job {job} {text}"), MAX_WHY)
