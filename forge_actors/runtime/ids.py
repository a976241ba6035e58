"""Ids: short enough to read, ordered by time, never used twice."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_TIME_BITS, _RANDOM_BITS = 45, 50
#: The first digit, then two at a time.
_TOP = _TIME_BITS + _RANDOM_BITS - 5
_SHIFTS = range(_TOP - 10, -1, -10)
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


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
    pairs = [_PAIRS[number >> shift & 1023] for shift in _SHIFTS]
    return _ALPHABET[number >> _TOP & 31] + "".join(pairs)


def was_made_since(made: str, moment: float) -> bool:
    """Whether an id was made at a moment, in wall-clock seconds, or later."""
    return made >= _encode(int(moment * 1000) << _RANDOM_BITS)
