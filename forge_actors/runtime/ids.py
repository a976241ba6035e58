"""Ids: short enough to read, ordered by time, never used twice."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_TIME_BITS, _RANDOM_BITS = 45, 50
_PLACES = range(_TIME_BITS + _RANDOM_BITS - 5, -1, -10)


class IdSource:
    """Makes ids of 19 characters: 9 of time in ms, 10 of chance.

    Within one millisecond the number after the last one is taken, so that ids made one
    after the other are in order and a batch keeps the order of its lines.
    """

    def __init__(self) -> None:
        self._last = 0

    def make(self, now: float) -> str:
        """A new id for something that happens at `now`, in wall-clock seconds."""
        stamp = int(now * 1000)
        if stamp > self._last >> _RANDOM_BITS:
            # One bit less than there is room for, so that counting up has room too.
            chance = secrets.randbits(_RANDOM_BITS - 1)
            self._last = (stamp << _RANDOM_BITS) | chance
        else:
            # The same millisecond, or a clock that was set back.
            self._last += 1
        return _encode(self._last)


def _encode(number: int) -> str:
    # Two digits at a time; the first of the last pair is left out, as it is always 0.
    pairs = [_PAIRS[number >> bits & 1023] for bits in _PLACES]
    return "".join(pairs)[1:]
