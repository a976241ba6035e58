"""Remains: what attempts left that is not proven gone, and the claims it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import Quarantined, QuarantineEnded
from forge_actors.domain.events import Event
from forge_actors.domain.quarantine import Quarantine
from forge_actors.domain.steering import ASKED, Steerable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import ProcessIdentity, Receipt


class Remains(Steerable):
    """The part of a ledger's moves that is about it."""

    def _quarantine(
        self, job: Job, fence: int, receipt: Receipt, now: float
    ) -> list[Change]:
        left = Quarantine(
            job.id,
            self.repo,
            job.attempt,
            fence,
            job.claims,
            receipt.remaining,
            receipt.error or "it was lost",
            now,
        )
        self.quarantined[job.id] = left
        data: dict[str, object] = {
            "attempt": left.attempt,
            "fence": left.fence,
            "claims": left.claims,
            "pids": [process.pid for process in left.remaining],
        }
        event = Event("job_quarantined", now, self.repo, job.id, data)
        return [Quarantined(left, event)]

    def look_for_left(
        self,
        alive: Callable[[Sequence[ProcessIdentity]], tuple[ProcessIdentity, ...]],
        now: float,
    ) -> list[Change]:
        """Free the claims of those of whom nothing is `alive` any more."""
        changes: list[Change] = []
        for left in tuple(self.quarantined.values()):
            remaining = alive(left.remaining)
            if remaining:
                # What is gone is gone: another process may have its number soon.
                known = structs.replace(left, remaining=remaining)
                self.quarantined[left.job] = known
                continue
            changes.append(self._end_quarantine(left, now, {}))
        return changes

    def let_go_of_left(self, job: str, now: float) -> list[Change]:
        """Free the claims of this one though nothing is proven: a person says so."""
        left = self.quarantined.get(job)
        if left is None:
            return []
        pids = [process.pid for process in left.remaining]
        told: dict[str, object] = {"reason": ASKED, "pids": pids}
        return [self._end_quarantine(left, now, told)]

    def _end_quarantine(
        self, left: Quarantine, now: float, told: dict[str, object]
    ) -> Change:
        del self.quarantined[left.job]
        self._lanes.release(left.job)
        data = {**told, "claims": left.claims}
        event = Event("job_quarantine_ended", now, self.repo, left.job, data)
        return QuarantineEnded(left.job, event)
