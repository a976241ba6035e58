"""The look at the machine's load: now and then, and only while work waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.changes import Noted
from forge_actors.domain.events import Event

if TYPE_CHECKING:
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.domain.capacity import Capacity

#: Seconds between two looks.
PRESSURE_SECONDS = 5.0


class PressureLook:
    """Tells the capacity, and the history, whether there is pressure."""

    def __init__(self, context: Context, capacity: Capacity) -> None:
        self._context = context
        self._capacity = capacity
        self._sampled_at = -PRESSURE_SECONDS

    def again(self) -> None:
        """The limits are others, so the next look must not wait."""
        self._sampled_at = -PRESSURE_SECONDS

    def sample(self) -> None:
        """Look, unless the last look is only a moment ago."""
        if trio.current_time() - self._sampled_at < PRESSURE_SECONDS:
            return
        self._sampled_at = trio.current_time()
        reason = self._context.pressure()
        if (reason is None) != (self._capacity.pressure is None):
            kind = "pressure_ended" if reason is None else "pressure_began"
            data: dict[str, object] = {"reason": reason or ""}
            event = Event(kind, self._context.clock.now(), data=data)
            self._context.store.save([Noted(event)])
        self._capacity.pressure = reason
