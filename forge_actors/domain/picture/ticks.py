"""Marks on an axis of time, and how moments are written. All of it in UTC."""

from __future__ import annotations

import math

MINUTE, HOUR, DAY = 60, 3600, 86_400
#: Distances between marks that people can count in, in seconds.
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE * each for each in (1, 2, 5, 10, 15, 30)),
    *(HOUR * each for each in (1, 2, 3, 6, 12)),
    *(DAY * each for each in (1, 2, 7, 14, 28, 91, 364)),
)
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905
#: Days of 400 years, after which the calendar repeats itself.
_ERA = 146_097


def ticks(epoch: float, seconds: float, most: int = 8) -> list[tuple[float, str]]:
    """Moments as offsets from `epoch`, with their texts; at most `most` of them."""
    step = next((each for each in STEPS if seconds / each <= most - 1), None)
    if step is None:
        step = STEPS[-1] * math.ceil(seconds / STEPS[-1] / (most - 1))
    first = math.ceil(epoch / step) * step
    told: list[tuple[float, str]] = []
    while first <= epoch + seconds:
        told.append((first - epoch, _mark(first, step)))
        first += step
    return told


def _mark(moment: int, step: int) -> str:
    if step >= DAY or moment % DAY == 0:
        return day(moment)
    return clock(moment) if step < MINUTE else clock(moment)[:5]


def clock(moment: float) -> str:
    """The time of a day: `14:03:59`."""
    seconds = math.floor(moment) % DAY
    hours, minutes = seconds // HOUR, seconds % HOUR // MINUTE
    return f"{hours:02}:{minutes:02}:{seconds % MINUTE:02}"


def day(moment: float) -> str:
    """`30 Nov`."""
    _, month, number = _date(moment)
    return f"{number} {MONTHS[month - 1]}"


def written(moment: float) -> str:
    """A moment as people write it: `2026-11-30 14:03:59`."""
    year, month, number = _date(moment)
    return f"{year:04}-{month:02}-{number:02} {clock(moment)}"


def _date(moment: float) -> tuple[int, int, int]:
    """Year, month and day. Reckoned from March, so that a leap day is the last."""
    days = math.floor(moment / DAY) + 719_468
    era, of_era = divmod(days, _ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    march = (5 * of_year + 2) // 153
    number = of_year - (153 * march + 2) // 5 + 1
    month = march + 3 if march < 10 else march - 9
    return year + era * 400 + (month <= 2), month, number


def span(seconds: float) -> str:
    """A length of time in two units at most: `0.4s`, `42s`, `3m 20s`, `5h 1m`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s".replace(".0s", "s")
    left = round(seconds)
    for size, unit, below, name in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "m"),
        (MINUTE, "m", 1, "s"),
    ):
        if left >= size:
            rest = left % size // below
            return (
                f"{left // size}{unit} {rest}{name}"
                if rest
                else f"{left // size}{unit}"
            )
    return f"{left}s"
