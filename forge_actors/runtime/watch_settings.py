"""The section `[watchdog]`: when a part of the service counts as stalled."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput

#: Seconds; less than a busy machine may take for one step would cry wolf.
LEAST = 1.0


class WatchdogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """When an actor, or the loop that runs them all, counts as stalled."""

    #: So long at one and the same message, at least 1 s.
    stall_after: str | float = "30s"

    @property
    def seconds(self) -> float:
        """
        Raises:
            InvalidInput: naming the field.
        """
        name = "watchdog.stall_after"
        seconds = parse_duration(self.stall_after, field=name)
        if seconds < LEAST:
            raise InvalidInput(name, f"must not be less than {LEAST:g} s")
        return seconds
