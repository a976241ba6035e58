"""Masking: the values of a job's secrets taken out of its output while it is written.

Only jobs that have secrets have one. It knows values, not patterns: what a program
makes of a value, such as its base64, passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Shorter values would be found where they are none, and leave no readable log.
LEAST_BYTES = 6
#: Each line of a value is masked too, unless it has more of them than this: every one
#: is looked for in all of the output.
MOST_LINES = 100
MARK = b"[redacted]"


def masked_values(secrets: Iterable[bytes]) -> tuple[bytes, ...]:
    """What is to be masked of these secrets: each value, and each line of it.

    Programs print a value line by line, and indent it.
    """
    found: dict[bytes, None] = {}
    for secret in secrets:
        lines = secret.splitlines()
        if len(lines) > MOST_LINES:
            lines = []
        for value in (secret, *map(bytes.strip, lines)):
            if len(value) >= LEAST_BYTES:
                found[value] = None
    return tuple(found)


class Masking:
    """Puts a mark in the place of values in a stream, whatever its pieces.

    Values that overlap become one mark. Held back is only what may be the beginning of
    a value, which is shorter than the longest of them.
    """

    __slots__ = ("_held", "_hidden", "_values")

    def __init__(self, values: tuple[bytes, ...]) -> None:
        self._values = values
        self._held = b""
        #: Bytes at the front of those held that belong to a mark that was written.
        self._hidden = 0

    def feed(self, data: bytes) -> bytes:
        """What can be written once these bytes have come too."""
        data = self._held + data
        return self._write(data, self._settled(data))

    def flush(self) -> bytes:
        """The rest: nothing follows."""
        return self._write(self._held, len(self._held))

    def _write(self, data: bytes, settled: int) -> bytes:
        """The bytes up to `settled`; those behind it are held."""
        written: list[bytes] = []
        place = self._hidden
        for start, end in self._found(data):
            if start >= settled:
                break
            if start >= place:
                written += (data[place:start], MARK)
            place = max(place, end)
        if place < settled:
            written.append(data[place:settled])
            place = settled
        self._held, self._hidden = data[settled:], place - settled
        return b"".join(written)

    def _found(self, data: bytes) -> list[tuple[int, int]]:
        """Where values are, in the order of their beginnings."""
        spans: list[tuple[int, int]] = []
        for value in self._values:
            start = data.find(value)
            while start >= 0:
                spans.append((start, start + len(value)))
                start = data.find(value, start + 1)
        spans.sort()
        return spans

    def _settled(self, data: bytes) -> int:
        """Up to where no value can begin that is not whole yet."""
        settled = len(data)
        for value in self._values:
            start = max(0, len(data) - len(value) + 1)
            while 0 <= (start := data.find(value[:1], start)) < settled:
                if value.startswith(data[start:]):
                    settled = start
                start += 1
        return settled
