"""Controllers: agent sessions that own a piece of work, and are woken to go on with it.

Moments are seconds of the wall clock since 1970, UTC, as those of schedules are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput

#: How an agent says that its turn ends: it wants another one at once; it waits for what
#: wakes it; for a person; or there is nothing left to do.
Disposition = Literal["continue_immediately", "wait", "wait_for_user", "goal_complete"]
ControllerState = Literal["active", "paused", "waiting_for_user", "done", "quarantined"]
#: What became of one occurrence that was to wake a controller. The first two may go on;
#: behind `dispatching` nothing is tried a second time.
WakeState = Literal[
    "prepared",
    "dispatching",
    "dispatched",
    "wait_for_user",
    "semantic_wait",
    "rejected",
    "outcome_unknown",
]
#: Who wakes it: a schedule; a person; or itself, as its agent said so or has stalled.
By = Literal["schedule", "person", "agent", "recovery"]

MAX_CONTROLLERS = 1000
#: Wakes of one controller that are kept.
MAX_WAKES = 200
#: Characters of a prompt, of what an agent notes, and of a binding.
MAX_PROMPT = 100_000
MAX_NOTE = 2000
MAX_BINDING = 64 * 1024

MINUTE = 60.0


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """When a controller is left to a person, and for how long it is left in peace."""

    #: Turns since a person last looked.
    rounds: Annotated[int, Meta(ge=1, le=1000)] = 8
    #: Turns in a row that came to the same.
    repeats: Annotated[int, Meta(ge=1, le=100)] = 2
    #: Turns in a row whose job failed.
    failures: Annotated[int, Meta(ge=1, le=100)] = 3
    #: Seconds after its last turn in which no schedule wakes it.
    grace: Annotated[float, Meta(ge=MINUTE, le=60 * MINUTE)] = 5 * MINUTE
    #: Seconds without a word until a turn counts as stalled.
    stalled: Annotated[float, Meta(ge=MINUTE, le=60 * MINUTE)] = 10 * MINUTE


class Round(Struct, frozen=True):
    """A turn that has not ended."""

    #: The occurrence that it is of; empty for the job that a controller began with.
    wake: str
    began: float
    #: Whether its host has accepted it.
    accepted: bool = False
    #: What the host calls it, and its job if it is one of ours.
    dispatch: str | None = None
    job: str | None = None
    told: Disposition | None = None
    note: str = ""
    #: What the agent says of the state that it leaves; the same again is the same.
    mark: str = ""


class Controller(Struct, frozen=True):
    """All that is known of one but what became of its wakes."""

    id: str
    name: str
    #: Id of the repository.
    repo: str
    #: Who can have it go on, and what that one needs to know to find it again.
    host: str
    binding: dict[str, Any]
    prompt: str
    limits: Limits
    #: The last job of its session, if its host makes jobs of ours.
    job: str | None
    made: float
    state: ControllerState = "active"
    #: Why it is not active.
    why: str | None = None
    #: Since when.
    since: float = 0.0
    round: Round | None = None
    rounds: int = 0
    repeats: int = 0
    failures: int = 0
    recoveries: int = 0
    #: All wakes that were recorded.
    number: int = 0
    #: When it was last heard of.
    active: float = 0.0
    #: It said that it waits, when the world around it was as `seen`.
    waits: bool = False
    seen: str = ""
    #: Digest of the state in which its last turn ended.
    came_to: str = ""
    #: When it goes on by itself, and why.
    due: float | None = None
    by: By = "agent"


class Wake(Struct, frozen=True):
    """What became of one occurrence."""

    id: str
    controller: str
    number: int
    by: By
    state: WakeState
    reason: str
    at: float
    #: What marks the job that it has.
    origin: str
    job: str | None = None
    dispatch: str | None = None


def check_controller(prompt: str, binding_size: int) -> None:
    """
    Raises:
        InvalidInput: naming the field that is wrong.
    """
    if not prompt.strip() or len(prompt) > MAX_PROMPT:
        raise InvalidInput("prompt", f"has from 1 to {MAX_PROMPT} characters")
    if binding_size > MAX_BINDING:
        raise InvalidInput("binding", f"is larger than {MAX_BINDING} bytes")
