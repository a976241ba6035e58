"""What an agent has told, event by event, and the report that it adds up to."""

from __future__ import annotations

import pytest

from forge_actors.domain.agents import (
    MAX_FINAL_TEXT,
    MAX_TEXT,
    AgentReport,
    Final,
    LimitHit,
    Progress,
    Question,
    SessionGone,
    SessionKnown,
    Told,
    Usage,
    UsageAdded,
    shortened,
)


def report(told: Told, stopped_at: int | None = None) -> AgentReport:
    return told.report(noise="", unread=0, stopped_at=stopped_at)


def test_without_a_word_nothing_is_known() -> None:
    told = Told("claude")
    assert report(told) == AgentReport("claude")
    assert (told.session, told.usage, told.succeeded, told.said) == (
        *(None, None, False),
        "",
    )
    assert told.final_at is None
    assert report(Told("codex", resumed=True)) == AgentReport("codex", resumed=True)


def test_its_session_and_version_are_kept() -> None:
    told = Told("claude")
    told.take(SessionKnown("s" * (MAX_TEXT + 1), "1.2"), 1)
    assert told.session == "s" * MAX_TEXT
    assert report(told).version == "1.2"
    assert not report(told).session_gone
    told.take(SessionGone(), 2)
    assert report(told).session_gone


def test_what_it_said_last_is_kept_until_it_says_more() -> None:
    told = Told("claude")
    told.take(Progress("reading", False), 1)
    assert (told.said, report(told).acted) == ("reading", False)
    told.take(Progress("", True), 2)
    assert (told.said, report(told).acted) == ("reading", True)
    told.take(Progress("writing", False), 3)
    assert (told.said, report(told).acted) == ("writing", True)


def test_a_question_stands_until_it_goes_on_without_an_answer() -> None:
    told = Told("claude")
    told.take(Question("?" * (MAX_TEXT + 1)), 1)
    assert report(told).question == "?" * MAX_TEXT
    told.take(Progress("thinking", False), 2)
    assert report(told).question is not None
    told.take(Progress("writing", True), 3)
    assert report(told).question is None


def test_what_it_used_is_added_up() -> None:
    told = Told("claude")
    told.take(UsageAdded(Usage(1, 2, 3)), 1)
    assert told.usage == Usage(1, 2, 3)
    told.take(UsageAdded(Usage(10, None, 30)), 2)
    assert told.usage == report(told).usage == Usage(1, 2, 3) + Usage(10, None, 30)
    assert told.usage is not None
    assert told.usage.input_tokens == 11


def test_a_limit_counts_unless_it_ended_well() -> None:
    told, limit = Told("claude"), LimitHit("usage", "enough")
    told.take(limit, 1)
    assert report(told).limit == limit
    told.take(Final("no", False), 2)
    assert (report(told).limit, told.succeeded) == (limit, False)
    told.take(Final("done", True), 3)
    assert (report(told).limit, told.succeeded) == (None, True)
    assert (report(told).text, report(told).ok) == ("done", True)


@pytest.mark.parametrize(
    ("stopped_at", "in_time"), [(None, True), (9, False), (10, True), (11, True)]
)
def test_an_end_after_the_stop_came_too_late(
    stopped_at: int | None, in_time: bool
) -> None:
    told = Told("claude")
    assert report(told, 5).in_time
    told.take(Final("done", True), 10)
    assert told.final_at == 10
    assert report(told, stopped_at).in_time is in_time


def test_noise_is_kept_from_its_end_and_what_was_not_read_is_counted() -> None:
    noise = "a" + "b" * MAX_TEXT
    found = Told("claude").report(noise=noise, unread=3, stopped_at=None)
    assert (found.noise, found.unread) == ("b" * MAX_TEXT, 3)


def test_a_long_final_text_is_cut() -> None:
    assert shortened("x" * MAX_FINAL_TEXT) == "x" * MAX_FINAL_TEXT
    assert shortened("x" * (MAX_FINAL_TEXT + 1)) == "x" * MAX_FINAL_TEXT + "…"
    told = Told("claude")
    told.take(Final("x" * (MAX_FINAL_TEXT + 1), True), 1)
    assert report(told).text == "x" * MAX_FINAL_TEXT + "…"
