"""Rows, comparisons, bars and the table say what was measured."""

from __future__ import annotations

import pytest

from benchmarks.bars import BARS, COMPARISONS, Bar, at_most
from benchmarks.report import Measured, Row, rows_of, table
from benchmarks.rows import Sample


def rounds_of(name: str, *values: float | None) -> list[Measured]:
    return [
        Measured(Sample(name, value, "jobs/s", "a note"), number)
        for number, value in enumerate(values)
    ]


def named(rows: list[Row], name: str) -> Row:
    (row,) = (row for row in rows if row["name"] == name)
    return row


def test_a_comparison_is_the_median_of_ratios_within_a_round() -> None:
    found = rounds_of("w1", 10, 80, 90) + rounds_of("skeleton", 100, 100, 100)
    row = named(rows_of(found), "w1_of_skeleton")
    assert (row["value"], row["unit"], row["ratio_to_cref"]) == (0.8, "ratio", None)
    assert (row["bar"], row["met"]) == (">= 0.85", False)


def test_a_round_without_one_of_the_numbers_is_not_compared() -> None:
    found = rounds_of("w1", None, 90) + rounds_of("skeleton", 100, 100)
    assert named(rows_of(found), "w1_of_skeleton")["value"] == 0.9


def test_a_comparison_with_what_was_skipped_has_no_value_and_no_verdict() -> None:
    found = rounds_of("w1-huey", None) + rounds_of("w1", 100)
    row = named(rows_of(found), "w1_of_huey")
    assert (row["value"], row["met"]) == (None, None)
    assert row["note"] == "w1 / w1-huey: one of them has no value"


def test_nothing_is_compared_with_a_row_that_was_not_asked_for() -> None:
    assert [row["name"] for row in rows_of(rounds_of("w1", 1))] == ["w1"]


def test_a_comparison_follows_the_later_of_its_rows() -> None:
    found = rounds_of("tell", 9) + rounds_of("tell-trio", 10) + rounds_of("ask", 1)
    names = [row["name"] for row in rows_of(found)]
    assert names == ["tell", "tell-trio", "tell_of_trio", "ask"]


@pytest.mark.parametrize(
    ("bar", "value", "of_c", "met"),
    [
        (Bar(2.0), 2.0, None, True),
        (Bar(2.0), 1.9, None, False),
        (at_most(2.0), 2.0, None, True),
        (at_most(2.0), 2.1, None, False),
        (Bar(0.5, of_c=True), 900.0, 0.49, False),
        (Bar(0.5, of_c=True), 900.0, 0.5, True),
        (Bar(0.5, of_c=True), 900.0, None, None),
        (at_most(2.0), None, None, None),
    ],
)
def test_a_bar_judges_its_number(
    bar: Bar, value: float | None, of_c: float | None, met: bool | None
) -> None:
    assert bar.met(value, of_c) is met


def test_the_bar_of_w1_is_a_ratio_to_the_c_reference() -> None:
    found = [Measured(Sample("w1", 700.0, "jobs/s", rate=True), 0, of_c=0.56)]
    (row,) = rows_of(found)
    assert (row["bar"], row["met"]) == (">= 0.55 of C, goal 0.65", True)


def test_every_bar_belongs_to_a_row_or_a_comparison() -> None:
    rows = {
        "w1",
        "w2-median",
        "w2-p99",
        "accept-batch",
        "accept-callers",
        "list",
        "submit-http",
        "memory-job",
        "memory-repository",
        "agent-output",
        "agent-output-memory",
        "limit-return",
        "schedule-idle",
        "schedule-due",
        *("ready", "ready-mcp"),
        "restart",
        *("w4-service", "w4-all", "w4-all-decided"),
        "idle-cpu",
        "idle-rss",
        "idle-rss-agents",
        "w1-clean",
        "w1-readers",
        "readers-memory",
        "status-spin",
        "looks",
        "looks-cpu",
        *("epic-requests", "epic-evaluate"),
    }
    assert set(BARS) <= rows | {comparison.name for comparison in COMPARISONS}


def test_the_table_says_beside_a_value_whether_its_bar_is_met() -> None:
    found = rounds_of("restart", 3.0) + rounds_of("idle-rss", 40.0)
    found += rounds_of("sync", 3800.0) + rounds_of("w2-median", None)
    _, slow, small, without, unknown = table(rows_of(found)).splitlines()
    assert "<= 2" in slow
    assert "NOT MET" in slow
    assert "NOT MET" not in small
    assert " met " in small
    assert "met" not in without
    assert "<= 3" in unknown
    assert "met" not in unknown
