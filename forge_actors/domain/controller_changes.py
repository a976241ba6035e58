"""Changes of controllers, and of what became of their wakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.events import Event


class ControllerSaved(Struct, frozen=True):
    """All that is known of a controller now. Its times are those of the wall clock, so
    it is encoded already."""

    controller: str
    name: str
    state: str
    body: bytes
    event: Event | None = None


class WakeSaved(Struct, frozen=True):
    """What became of an occurrence that was to wake a controller, until now or for
    good; the oldest of that controller go."""

    wake: str
    controller: str
    number: int
    state: str
    body: bytes
    event: Event | None = None


class ControllerRemoved(Struct, frozen=True):
    """A controller goes with its wakes."""

    controller: str
    event: Event


ControllerChange = ControllerSaved | WakeSaved | ControllerRemoved
