"""The events of a runtime, for a program that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.events import EventQuery

if TYPE_CHECKING:
    from forge_actors.domain.events import EventView
    from forge_actors.runtime.control import RuntimeControl

EVENT_PAGE = 1000


class EventStream:
    """An asynchronous iterator over events until the runtime ends; none is skipped."""

    def __init__(self, control: RuntimeControl, after: int | None) -> None:
        first = control.last_event if after is None else after
        self._control = control
        self._query = EventQuery(after=first, limit=EVENT_PAGE)
        self._page: list[EventView] = []

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> EventView:
        if not self._page:
            page = await self._control.events(self._query, wait=True)
            if not page.events:
                raise StopAsyncIteration
            self._page = page.events[::-1]
            self._query = page.next
        return self._page.pop()
