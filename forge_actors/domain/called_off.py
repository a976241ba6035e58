"""Attempts that were called off: by a person, or since they were not admitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.admissions import NOT_ADMITTED
from forge_actors.domain.jobs import JobError

if TYPE_CHECKING:
    from forge_actors.domain.launch import Receipt


def called_off(stopped: str | None, receipt: Receipt | None) -> JobError | None:
    """Why its job is cancelled; None if it is not for that.

    `stopped` is why the runtime ended the attempt, if it did.
    """
    told = receipt is not None and receipt.ending == "cancel"
    if stopped != "cancelled" and not told:
        return None
    if receipt is not None and receipt.code == NOT_ADMITTED:
        return JobError(NOT_ADMITTED, receipt.error or "it was not admitted")
    return JobError("CANCELLED", "it was cancelled")
