"""Maintenance: when a run is due, in which order it visits, what is saved of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.cleaning import CLASSES, ClassReport, CleanClass, CleanRequest
from forge_actors.domain.maintenance import (
    ClassVisit,
    CleanResult,
    CleanRun,
    begun,
    cut_short,
    ended,
    next_run,
    oldest_first,
    problem,
    told,
)

ALL = CleanRequest("/home", 0.0)
PERIOD = 60.0


@given(st.dictionaries(st.sampled_from(CLASSES), st.floats(0, 1e9)))
def test_all_classes_are_visited_the_longest_waiting_first(
    visited_at: dict[CleanClass, float],
) -> None:
    order = oldest_first(visited_at)
    assert sorted(order) == sorted(CLASSES)
    moments = [visited_at.get(name, 0.0) for name in order]
    assert moments == sorted(moments)


def test_only_the_classes_that_are_wanted_are_visited() -> None:
    visited_at: dict[CleanClass, float] = {"jobs": 5.0, "logs": 4.0}
    assert oldest_first(visited_at, ("jobs", "logs", "jobs")) == ["logs", "jobs"]


@pytest.mark.parametrize(
    ("run", "ended_at", "now", "due"),
    [
        (None, None, 500.0, math.inf),
        (None, 500.0, 500.0, 560.0),
        (CleanRun(500.0, 510.0), None, 520.0, math.inf),
        (CleanRun(500.0, 510.0), 505.0, 520.0, 565.0),
        (CleanRun(500.0, 510.0, more=True), None, 520.0, 560.0),
        (CleanRun(500.0, 510.0, due_at=9000.0), None, 520.0, 9000.0),
        (CleanRun(500.0, 510.0, due_at=505.0), None, 520.0, 560.0),
        # It was cut off by a kill.
        (CleanRun(500.0, None, in_a_row=1, more=True), None, 520.0, 620.0),
        (CleanRun(500.0, 510.0, in_a_row=3), None, 520.0, 980.0),
        (CleanRun(500.0, 510.0, in_a_row=99), None, 520.0, 500.0 + 64 * 60),
        # The clock was set back since.
        (CleanRun(9e9, 9e9, more=True), None, 520.0, 580.0),
        (None, 9e9, 520.0, 580.0),
    ],
)
def test_the_next_run_is_due(
    run: CleanRun | None, ended_at: float | None, now: float, due: float
) -> None:
    assert next_run(run, ended_at, PERIOD, now) == due


def visits(**reports: ClassReport | None) -> dict[CleanClass, ClassVisit]:
    made: dict[CleanClass, ClassVisit] = {}
    for name in CLASSES:
        report = reports.get(name, ClassReport(name))
        cursor = None if report is None else report.cursor
        made[name] = ClassVisit(name, 1000.0, cursor, report)
    return made


def test_a_run_that_did_all_leaves_nothing_to_do() -> None:
    run = ended(begun(None, ALL, 1000.0), ALL, CleanResult(), visits(), 1010.0)
    assert (run.more, run.in_a_row, run.due_at, run.runs) == (False, 0, None, 1)
    assert run.looked_at == 1000.0
    assert next_run(run, None, PERIOD, 1010.0) == math.inf


@pytest.mark.parametrize(
    "left",
    [
        {"logs": ClassReport("logs", cursor="m")},
        {"logs": None},
    ],
)
def test_a_class_with_more_to_do_or_a_visit_without_end_is_more(
    left: dict[str, ClassReport | None],
) -> None:
    run = ended(begun(None, ALL, 1000.0), ALL, CleanResult(), visits(**left), 1010.0)
    assert run.more


def test_a_class_that_was_not_visited_is_more() -> None:
    made = visits()
    made["logs"] = ClassVisit("logs", 900.0, None, ClassReport("logs"))
    assert ended(begun(None, ALL, 1000.0), ALL, CleanResult(), made, 1010.0).more
    del made["logs"]
    assert ended(begun(None, ALL, 1000.0), ALL, CleanResult(), made, 1010.0).more


def test_the_first_thing_that_becomes_old_counts_whenever_it_was_seen() -> None:
    made = visits(
        jobs=ClassReport("jobs", due_at=5000.0), logs=ClassReport("logs", due_at=4000.0)
    )
    some = CleanRequest("/home", 0.0, classes=("events",))
    run = ended(begun(None, some, 1000.0), some, CleanResult(), made, 1010.0)
    assert run.due_at == 4000.0


def test_a_run_of_some_classes_has_not_looked_at_what_ended() -> None:
    some = CleanRequest("/home", 0.0, classes=("events",))
    before = CleanRun(500.0, 510.0, looked_at=500.0, more=True)
    run = ended(begun(before, some, 1000.0), some, CleanResult(), visits(), 1010.0)
    assert run.looked_at == 500.0
    assert run.more


def test_failures_are_counted_until_a_run_goes_well() -> None:
    run: CleanRun | None = None
    for _ in range(3):
        failed = CleanResult(error="it crashed")
        run = ended(begun(run, ALL, 1000.0), ALL, failed, visits(), 1010.0)
    assert run is not None
    assert problem(run) == "the clean-up failed 3 times in a row: it crashed"
    assert problem(begun(run, ALL, 1020.0)) == problem(run)
    run = ended(begun(run, ALL, 1020.0), ALL, CleanResult(), visits(), 1030.0)
    assert (run.failures, run.in_a_row, problem(run)) == (3, 0, None)


def test_a_run_that_ends_with_its_runtime_is_none() -> None:
    run = cut_short(begun(None, ALL, 1000.0), 1005.0)
    assert (run.in_a_row, run.more, run.ended_at) == (0, True, 1005.0)
    assert cut_short(run, 2000.0) == run


def test_what_did_nothing_is_not_told() -> None:
    assert told(CleanResult(reports=[ClassReport("logs", scanned=9)]), 5.0) is None
    removed = told(CleanResult(reports=[ClassReport("logs", removed=2, bytes=7)]), 5.0)
    assert removed is not None
    assert removed.kind == "clean_ended"
    assert removed.data == {
        "removed": 2,
        "bytes": 7,
        "failed": 0,
        "classes": {"logs": {"removed": 2, "bytes": 7}},
    }
    crashed = told(CleanResult(error="no"), 5.0)
    assert crashed is not None
    assert (crashed.kind, crashed.data["reason"]) == ("clean_failed", "no")
