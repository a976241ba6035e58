"""When a schedule is due: cron in time zones, intervals, and what is refused."""

from __future__ import annotations

import datetime as dt
import time
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.triggers import (
    Cron,
    Every,
    Manual,
    Once,
    cron,
    every,
    passed,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONES = (
    "UTC",
    "Europe/Prague",
    "America/New_York",
    "America/Sao_Paulo",  # once changed at midnight
    "Australia/Lord_Howe",  # changes by half an hour
    "Africa/Casablanca",  # changes for Ramadan
    "Asia/Kathmandu",  # 5:45 ahead
    "Pacific/Chatham",
)
YEARS = (2017, 2026)
DAY = 86_400


def begin_of(year: int) -> float:
    return dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()


def due(trigger: Cron, year: int) -> list[float]:
    begin, end = begin_of(year), begin_of(year + 1)
    found = windows(trigger, begin - 1, 0)
    return [w.due for w in takewhile(lambda w: w.due < end, found)]


def local(moment: float, zone: ZoneInfo) -> dt.datetime:
    return dt.datetime.fromtimestamp(moment, zone)


def once_a_day(year: int, zone: ZoneInfo, hour: int, minute: int) -> Iterator[float]:
    """An implementation of its own: by the wall time of each day, looked for minute by
    minute where the clocks change."""
    day = dt.date(year - 1, 12, 30)
    while day <= dt.date(year + 1, 1, 2):
        wanted = dt.datetime.combine(day, dt.time(hour, minute))
        moment = wanted.replace(tzinfo=zone, fold=0).timestamp()
        if local(moment, zone).replace(tzinfo=None) != wanted:
            # It is skipped: the first minute of which the clock says something later.
            moment = next(
                at
                for at in range(
                    int(moment) // 60 * 60 - DAY // 2, int(moment) + DAY, 60
                )
                if local(at, zone).replace(tzinfo=None) > wanted
            )
        yield moment
        day += dt.timedelta(1)


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", ["30 2", "0 0", "59 23"])
def test_a_time_of_the_day_comes_once_each_day(at: str, zone: str, year: int) -> None:
    minute, hour = map(int, at.split())
    expected = [
        moment
        for moment in once_a_day(year, ZoneInfo(zone), hour, minute)
        if begin_of(year) <= moment < begin_of(year + 1)
    ]
    assert due(cron(f"{at} * * *", zone), year) == sorted(set(expected))


@pytest.mark.parametrize("year", [2018])
@pytest.mark.parametrize("zone", ZONES[1:5])
def test_every_half_hour_is_every_half_hour_of_the_clock(zone: str, year: int) -> None:
    info = ZoneInfo(zone)
    expected = [
        at
        for at in range(int(begin_of(year)), int(begin_of(year + 1)), 900)
        if local(at, info).minute in (0, 30)
    ]
    assert due(cron("*/30 * * * *", zone), year) == expected


def test_the_hour_that_does_not_exist_and_the_one_that_comes_twice() -> None:
    trigger = cron("30 2 * * *", "Europe/Prague")
    spring = dt.datetime(2026, 3, 28, 12, tzinfo=dt.UTC).timestamp()
    autumn = dt.datetime(2026, 10, 24, 12, tzinfo=dt.UTC).timestamp()
    told = [
        [local(w.due, ZoneInfo("UTC")).isoformat()[5:16] for w in islice(found, 2)]
        for found in (windows(trigger, spring, 0), windows(trigger, autumn, 0))
    ]
    assert told == [["03-29T01:00", "03-30T00:30"], ["10-25T00:30", "10-26T01:30"]]
    # Whoever looks between the two sees the next day.
    between = dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC).timestamp()
    assert next(windows(trigger, between, 0)).due > between + 20 * 3600


def test_a_day_of_the_month_or_a_day_of_the_week() -> None:
    found = windows(cron("0 9 13 * 5", "UTC"), begin_of(2026), 0)
    days = [local(w.due, ZoneInfo("UTC")) for w in islice(found, 10)]
    assert all(day.day == 13 or day.isoweekday() == 5 for day in days)
    assert {day.day == 13 for day in days} == {True, False}


