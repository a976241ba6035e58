"""How far the history may go without losing an event of a job that has not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Rows of the history that are read at once.
ROWS = 256


class _Event(Struct):
    """All that matters of one."""

    job: str | None = None


_events = msgspec.json.Decoder(list[_Event]).decode


def unprotected(read: Callable[..., list[tuple[Any, ...]]], before: int) -> int:
    """The number, at most `before`, up to which no row holds such an event."""
    active = {str(row[0]) for row in read("active_jobs")}
    after = 0
    while rows := read("history_rows", after, before, ROWS):
        for first, page in rows:
            events = _events(page)
            if first + len(events) > before:
                return int(first)
            if active and any(event.job in active for event in events):
                return int(first)
            after = first
    return before
