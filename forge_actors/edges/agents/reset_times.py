"""When a limit ends, by the words of a message.

A moment is stated in many forms: seconds since 1970, a span from now, a time of day
with or without a date and a time zone. What is not understood is None: whoever asks has
to choose a wait.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

#: A moment that passed so recently is meant to be now, not a day later.
PASSED = 3600.0
#: Seconds to wait where the stated moment has passed.
A_LITTLE = 60.0
#: Characters of a message that are looked at.
LOOKED_AT = 4000

_EPOCH = re.compile(r"limit reached\|(\d{9,11})\b")
_SPAN = re.compile(
    r"\b(?:in|after)\s+((?:(?:\d+(?:\.\d+)?)\s*[a-z]+,?\s*(?:and\s+)?){1,5})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNIT_WORDS = re.compile(
    r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_WHEN = re.compile(
    r"\b(?:resets?|again|until|available|renews?)\b[\s:]*(?:at|on)?\s*"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+"
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s*(?:(?P<year>\d{4})\b,?\s*)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s*"
    r"(?P<half>[ap]\.?m\.?)?"
    r"(?:\s*\(?(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+[0-9]*){1,2}|UTC|GMT)\)?)?",
    re.IGNORECASE,
)


def reset_time(message: str, now: float, zone: str | None = None) -> float | None:
    """The moment that a message states, in seconds since 1970, or None.

    `zone` is where its writer reads the clock, by name; without one it is this machine.
    """
    message = message[:LOOKED_AT]
    if found := _EPOCH.search(message):
        return _not_past(float(found[1]), now)
    for span in _SPAN.finditer(message):
        if seconds := _seconds(span[1]):
            return now + seconds
    for stated in _WHEN.finditer(message):
        moment = _moment(stated, now, zone)
        if moment is not None:
            return _not_past(moment, now)
    return None


def _seconds(words: str) -> float:
    """How long a span is that begins a text such as `2 days 17 hours and so on`."""
    seconds = 0.0
    for amount, unit in _PART.findall(words):
        if not _UNIT_WORDS.fullmatch(unit.lower()):
            break
        seconds += float(amount) * _UNITS[unit[0].lower()]
    return seconds


def _moment(stated: re.Match[str], now: float, zone: str | None) -> float | None:
    hour, minute = int(stated["hour"]), int(stated["minute"] or 0)
    half = (stated["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    elif stated["minute"] is None:
        return None  # a bare number is no time of day
    place = _zone(stated["zone"] or zone)
    here = datetime.fromtimestamp(now, place)
    try:
        clock = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if stated["month"] is None:
            return _next_time_of_day(clock, now, place)
        month = _MONTHS.index(stated["month"].lower()) + 1
        year = int(stated["year"] or here.year)
        dated = clock.replace(year=year, month=month, day=int(stated["day"]))
        # Without a year it is the next one: in December a day of January is ahead.
        if stated["year"] is None and dated.timestamp() < now - 180 * 86_400:
            dated = dated.replace(year=year + 1)
    except ValueError:
        return None
    return dated.timestamp()


def _next_time_of_day(clock: datetime, now: float, place: tzinfo | None) -> float:
    """The first such time that is not long past. An hour that a change of the clock
    repeats is there twice."""
    moments = []
    for days in (-1, 0, 1, 2):
        day = (clock + timedelta(days=days)).replace(tzinfo=place)
        moments += [day.replace(fold=fold).timestamp() for fold in (0, 1)]
    return min(moment for moment in moments if moment >= now - PASSED)


def _not_past(moment: float, now: float) -> float:
    return moment if moment > now else now + A_LITTLE


def _zone(name: str | None) -> tzinfo | None:
    """None is the zone of this machine, also for a name that nobody knows."""
    if name is None:
        return None
    if name.upper() in ("UTC", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):  # it can be anything, also a path
        return None
