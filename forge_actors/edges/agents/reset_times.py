"""When a limit ends, by the words of a message.

A moment is stated in many forms: seconds since 1970, a span from now, an ISO time, a
time of day with or without a day and a time zone. What is not understood is None:
whoever asks has to choose a wait.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

#: A moment that passed so recently is meant to be now, not a day later.
PASSED = 3600.0
#: Seconds to wait where the stated moment has passed.
A_LITTLE = 60.0
#: Characters of a message that are looked at.
LOOKED_AT = 4000

_EPOCH = re.compile(r"limit reached\|(\d{9,11})\b")
#: As a header or a field has it, in seconds.
_AFTER = re.compile(
    r"\bretry[-_]after[\"']?\s*[:=]\s*[\"']?(\d{1,7})\b(?![-:]|\s*[mhdw])",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"\b(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?"
    r"\s?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b)?",
    re.IGNORECASE,
)
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
_DAYS = "mon tue wed thu fri sat sun".split()  # noqa: SIM905
#: What is meant by names that are no names of places, in hours from UTC.
_OFFSETS = {
    "UTC": 0,
    "GMT": 0,
    "WET": 0,
    "BST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
_FROM_UTC = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?", re.IGNORECASE)
_WHEN = re.compile(
    r"\b(?:resets?|again|until|available|renews?)\b[\s:]*(?:at|on)?\s*"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+"
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s*(?:(?P<year>\d{4})\b,?\s*)?(?:at\s+)?"
    r"|(?P<on>tomorrow|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)\.?,?\s*(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s*"
    r"(?P<half>[ap]\.?m\.?)?"
    r"(?:\s*\(?(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+[0-9]*){1,2}"
    rf"|(?:UTC|GMT)[+-]\d{{1,2}}(?::?\d{{2}})?|(?:{'|'.join(_OFFSETS)})\b)\)?)?",
    re.IGNORECASE,
)


def reset_time(message: str, now: float, zone: str | None = None) -> float | None:
    """The moment that a message states, in seconds since 1970, or None.

    `zone` is where its writer reads the clock, by name; without one it is this machine.
    """
    message = message[:LOOKED_AT]
    if found := _EPOCH.search(message):
        return _not_past(float(found[1]), now)
    if found := _ISO.search(message):
        return _iso(found, now, zone)
    if found := _AFTER.search(message):
        return now + float(found[1])
    for span in _SPAN.finditer(message):
        if seconds := _seconds(span[1]):
            return now + seconds
    for stated in _WHEN.finditer(message):
        moment = _moment(stated, now, zone)
        if moment is not None:
            return _not_past(moment, now)
    return None


def _iso(stated: re.Match[str], now: float, zone: str | None) -> float | None:
    place = stated["zone"]
    place = "UTC" if place in ("Z", "z") else place or zone
    try:
        moment = datetime.fromisoformat(f"{stated[1]} {stated[2]}")
        return _not_past(moment.replace(tzinfo=_zone(place)).timestamp(), now)
    except (ValueError, OverflowError):
        return None  # no day, or none of which this machine knows the time


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
            return _next_time_of_day(clock, now, place, stated["on"])
        month = _MONTHS.index(stated["month"].lower()) + 1
        year = int(stated["year"] or here.year)
        dated = clock.replace(year=year, month=month, day=int(stated["day"]))
        # Without a year it is the next one: in December a day of January is ahead.
        if stated["year"] is None and dated.timestamp() < now - 180 * 86_400:
            dated = dated.replace(year=year + 1)
    except ValueError:
        return None
    return dated.timestamp()


def _next_time_of_day(
    clock: datetime, now: float, place: tzinfo | None, on: str | None
) -> float:
    """The first such time that is not long past, on a day if one is named. An hour that
    a change of the clock repeats is there twice."""
    ahead: list[int] = [-1, 0, 1, 2]
    if on is not None and on.lower() == "tomorrow":
        ahead = [1]
    elif on is not None:
        until = (_DAYS.index(on[:3].lower()) - clock.weekday()) % 7
        ahead = [until, until + 7]
    moments = []
    for days in ahead:
        day = (clock + timedelta(days=days)).replace(tzinfo=place)
        moments += [day.replace(fold=fold).timestamp() for fold in (0, 1)]
    return min(moment for moment in moments if moment >= now - PASSED)


def _not_past(moment: float, now: float) -> float:
    return moment if moment > now else now + A_LITTLE


def _zone(name: str | None) -> tzinfo | None:
    """None is the zone of this machine, also for a name that nobody knows."""
    if name is None:
        return None
    if name.upper() in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[name.upper()]))
    try:
        if found := _FROM_UTC.fullmatch(name):
            ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
            return timezone(ahead if found[1] == "+" else -ahead)
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):  # it can be anything, also a path
        return None
