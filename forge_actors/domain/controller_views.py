"""Controllers as people write them and as everybody sees them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from forge_actors.domain.controllers import (
    By,
    ControllerState,
    Disposition,
    Limits,
    WakeState,
)


class ControllerRequest(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A controller to add. Durations are seconds or text such as `5m`."""

    name: str
    #: What the agent is asked each time it is woken.
    prompt: str
    #: The job whose session goes on, if its host makes jobs.
    job: str | None = None
    #: The repository; that of the job if there is one.
    repo: str | None = None
    host: str = "process"
    #: What the host needs to know.
    binding: dict[str, Any] = {}
    rounds: int = 8
    repeats: int = 2
    failures: int = 3
    grace: str | float = "5m"
    stalled: str | float = "10m"


class TurnView(Struct, frozen=True):
    """A turn that has not ended."""

    began_at: str
    job: str | None
    dispatch: str | None
    #: How it goes on, as its agent has said.
    told: Disposition | None
    note: str


class ControllerView(Struct, frozen=True):
    """A controller as it is now. Times are RFC 3339, UTC."""

    name: str
    repo: str
    host: str
    binding: dict[str, Any]
    #: The last job of its session.
    job: str | None
    state: ControllerState
    why: str | None
    since: str | None
    prompt: str
    limits: Limits
    #: Turns since a person looked; of these the last ones in a row that came to the
    #: same, that failed, and that ended without a word.
    rounds: int
    repeats: int
    failures: int
    recoveries: int
    turn: TurnView | None
    #: When it goes on by itself.
    next: str | None
    made_at: str


class WakeView(Struct, frozen=True):
    """What became of one occurrence that was to wake it. Times are RFC 3339, UTC."""

    id: str
    by: By
    state: WakeState
    reason: str
    at: str
    job: str | None
    dispatch: str | None
