"""What can be asked of the event log of a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.events import EventPage, EventQuery


class EventControl(Protocol):
    """The part of the port `Control` that reads events."""

    async def events(self, query: EventQuery, *, wait: bool) -> EventPage:
        """The events that a query asks for, at most `limit` of them, oldest first.

        With `wait` there is at least one, unless the runtime ends: then there is none.
        """

    async def event_range(self) -> tuple[int, int]:
        """The numbers of the first event that is kept, and of the last one there is.

        Without any the first is one more than the last.
        """
