"""How a run of an EPIC is told to end: pure.

A drain lets workers come to the next boundary by themselves. An interrupt (a signal, or
the request to stop now) is passed on to them; a second one, or the end of the grace,
passes it on once more and ends the run at once. No worker ever gets anything else.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from forge_actors.domain.epic.records import AdmissionStatus, EndReason

#: Seconds within which the loop acts on what has happened.
TICK = 0.1

Order = Literal["nothing", "interrupt", "leave"]


#: Status of a run by its end.
EXITS: dict[EndReason, int] = {
    "nothing-admissible": 0,
    "drained": 0,
    "stopped": 130,
    "interrupted": 130,
    "degraded": 1,
}


class End(Struct, frozen=True):
    """How a run has ended; `reason` is None for one that was refused at its start."""

    reason: EndReason | None
    #: Seconds until it makes sense to run it again, where that is known.
    wait: float | None = None
    #: Issues whose workers go on.
    left: tuple[int, ...] = ()

    @property
    def status(self) -> int:
        return 1 if self.reason is None else EXITS[self.reason]


class Ending:
    """Whether anything is still admitted, and why not."""

    def __init__(self, grace: float) -> None:
        self.admission = AdmissionStatus("open")
        self.reason: EndReason | None = None
        #: Signals that came.
        self.signals = 0
        #: When workers that still run are left alone.
        self.deadline: float | None = None
        self._grace = grace
        self._now = False
        self._stage = 0

    @property
    def open(self) -> bool:
        return self.admission.status == "open"

    @property
    def interrupted(self) -> bool:
        """Whether workers have been interrupted."""
        return self._stage > 0

    @property
    def pressing(self) -> bool:
        """Whether `step` has more to do in the next pass."""
        return self._stage < min(self._count, 2)

    def request(self, mode: Literal["drain", "now"]) -> None:
        """Somebody asks for the end; asking twice is asking once."""
        if mode == "now":
            self._now = True
        elif self.open:
            self.admission = AdmissionStatus("closed", "stop-requested")
            self.reason = self.reason or "drained"

    def degrade(
        self, reason: Literal["snapshot-refused", "epic-not-admissible"]
    ) -> None:
        """What is to be admitted cannot be known any more."""
        self.admission = AdmissionStatus("degraded", reason)
        self.reason = self.reason or "degraded"

    def step(self, now: float) -> Order:
        """What workers are to be told in this pass; `now` in seconds of any clock."""
        if self._stage == 0 and self._count:
            self._stage = 1
            self.deadline = now + self._grace
            self.reason = "interrupted" if self.signals else "stopped"
            if self.open:
                why: Literal["interrupted", "stop-requested"] = (
                    "interrupted" if self.signals else "stop-requested"
                )
                self.admission = AdmissionStatus("closed", why)
            return "interrupt"
        expired = self.deadline is not None and now >= self.deadline
        if self._stage == 1 and (self._count > 1 or expired):
            self._stage = 2
            return "leave"
        return "nothing"

    @property
    def _count(self) -> int:
        return self.signals + self._now
