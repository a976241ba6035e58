"""A timeline: attempts, waits and stretches as events tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.events import Event, number_before
from forge_actors.domain.timeline import (
    LEAD_EVENTS,
    MAX_EVENTS,
    TRAIL_EVENTS,
    Gauge,
    PastFacts,
    Run,
    Timeline,
    events_to_read,
    shared_out,
)
from forge_actors.domain.timeline_record import Record
from forge_actors.domain.timeline_telling import Known, timeline

if TYPE_CHECKING:
    from collections.abc import Iterable

SINCE, UNTIL = 1000.0, 1100.0
WORKERS = ("workers",)


def event(word: str, at: float, job: str | None = "j1", **data: Any) -> Event:
    repo = None if job is None else "r1"
    return Event(word, SINCE + at, repo, job, data)


def accepted(at: float, job: str = "j1", kind: str = "check", **data: Any) -> Event:
    return event("job_queued", at, job, reason="accepted", kind=kind, **data)


def dispatched(at: float, job: str = "j1", attempt: int = 1) -> Event:
    return event("job_dispatched", at, job, attempt=attempt, tokens=list(WORKERS))


def ended(at: float, state: str = "succeeded", job: str = "j1", **data: Any) -> Event:
    return event(f"job_{state}", at, job, attempt=1, **data)


def facts(job: str = "j1", **changed: Any) -> PastFacts:
    known = PastFacts(
        id=job,
        repo="r1",
        name="lint",
        kind="check",
        provider=None,
        state="running",
        attempt=1,
        created_at=SINCE - 500,
        queued_at=SINCE - 500,
        dispatched_at=SINCE - 400,
        started_at=SINCE - 399,
        finished_at=None,
    )
    return structs.replace(known, **changed)


def told(
    events: Iterable[Event],
    *jobs: PastFacts,
    limit: int = 100,
    repos: tuple[str, ...] | None = None,
    read_from: float = SINCE,
) -> Timeline:
    record = Record(SINCE, UNTIL, limit=limit, repos=repos)
    for each in events:
        record.apply(each)
    for job in jobs:
        if job.finished_at is None:
            record.stood(job)
    record.close()
    known = {job.id: job for job in jobs}
    return timeline(record, Known(known, {"r1": "app"}, str, True, read_from))


def test_an_attempt_lasts_from_its_tokens_to_its_end() -> None:
    shown = told(
        [accepted(1, name="lint"), dispatched(5), event("job_running", 6), ended(30)]
    )
    [run] = shown.runs
    assert (run.began, run.started, run.ended) == (5, 6, 30)
    assert (run.job, run.repo, run.name, run.kind) == ("j1", "app", "lint", "check")
    assert (run.outcome, run.error, run.tokens) == ("succeeded", None, WORKERS)
    assert run.waited == 4
    [wait] = shown.waits
    assert (wait.reason, wait.began, wait.ended) == ("queued", 1, 5)
    assert (shown.since, shown.until) == (str(SINCE), str(UNTIL))


def test_a_job_that_is_tried_again_has_a_run_for_each_attempt() -> None:
    error = {"code": "WORKER_LOST", "message": "secret"}
    shown = told(
        [
            accepted(0),
            dispatched(1),
            event("job_waiting_for_retry", 10, attempt=1, error=error, delay=5.0),
            event("job_queued", 15, reason="its time has come"),
            dispatched(20, attempt=2),
            ended(40, "failed", error={"code": "EXIT_NONZERO", "message": "x"}),
        ],
    )
    assert [(run.attempt, run.outcome, run.error) for run in shown.runs] == [
        (1, "waiting_for_retry", "WORKER_LOST"),
        (2, "failed", "EXIT_NONZERO"),
    ]
    assert [run.waited for run in shown.runs] == [1, 10]
    assert [(wait.reason, wait.began) for wait in shown.waits] == [
        ("queued", 0),
        ("retry", 10),
        ("queued", 15),
    ]
    assert "secret" not in repr(shown)


def test_what_runs_and_what_waits_at_the_end_is_open() -> None:
    shown = told([accepted(1), accepted(2, "j2"), dispatched(5)])
    assert [(run.job, run.ended, run.outcome) for run in shown.runs] == [
        ("j1", None, None)
    ]
    assert [(wait.job, wait.ended) for wait in shown.waits] == [("j1", 5), ("j2", None)]


@pytest.mark.parametrize("reason", ["dependency", "workspace", "limit", "approval"])
def test_a_wait_is_told_by_its_reason(reason: str) -> None:
    [wait] = told([event(f"job_waiting_for_{reason}", 1, reason="accepted")]).waits
    assert wait.reason == reason


def test_a_job_that_is_held_waits_for_that() -> None:
    shown = told(
        [accepted(0), event("job_held", 10), event("job_unheld", 20), dispatched(30)]
    )
    assert [(wait.reason, wait.began, wait.ended) for wait in shown.waits] == [
        ("queued", 0, 10),
        ("held", 10, 20),
        ("queued", 20, 30),
    ]


def test_an_attempt_that_is_suspended_says_when() -> None:
    shown = told(
        [
            accepted(0),
            dispatched(1),
            event("job_paused", 10, reason="asked"),
            event("job_resumed", 20, reason="asked", also="all"),
            event("job_resumed", 30, reason="all"),
            event("job_paused", 40, reason="asked"),
            ended(50, "cancelled"),
        ]
    )
    assert shown.runs[0].suspended == ((10, 30), (40, 50))


def test_what_began_before_the_events_is_told_by_the_store() -> None:
    known = facts(state="succeeded", finished_at=SINCE + 30, exit_code=0)
    [run] = told([ended(31)], known).runs
    assert (run.began, run.started, run.ended) == (-400, -399, 30)
    assert (run.exit_code, run.name, run.waited) == (0, "lint", 100)
    assert run.tokens == ("workers", "heavy_checks")


def test_without_the_store_it_began_before_the_window() -> None:
    [run] = told([ended(31)]).runs
    assert (run.began, run.ended, run.name) == (None, 31, None)


def test_what_no_event_told_of_stood_all_the_while() -> None:
    waits = facts("j2", state="waiting_for_dependency", attempt=0, dispatched_at=None)
    late = facts("j3", state="queued", queued_at=UNTIL + 5)
    held = facts("j4", state="queued", held_at=SINCE - 1)
    shown = told([], facts(), waits, late, held)
    [run] = shown.runs
    assert (run.began, run.ended, run.exit_code) == (-400, None, None)
    assert [(wait.job, wait.reason) for wait in shown.waits] == [
        ("j2", "dependency"),
        ("j4", "held"),
    ]


def test_what_the_events_told_of_is_not_told_again_by_the_store() -> None:
    shown = told([accepted(0), dispatched(5)], facts())
    assert len(shown.runs) == 1
    assert told([ended(5)], structs.replace(facts(), finished_at=None)).runs[0].ended


def test_what_comes_late_of_a_job_that_ended_is_none_of_it() -> None:
    late = event("job_running", 11, pid=7)
    shown = told([accepted(0), dispatched(1), ended(10), late])
    assert [(run.ended, run.outcome) for run in shown.runs] == [(10, "succeeded")]


def test_what_is_outside_the_window_is_not_shown() -> None:
    before = [accepted(-50, "j1"), dispatched(-40), ended(-10)]
    after = [accepted(110, "j2"), dispatched(120, "j2"), ended(130, job="j2")]
    across = [accepted(90, "j3"), dispatched(95, "j3"), ended(140, job="j3")]
    shown = told([*before, *across, *after])
    assert [(run.job, run.ended) for run in shown.runs] == [("j3", 140)]


def test_of_too_many_the_newest_are_told_and_the_picture_says_from_when_on() -> None:
    events = [
        each
        for number in range(10)
        for each in (
            accepted(number, f"j{number}"),
            dispatched(number, f"j{number}"),
            ended(number + 0.5, job=f"j{number}"),
        )
    ]
    shown = told(events, limit=3)
    assert [run.job for run in shown.runs] == ["j7", "j8", "j9"]
    assert (shown.runs_left_out, shown.complete_from) == (7, 6.5)
    waits = [
        each
        for number in range(5)
        for each in (
            accepted(number, f"j{number}"),
            dispatched(number + 0.5, f"j{number}"),
        )
    ]
    assert (len(told(waits, limit=3).waits), told(waits, limit=3).waits_left_out) == (
        *(3, 2),
    )
    assert told(events).complete_from == 0
    assert told(events, read_from=SINCE + 4).complete_from == 4


def test_only_the_repositories_that_are_asked_for_are_told() -> None:
    events = [accepted(1), dispatched(2), ended(3)]
    pause = event("paused", 1, None, scope="repo:r1")
    assert told([pause, *events], repos=("r2",)).runs == []
    assert told([pause, *events], repos=("r2",)).bands == []
    shown = told([pause, *events], repos=("r1",))
    assert shown.repositories == ["app"]
    assert [(band.kind, band.repo) for band in shown.bands] == [("pause", "app")]


def test_a_restored_store_ends_what_was_before_it() -> None:
    again = event("job_queued", 20, reason="restored", kind="check")
    shown = told([accepted(0), dispatched(1), event("store_restored", 19, None), again])
    assert [(run.outcome, run.ended) for run in shown.runs] == [("unknown", 19)]
    assert [wait.began for wait in shown.waits] == [0, 20]


def test_stretches_of_the_service_are_told() -> None:
    shown = told(
        [
            event("runtime_stopped", 1, None),
            event("runtime_started", 3, None, pid=1),
            event("pressure_began", 5, None, reason="load"),
            accepted(7),
            event("runtime_started", 9, None, pid=2),
            event("provider_closed", 10, None, provider="codex", reason="usage"),
            event("provider_opened", 12, None, provider="codex", reason="reset"),
            event("paused", 13, None, scope="all"),
        ]
    )
    assert [(band.kind, band.began, band.ended) for band in shown.bands] == [
        ("down", 1, 3),
        ("pressure", 5, 9),
        ("down", 7, 9),
        ("closed", 10, 12),
        ("pause", 13, None),
    ]
    assert shown.bands[3].reason == "codex is closed: usage"


def test_the_last_limits_are_told() -> None:
    shown = told(
        [
            event("limits", -5, None, tokens={"workers": 2}),
            event("limits", 5, None, tokens={"workers": 3}),
            event("limits", 105, None, tokens={"workers": 9}),
        ]
    )
    assert shown.limits == {"workers": 3}


def test_who_runs_at_the_same_time_has_rows_of_its_own() -> None:
    def run(job: str, began: float | None, end: float | None, repo: str = "a") -> Run:
        return Run(job, 1, repo, WORKERS, began=began, ended=end)

    shared = shared_out(
        [
            run("j1", None, 10),
            run("j2", 5, None),
            run("j3", 10, 20),
            run("j4", 15, 20, "b"),
        ]
    )
    assert [(each.job, each.lane) for each in shared] == [
        ("j1", 0),
        ("j2", 1),
        ("j3", 0),
        ("j4", 0),
    ]
    assert [each.slots["workers"] for each in shared] == [0, 1, 0, 2]


spans = st.lists(
    st.tuples(st.floats(-50, 150), st.floats(0, 80)).map(
        lambda pair: (pair[0], pair[0] + pair[1])
    )
)


@given(spans)
def test_no_two_attempts_overlap_in_one_row(of: list[tuple[float, float]]) -> None:
    runs = [Run("j", 1, "a", (), began=a, ended=b) for a, b in of]
    rows: dict[int, float] = {}
    for run in shared_out(runs):
        assert run.began is not None
        assert run.ended is not None
        assert rows.get(run.lane, float("-inf")) <= run.began
        rows[run.lane] = run.ended


@given(spans)
def test_a_gauge_counts_every_second_once(of: list[tuple[float, float]]) -> None:
    gauge = Gauge(100.0, parts=7)
    for began, end in of:
        gauge.add(began, end)
    inside = sum(max(0.0, min(end, 100) - max(began, 0)) for began, end in of)
    averages = gauge.averages()
    assert sum(averages) * 100 / 7 == pytest.approx(inside, abs=0.01 * (len(of) + 1))
    assert all(0 <= each <= len(of) for each in averages)


def test_a_gauge_says_how_many_there_were_in_each_part() -> None:
    gauge = Gauge(100.0, parts=4)
    gauge.add(0, 100)
    gauge.add(25, 75)
    gauge.add(80, 90)
    assert gauge.averages() == [1, 2, 2, 1.4]


def test_what_waited_is_counted_from_where_the_events_begin() -> None:
    shown = told([event("job_held", 50, "j9"), dispatched(60)])
    [depth] = [each for each in shown.depths if each.reason == "queued"]
    assert sum(depth.jobs) * 100 / len(depth.jobs) == pytest.approx(10)


def test_reading_is_bounded_on_both_sides() -> None:
    assert events_to_read(10, 20, 30) == (0, 30)
    much = 10 * MAX_EVENTS
    assert events_to_read(much, much + 10, 20 * much) == (
        much - LEAD_EVENTS,
        much + 10 + TRAIL_EVENTS,
    )
    assert events_to_read(0, much, much) == (much - MAX_EVENTS, much)


@given(st.lists(st.integers(0, 50)).map(sorted), st.integers(-1, 51))
def test_a_moment_is_found_by_halving(times: list[int], moment: int) -> None:
    found = number_before(moment, len(times), lambda n: (n + 1, times[n]))
    assert found == sum(1 for at in times if at < moment)
