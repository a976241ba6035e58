"""Moments as people write them: a point in time, or a span that ends now."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput


def parse_day(text: str, now: float, *, field: str) -> float:
    """The same, or the beginning of a day such as `2026-01-02`, in UTC.

    Raises:
        InvalidInput: anything else.
    """
    with suppress(ValueError):
        day = date.fromisoformat(text.strip())
        return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    return parse_moment(text, now, field=field)


def parse_moment(text: str, now: float, *, field: str) -> float:
    """Seconds since 1970 from `2026-01-02T03:04:05Z`, or from `10m`: so long ago.

    Raises:
        InvalidInput: anything else, a time without its offset included.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    else:
        if moment.tzinfo is None:
            raise InvalidInput(
                field, f"{text!r} does not say which offset it has; put Z behind UTC"
            )
        return moment.timestamp()
    try:
        return now - parse_duration(text, field=field)
    except InvalidInput:
        raise InvalidInput(
            field,
            f"{text!r} is neither a time such as 2026-01-02T03:04:05Z"
            " nor a span such as 10m",
        ) from None


def window(since: str, until: str | None, now: float) -> tuple[float, float]:
    """From one moment to another, now if that is earlier, to the millisecond.

    Raises:
        InvalidInput: they are no moments, or the end is not behind the beginning.
    """
    begins = round(parse_day(since, now, field="since"), 3)
    ends = now if until is None else min(parse_day(until, now, field="until"), now)
    ends = round(ends, 3)
    if begins >= ends:
        raise InvalidInput("since", f"{since!r} is not before the end, nor before now")
    return begins, ends