def test_names_and_nicknames() -> None:
    for one, other in (
        ("@daily", "0 0 * * *"),
        ("@Weekly", "0 0 * * sun"),
        ("0 8 * jan-mar mon-fri", "0 8 * 1-3 1-5"),
    ):
        assert due(cron(one, "UTC"), 2026) == due(cron(other, "UTC"), 2026)


@pytest.mark.parametrize(
    "expression",
    [
        *("0 0 30 2 *", "0 0 31 4,6 *", "@sometimes", "* * * *", "* * * * * *"),
        *("61 * * * *", "", "a b c d e", "*/0 * * * *", "1" * 300),
    ],
)
def test_what_is_no_time_is_refused_at_once(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInput, match=r"^cron: "):
        cron(expression, "UTC")
    assert time.process_time() - began < 5


def test_a_rare_date_has_its_day() -> None:
    leap = next(windows(cron("0 0 29 2 *", "UTC"), begin_of(2026), 0))
    assert local(leap.due, ZoneInfo("UTC")).date() == dt.date(2028, 2, 29)
    assert due(cron("0 0 31 2 1-5", "UTC"), 2026), "its weekdays come"


@pytest.mark.parametrize("zone", ["", "Nowhere/City", "../../etc/passwd", "/etc/x"])
def test_a_time_zone_has_to_be_one(zone: str) -> None:
    with pytest.raises(InvalidInput, match="timezone"):
        cron("@daily", zone)


def test_a_good_expression_is_good_around_every_change_of_the_clocks() -> None:
    for month, day in ((3, 29), (10, 25)):
        change = dt.datetime(2026, month, day, tzinfo=dt.UTC).timestamp()
        for hour in range(-7 * 24, 7 * 24):
            after = change + hour * 3600
            found = next(windows(cron("0 2 * * *", "Europe/Prague"), after, 0))
            assert after < found.due <= after + 25 * 3600


@given(
    seconds=some.floats(1, 1e6),
    after=some.floats(0, 2e9),
    ahead=some.floats(0, 1e7),
    most=some.integers(1, 5),
)
def test_the_windows_that_passed_are_the_last_of_all_of_them(
    seconds: float, after: float, ahead: float, most: int
) -> None:
    until = after + min(ahead, 500 * seconds)
    found = passed(Every(seconds), after, 7, until, most)
    count = found.number - 7
    every_one = list(islice(windows(Every(seconds), after, 7), count))
    assert [w.key for w in found.last] == [w.key for w in every_one[-most:]]
    assert found.more == (count > most)
    following = next(windows(Every(seconds), found.after, found.number))
    assert following.due > until - seconds * 1e-6


@given(
    minute=some.integers(0, 59),
    after=some.integers(1_700_000_000, 1_800_000_000),
    hours=some.integers(0, 100),
    most=some.integers(1, 4),
    zone=some.sampled_from(ZONES),
)
def test_cron_looks_back_as_it_looks_ahead(
    minute: int, after: int, hours: int, most: int, zone: str
) -> None:
    trigger = cron(f"{minute} */3 * * *", zone)
    until = after + hours * 3600.0
    ahead = list(takewhile(lambda w: w.due <= until, windows(trigger, after, 0)))
    found = passed(trigger, after, 0, until, most)
    assert found.last == ahead[-most:]
    assert found.more == (len(ahead) > most)


def test_once_is_once_and_by_hand_is_never() -> None:
    assert [w.due for w in windows(Once(5.0), 9.0, 0)] == [5.0]
    assert not list(windows(Once(5.0), 0.0, 1))
    assert not list(windows(Manual(), 0.0, 0))
    assert passed(Manual(), 0.0, 0, 1e9, 3).last == []
    late = passed(Once(5.0), 9.0, 0, 10.0, 1)
    assert ([w.due for w in late.last], late.number) == ([5.0], 1)
    assert passed(Once(5.0), 0.0, 0, 4.0, 1).last == []


@pytest.mark.parametrize("seconds", [0, 0.5, -3, 1e12])
def test_an_interval_has_its_bounds(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="every"):
        every(seconds)
