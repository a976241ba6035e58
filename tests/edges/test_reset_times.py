"""The moment at which a limit ends, in all the words that were seen."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.edges.agents.refusals import kind_of_status, kind_of_text
from forge_actors.edges.agents.reset_times import A_LITTLE, reset_time


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


NOW = at("2026-11-30 08:00")


@pytest.mark.parametrize(
    ("message", "moment"),
    [
        ("Claude AI usage limit reached|1796030000", 1796030000.0),
        (
            "usage limit reached. Your limit will reset at 3pm (America/Bogota).",
            at("2026-11-30 15:00", "America/Bogota"),
        ),
        (
            "You've hit your limit · resets 1:30am (Asia/Dhaka)",
            at("2026-12-01 01:30", "Asia/Dhaka"),
        ),
        (
            "limit - resets Feb 7, 11am (Asia/Seoul)",
            at("2027-02-07 11:00", "Asia/Seoul"),
        ),
        ("limit, resets 1am (Europe/Oslo)", at("2026-12-01 01:00", "Europe/Oslo")),
        ("or try again at 10:12 PM.", at("2026-11-30 22:12")),
        ("try again at Dec 3rd, 2026 10:12 PM.", at("2026-12-03 22:12")),
        ("try again in 2 days 17 hours 14 minutes", NOW + 234_840),
        ("Please try again in 56s.", NOW + 56),
        ("429, retry after 20 seconds", NOW + 20),
        ("the limit resets at 15:30", at("2026-11-30 15:30")),
        ("the limit resets 23:00 UTC", at("2026-11-30 23:00")),
        # 2026-11-30 is a Monday.
        ("resets Mon 9:15am", at("2026-11-30 09:15")),
        ("resets on Monday at 6am (UTC)", at("2026-12-07 06:00")),
        ("resets Thu 5:00am (Europe/Oslo)", at("2026-12-03 05:00", "Europe/Oslo")),
        ("the limit resets tomorrow at 5am", at("2026-12-01 05:00")),
        ("resets at 3 PM EST", at("2026-11-30 15:00", "America/New_York")),
        ("try again at 10:12 PM (PST)", at("2026-11-30 22:12", "America/Los_Angeles")),
        ("resets at 7 PM (GMT+2)", at("2026-11-30 17:00")),
        ("resets 19:00 UTC-03:30", at("2026-11-30 22:30")),
        ("resets 7pm CEST", at("2026-11-30 17:00")),
        ("limit resets 2026-12-01T05:00:00Z", at("2026-12-01 05:00")),
        ("try again at 2026-12-01T05:00:00.25+02:00.", at("2026-12-01 03:00")),
        ("until 2026-12-01 05:00 UTC", at("2026-12-01 05:00")),
        ("429 Too Many Requests, Retry-After: 120", NOW + 120),
        ('{"retry_after": 30}', NOW + 30),
        ("rate limit: retry after 20 minutes", NOW + 1200),
    ],
)
def test_a_stated_moment_is_understood(message: str, moment: float) -> None:
    assert reset_time(message, NOW, "UTC") == moment


def test_without_a_zone_of_its_own_a_time_is_of_the_program() -> None:
    message = "try again at 10:12 PM."
    moment = reset_time(message, NOW, "Asia/Kathmandu")
    assert moment == at("2026-11-30 22:12", "Asia/Kathmandu")


def test_a_moment_that_passed_just_now_means_soon_and_not_tomorrow() -> None:
    assert reset_time("resets 7:59am (UTC)", NOW) == NOW + A_LITTLE
    assert reset_time("limit reached|1764403140", NOW) == NOW + A_LITTLE
    assert reset_time("resets 2026-11-30T07:59:00Z", NOW) == NOW + A_LITTLE
    assert reset_time("resets Mon 7:59am (UTC)", NOW) == NOW + A_LITTLE


def test_in_a_repeated_hour_the_first_one_that_is_ahead_counts() -> None:
    message = "resets 2:45am (Europe/Oslo)"
    first = datetime(2026, 10, 25, 0, 45, tzinfo=UTC).timestamp()
    assert reset_time(message, first - 900) == first
    assert reset_time(message, first + 3600 - 900) in (
        first + 3600 - 900 + A_LITTLE,
        first + 3600,
    )


@pytest.mark.parametrize(
    "message",
    [
        "",
        "it broke",
        "try again at some point",
        "resets soon",
        "resets 25:77",
        "resets Feb 31, 11am",
        "resets 99pm",
        "in 3 files",
        "try again at 7",
        "resets Mon",
        "resets 2026-13-45T05:00:00Z",
    ],
)
def test_other_words_state_no_moment(message: str) -> None:
    assert reset_time(message, NOW, "UTC") is None


@given(st.text(max_size=300) | st.from_regex(r"resets? [A-Za-z0-9 :,()/.+-]{0,40}"))
def test_no_text_makes_it_fail(message: str) -> None:
    moment = reset_time(message, NOW, "../../etc/passwd")
    assert moment is None or moment > NOW


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("You've hit your limit · resets 3pm (UTC)", "usage"),
        ("You\u2019ve hit your usage limit. Upgrade to Pro", "usage"),
        ("402 You have no quota", "budget"),
        ("Quota exceeded. Check your plan and billing details.", "budget"),
        ("Credit balance is too low", "budget"),
        ("API Error: 529 Overloaded", "overload"),
        ("API Error: Request rejected (429) · slow down", "rate"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate"),
        ("unexpected status 401 Unauthorized: bad key", "auth"),
        ("Not logged in · Please run /login", "auth"),
        ("Error: No authentication information found.", "auth"),
        ("the file has 4290 lines", None),
        ("it broke", None),
    ],
)
def test_the_words_tell_what_refused(message: str, kind: str | None) -> None:
    assert kind_of_text(message) == kind


def test_a_status_goes_before_the_words_except_for_a_spent_account() -> None:
    assert kind_of_status(529, "slow down") == "overload"
    assert kind_of_status(429, "slow down") == "rate"
    assert kind_of_status(429, "You've hit your limit") == "usage"
    assert kind_of_status(400, "the request makes no sense") is None


def test_a_day_that_there_is_not_and_a_zone_that_nobody_knows() -> None:
    now = at("2028-11-30T12:00")
    assert reset_time("resets Feb 29 at 3:00", now, "UTC") is None
    assert reset_time("resets 0001-01-01T00:00", now) is None
    # As if it had named none.
    assert reset_time("resets at 3:00 (Nowhere/Atall)", now, "UTC") is not None
