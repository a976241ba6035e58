"""The events that were told last, kept for readers that are nearly at the end."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.edges.gateway.sse import Entry

#: Most that is kept; who is further behind reads the store.
RING_EVENTS = 4096
RING_BYTES = 4 * 1024 * 1024
#: Bytes of one piece for a reader, so that one who is slow holds little.
PIECE_BYTES = 64 * 1024
#: Pieces that are kept for readers who are at the same place.
_SHARED_PIECES = 8

_seq = attrgetter("seq")


class Ring:
    """Every event behind `after` up to `last`; nothing before it is begun."""

    def __init__(self) -> None:
        self.after = -1
        self.last = -1
        self._entries: list[Entry] = []
        self._bytes = 0
        self._shared: dict[int, tuple[int, bytes]] = {}

    def begin(self, after: int) -> None:
        """Forget what is here: what comes follows the event `after`."""
        self.after = self.last = after
        self._entries.clear()
        self._shared.clear()
        self._bytes = 0

    def add(self, entries: Sequence[Entry], last: int) -> None:
        """Events that follow, the oldest first, and how far they reach."""
        self._entries += entries
        self._bytes += sum(len(entry.frame) for entry in entries)
        self.last = last
        self._shared.clear()
        self._trim()

    def _trim(self) -> None:
        gone = max(0, len(self._entries) - RING_EVENTS)
        size = self._bytes - sum(len(entry.frame) for entry in self._entries[:gone])
        while size > RING_BYTES:
            size -= len(self._entries[gone].frame)
            gone += 1
        if gone:
            self.after = self._entries[gone - 1].seq
            del self._entries[:gone]
            self._bytes = size

    def whole(self, cursor: int) -> tuple[int, bytes]:
        """The next piece behind `cursor`, and how far it reaches."""
        found = self._shared.get(cursor)
        if found is None:
            found = self._piece(cursor, lambda _: True)
            if len(self._shared) >= _SHARED_PIECES:
                del self._shared[next(iter(self._shared))]
            self._shared[cursor] = found
        return found

    def some(self, cursor: int, takes: Callable[[Entry], bool]) -> tuple[int, bytes]:
        """The same, of the events that `takes` is true for."""
        return self._piece(cursor, takes)

    def _piece(self, cursor: int, takes: Callable[[Entry], bool]) -> tuple[int, bytes]:
        start = bisect_right(self._entries, cursor, key=_seq)
        return piece_of(self._entries[start:], max(cursor, self.last), takes)


def piece_of(
    entries: Sequence[Entry], last: int, takes: Callable[[Entry], bool]
) -> tuple[int, bytes]:
    """As many entries as a piece may have, and how far it reaches: to `last`, if that
    are all of them."""
    frames: list[bytes] = []
    size, before = 0, None
    for entry in entries:
        if takes(entry):
            if size >= PIECE_BYTES and before is not None:
                return before, b"".join(frames)
            frames.append(entry.frame)
            size += len(entry.frame)
        before = entry.seq
    return last, b"".join(frames)
