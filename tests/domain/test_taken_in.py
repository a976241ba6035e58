"""What was saved by an earlier runtime, and what is ahead, by the clock of this one."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from forge_actors.domain.clock_steps import take_in
from forge_actors.domain.looking import LONGEST_RETRY, Look, Mark
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import (
    Definition,
    Policies,
    Progress,
    Schedule,
    jitter_of,
)
from forge_actors.domain.scheduling import preview
from forge_actors.domain.triggers import Every, Once
from tests.domain.making import make_job

NOW = 1000.0


@pytest.mark.parametrize(
    ("ahead", "saved", "known"),
    [(100.0, 900.0, 800.0), (-50.0, 900.0, 950.0), (-200.0, 900.0, NOW)],
)
def test_no_moment_of_a_look_is_later_than_now(
    ahead: float, saved: float, known: float
) -> None:
    look = Look(
        "app", sampled_at=saved, looked_at=saved, dirty=Mark(3, "it moved", saved, "x")
    )
    found = look.taken_in(ahead, NOW)
    assert found == Look(
        "app", sampled_at=known, looked_at=known, dirty=Mark(3, "it moved", known, "x")
    )


def test_a_look_that_was_never_taken_has_no_moments() -> None:
    assert Look("app").taken_in(100.0, NOW) == Look("app")


@pytest.mark.parametrize(
    ("saved", "known"), [(1010.0, 910.0), (1129.0, 1029.0), (1200.0, 1030.0)]
)
def test_a_look_is_taken_again_in_time(saved: float, known: float) -> None:
    assert known <= NOW + LONGEST_RETRY
    found = Look("app", retry_at=saved).taken_in(100.0, NOW)
    assert found.retry_at == known


def taken(ahead: float, **fields: Any) -> tuple[float | None, ...]:
    job = make_job("a", queued_at=fields.pop("queued_at"))
    for name, value in fields.items():
        setattr(job, name, value)
    take_in(job, ahead, NOW)
    return job.queued_at, job.retry_at, job.held_at, job.started_at


def test_moments_of_a_job_are_those_of_this_runtime() -> None:
    assert taken(100.0, queued_at=900.0) == (800.0, None, None, None)
    assert taken(100.0, queued_at=900.0, held_at=950.0, started_at=960.0) == (
        *(800.0, None, 850.0),
        860.0,
    )
    # It has not begun to wait later than now.
    assert taken(-200.0, queued_at=900.0) == (NOW, None, None, None)


def test_a_retry_waits_no_longer_from_now_than_it_was_to_wait() -> None:
    assert taken(100.0, queued_at=900.0, retry_at=950.0)[:2] == (800.0, 850.0)
    assert taken(-500.0, queued_at=900.0, retry_at=950.0)[:2] == (NOW, NOW + 50.0)
    assert taken(-500.0, queued_at=900.0, retry_at=800.0)[:2] == (NOW, NOW)


def schedule(trigger: Any = None, **fields: Any) -> Schedule:
    policies = Policies(**fields.pop("policies", {}))
    progress = Progress(NOW, **fields.pop("progress", {}))
    request = JobRequest("app", ["true"])
    definition = Definition("s", "app", trigger or Every(60.0), request, policies)
    return Schedule("id", 1, definition, progress, **fields)


def ahead(one: Schedule, count: int, wall: float = NOW) -> list[tuple[float, bool]]:
    return [(due - NOW, runs) for due, runs, _ in islice(preview(one, wall), count)]


def test_windows_that_have_passed_are_not_ahead() -> None:
    assert ahead(schedule(), 2) == [(60.0, True), (120.0, True)]
    assert ahead(schedule(), 2, NOW + 120.0) == [(120.0, True), (180.0, True)]
    assert ahead(schedule(), 1, NOW + 120.5) == [(180.0, True)]
    assert ahead(schedule(), 1, NOW + 1e9)[0][0] == pytest.approx(1e9, abs=60.0)


def test_a_late_window_is_ahead_as_late_as_it_will_be() -> None:
    late = schedule(policies={"jitter": 50.0})
    found = [due for due, _ in ahead(late, 3)]
    keys = [due - 60.0 * (number + 1) for number, due in enumerate(found)]
    assert all(0.0 <= each < 50.0 for each in keys)
    assert len(set(keys)) == 3
    assert jitter_of("id", "x", 50.0) == jitter_of("id", "x", 50.0)
    # One that is due is ahead until its own moment.
    first = found[0]
    assert ahead(late, 1, NOW + first - 0.1)[0][0] == pytest.approx(first)
    assert ahead(late, 1, NOW + first + 0.1)[0][0] > first + 0.1


def test_so_many_are_ahead_as_are_left() -> None:
    twice = schedule(policies={"max_runs": 3}, progress={"runs": 1})
    assert ahead(twice, 9) == [(60.0, True), (120.0, True), (180.0, False)]
    [*_, (_, _, reason)] = preview(twice, NOW)
    assert reason == "it ran 3 times"
    until = schedule(policies={"until": NOW + 120.0})
    assert ahead(until, 9) == [(60.0, True), (120.0, False)]
    assert ahead(schedule(Once(NOW + 5.0)), 9) == [(5.0, True)]


def test_failures_and_jobs_of_now_are_taken_to_be_over() -> None:
    failing = schedule(
        policies={"max_failures": 2, "overlap": "skip", "backoff": 1e6},
        progress={"failures": 2, "jobs": ("j1",)},
    )
    assert ahead(failing, 2) == [(60.0, True), (120.0, True)]


def test_the_last_end_holds_back_the_next_start() -> None:
    resting = schedule(policies={"cooldown": 100.0}, progress={"last_end": NOW + 1.0})
    assert ahead(resting, 4) == [
        *((60.0, False), (120.0, True)),
        *((180.0, False), (240.0, True)),
    ]


def test_what_is_not_active_would_not_run() -> None:
    paused = schedule(state="paused", why="a person did")
    assert list(islice(preview(paused, NOW), 2)) == [
        (NOW + 60.0, False, "it is paused: a person did"),
        (NOW + 120.0, False, "it is paused: a person did"),
    ]
    assert list(preview(schedule(state="quarantined"), NOW)) == []
