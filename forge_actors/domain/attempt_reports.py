"""What an attempt tells beside its end: what it used, and what it was kept from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.changes import EffectsRefused
from forge_actors.domain.effects import in_order
from forge_actors.domain.events import Event
from forge_actors.domain.spending import used

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import Receipt


def told(job: Job, receipt: Receipt | None, now: float) -> list[Change]:
    """What is to be saved with the end of an attempt."""
    changes: list[Change] = []
    if job.agent is not None:
        changes += used(job, receipt, now)
    if receipt is not None and receipt.refused:
        data: dict[str, object] = {
            "attempt": receipt.attempt,
            "effects": in_order(each.effect for each in receipt.refused),
            "commands": [each.command for each in receipt.refused],
        }
        event = Event("effect_refused", now, job.repo, job.id, data)
        changes.append(EffectsRefused(job.id, receipt.refused, event))
    return changes
