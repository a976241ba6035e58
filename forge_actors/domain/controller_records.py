"""Controllers as they are stored, and what the history says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.controller_changes import ControllerSaved, WakeSaved
from forge_actors.domain.controllers import Controller, Limits, Wake
from forge_actors.domain.events import Event

if TYPE_CHECKING:
    from forge_actors.domain.controllers import WakeState

_controller = msgspec.json.Decoder(Controller)
_wake = msgspec.json.Decoder(Wake)
#: What is told of a wake once it has come to this; the rest is on the way.
TOLD: frozenset[WakeState] = frozenset(
    {"dispatched", "wait_for_user", "semantic_wait", "rejected", "outcome_unknown"}
)


def loaded(key: str, name: str, body: bytes) -> tuple[Controller, str | None]:
    """A controller that was stored, and why it is set aside if it cannot be used."""
    try:
        return _controller.decode(body), None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"what is stored of it cannot be used: {error}"
    nothing = Controller(
        *(key, name, "", "", {}, "", Limits(), None, 0.0),
        state="quarantined",
        why=problem,
    )
    return nothing, problem


def wake_from(body: bytes) -> Wake:
    return _wake.decode(body)


def saved(controller: Controller, event: Event | None = None) -> ControllerSaved:
    body = msgspec.json.encode(controller)
    return ControllerSaved(
        controller.id, controller.name, controller.state, body, event
    )


def wake_saved(controller: Controller, wake: Wake, now: float) -> WakeSaved:
    event = None
    if wake.state in TOLD:
        told: dict[str, object] = {
            "wake": wake.id,
            "outcome": wake.state,
            "by": wake.by,
        }
        event = controller_event(
            "controller_woken", controller, now, wake.reason, job=wake.job, **told
        )
    body = msgspec.json.encode(wake)
    return WakeSaved(wake.id, wake.controller, wake.number, wake.state, body, event)


def controller_event(
    kind: str,
    controller: Controller,
    now: float,
    reason: str | None = None,
    *,
    job: str | None = None,
    **data: object,
) -> Event:
    """Something became of a controller."""
    about: dict[str, object] = {"controller": controller.name, **data}
    if reason:
        about["reason"] = reason
    return Event(kind, now, controller.repo or None, job, about)
