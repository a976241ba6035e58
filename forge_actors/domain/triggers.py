"""When a schedule is due: its windows, in order, each with a key that is its own.

The arithmetic of cron is cronsim's, with the rules of Debian's cron: a day of the month
or a day of the week, a time that a clock change skips once, right after the change, and
one that comes twice the first time only. Moments are seconds of the wall clock since
1970, UTC.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from msgspec import Struct, structs

from forge_actors.domain.causes import OF_CHECKOUT, Cause, Issues
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds of the shortest interval, and of the longest.
MIN_EVERY, MAX_EVERY = 1.0, 10 * 366 * 86_400.0
#: No moment is later: the last day that a calendar of four digits has.
LAST_MOMENT = 253_370_764_800.0
#: Shorter ways to write five fields.
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = 5
MAX_EXPRESSION = 200
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
CLOCK_CHANGES = (
    "a time that a clock change skips comes once, right after the change; one that"
    " comes twice, the first time only"
)


class Every(Struct, frozen=True, tag="every", tag_field="kind"):
    """At each interval, counted from when the schedule was made."""

    seconds: float

    def __str__(self) -> str:
        return f"every {_span(self.seconds)}"


class Cron(Struct, frozen=True, tag="cron", tag_field="kind"):
    """At the times of a cron expression of five fields, in an IANA time zone."""

    expression: str
    timezone: str

    def __str__(self) -> str:
        return f"cron {self.expression} in {self.timezone}"


class Once(Struct, frozen=True, tag="once", tag_field="kind"):
    """At one moment."""

    moment: float

    def __str__(self) -> str:
        return "once"


class Manual(Struct, frozen=True, tag="manual", tag_field="kind"):
    """Only when somebody says so."""

    def __str__(self) -> str:
        return "by hand"


class On(Struct, frozen=True, tag="on", tag_field="kind"):
    """Whenever something comes to pass. Its windows are told by who sees that."""

    cause: Cause
    #: Seconds from one start to the next, at least.
    least: float = 0.0

    def __str__(self) -> str:
        if isinstance(self.cause, Issues):
            return f"on {self.cause}, asked every {_span(self.cause.every)}"
        return f"on {self.cause}" + (
            f", once in {_span(self.least)} at most" if self.least else ""
        )


Trigger = Every | Cron | Once | Manual | On


def of_checkout(trigger: Trigger) -> bool:
    """Whether what it waits for is seen in a checkout."""
    return isinstance(trigger, On) and isinstance(trigger.cause, OF_CHECKOUT)


def same_windows(one: Trigger, other: Trigger) -> bool:
    """Whether two triggers have the same windows: how often issues are asked for, and
    how close two starts may be, does not matter to them."""
    if not isinstance(one, On) or not isinstance(other, On):
        return one == other
    if isinstance(one.cause, Issues) and isinstance(other.cause, Issues):
        cause = structs.replace(one.cause, every=other.cause.every)
        return cause == other.cause
    return one.cause == other.cause


def of_issues(trigger: Trigger) -> bool:
    """Whether each of its windows is an issue, so that none stands for another."""
    return isinstance(trigger, On) and isinstance(trigger.cause, Issues)


def every(seconds: float) -> Every:
    """An interval.

    Raises:
        InvalidInput: it is shorter than a second, or longer than ten years.
    """
    if not MIN_EVERY <= seconds <= MAX_EVERY:
        raise InvalidInput("every", "must be from 1s to ten years")
    return Every(seconds)


def cron(expression: str, timezone: str) -> Cron:
    """A cron expression, checked.

    Raises:
        InvalidInput: it is none, it is of a date that never comes, or there is no such
            time zone.
    """
    if len(expression) > MAX_EXPRESSION:
        raise InvalidInput("cron", f"is longer than {MAX_EXPRESSION} characters")
    text = " ".join(expression.split())
    fields = NICKNAMES.get(text.lower(), text)
    if fields.startswith("@"):
        known = ", ".join(NICKNAMES)
        raise InvalidInput("cron", f"{text!r} is no time; there are {known}")
    if fields.count(" ") != FIELDS - 1:
        raise InvalidInput(
            "cron",
            f"{text!r} does not have the five fields"
            " minute hour day-of-month month day-of-week",
        )
    checked_zone(timezone)
    try:
        found = next(CronSim(fields, datetime(2000, 1, 1)), None)
    except CronSimError as error:
        problem = str(error)
        raise InvalidInput(
            "cron", f"{text!r} cannot be read: {problem[:1].lower() + problem[1:]}"
        ) from None
    if found is None:
        raise InvalidInput("cron", f"{text!r} is a date that never comes")
    return Cron(text, timezone)


def checked_zone(name: str) -> ZoneInfo:
    """The time zone with this name.

    Raises:
        InvalidInput: there is none.
    """
    if _ZONE.fullmatch(name):
        try:
            return _zone(name)
        except (KeyError, OSError, ValueError):
            pass
    raise InvalidInput(
        "timezone", f"{name!r} is no IANA time zone, such as Europe/Prague or UTC"
    )


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


class Window(Struct, frozen=True):
    """One time at which a schedule is due. Its key names it for ever."""

    key: str
    due: float
    #: What came to pass, where it is no time that has come.
    cause: str = ""
    #: Variables that its job is given.
    env: dict[str, str] = {}


def windows(trigger: Trigger, after: float, number: int) -> Iterator[Window]:
    """The windows later than a moment, in order; `number` were there before.

    Of an interval `after` is the window before, or when the schedule was made.
    """
    match trigger:
        case Manual() | On():
            return
        case Once(moment):
            if number == 0:
                yield _once(moment)
        case Every(seconds):
            step = 1
            while (due := after + step * seconds) < LAST_MOMENT:
                yield _interval(number + step, due)
                step += 1
        case Cron():
            for due in _steps(trigger, after, reverse=False):
                yield Window(f"cron-{due:.0f}", due)


class Passed(Struct, frozen=True):
    """The windows between two moments: the last of them, and whether there were more
    before those."""

    last: list[Window]
    more: bool
    #: Where the windows behind them begin, and how many there were until then.
    after: float
    number: int


def passed(
    trigger: Trigger, after: float, number: int, until: float, most: int
) -> Passed:
    """The windows later than `after` and not later than `until`, at most the last
    `most`. It costs what these are, however many there were before them."""
    match trigger:
        case Cron():
            times = takewhile(lambda due: due > after, _times_back(trigger, until))
            found = [Window(f"cron-{due:.0f}", due) for due in islice(times, most + 1)]
            return Passed(found[most - 1 :: -1], len(found) > most, until, number)
        case Every(seconds):
            count = max(0, math.floor((until - after) / seconds))
            first = max(0, count - most)
            last = [
                _interval(number + step, after + step * seconds)
                for step in range(first + 1, count + 1)
            ]
            begin = after + count * seconds
            return Passed(last, first > 0, begin, number + count)
        case Once(moment) if number == 0 and moment <= until:
            return Passed([_once(moment)], False, until, 1)
        case _:
            return Passed([], False, after, number)


# A schedule that is given another trigger counts anew, so a number alone, or none,
# would name a window that had its job before.
def _interval(number: int, due: float) -> Window:
    return Window(f"every-{number}-{due:.0f}", due)


def _once(moment: float) -> Window:
    return Window(f"once-{moment:.3f}", moment)


def _times_back(trigger: Cron, until: float) -> Iterator[float]:
    # Behind it, so that a time of just now counts.
    return _steps(trigger, math.floor(until) + 1.0, reverse=True)


def _steps(trigger: Cron, begin: float, *, reverse: bool) -> Iterator[float]:
    fields = NICKNAMES.get(trigger.expression.lower(), trigger.expression)
    zone = checked_zone(trigger.timezone)
    start = datetime.fromtimestamp(begin, zone)
    for found in CronSim(fields, start, reverse=reverse):
        moment = found.timestamp()
        # The library steps from the wall time, which a clock change makes come twice.
        if (moment < begin) if reverse else (moment > begin):
            yield moment


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
