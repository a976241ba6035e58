"""What becomes of the windows of a schedule: each is decided once, with a reason."""

from __future__ import annotations

import math
import random
from itertools import islice
from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.arriving import SPREAD
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedule_records import encoded, loaded
from forge_actors.domain.schedules import (
    DAY,
    Definition,
    Occurrence,
    Pending,
    Policies,
    Progress,
    Schedule,
    check_name,
    occurrence_id,
)
from forge_actors.domain.scheduling import (
    Situation,
    advance,
    ended,
    next_moment,
    preview,
    resumed,
    rule,
    ruled,
    set_back,
    submitted,
)
from forge_actors.domain.triggers import (
    Cron,
    Every,
    Manual,
    Once,
    Trigger,
    cron,
    windows,
)

START = 1_767_323_045.0


def made(trigger: Trigger | None = None, **policies: Any) -> Schedule:
    request = JobRequest(repo="repo", argv=["true"])
    rules = Policies(**policies)
    definition = Definition("s", "repo", trigger or Every(60.0), request, rules)
    return Schedule("id", 1, definition, Progress(START), made=START)


def ruling(schedule: Schedule, wall: float, *, dirty: bool | None = False) -> Any:
    [entry] = schedule.progress.pending
    return rule(schedule, entry, Situation(wall, dirty))


def at(schedule: Schedule, wall: float) -> tuple[Schedule, list[Occurrence]]:
    """The schedule at a moment; what was decided about windows by that alone."""
    return advance(schedule, wall)


def run_once(schedule: Schedule, wall: float, job: str = "job") -> Schedule:
    [entry] = schedule.progress.pending
    assert rule(schedule, entry, Situation(wall)).verdict == "run"
    schedule, told = submitted(schedule, entry, "it is time", job, wall)
    assert (told.decision, told.job) == ("run", job)
    return schedule


def test_nothing_is_due_before_its_time() -> None:
    schedule = made()
    assert next_moment(schedule) == START + 60
    same, told = at(schedule, START + 59.9)
    assert (same, told) == (schedule, [])


def test_a_window_on_time_runs() -> None:
    schedule, told = at(made(), START + 60)
    assert told == []
    assert ruling(schedule, START + 60).verdict == "run"
    schedule = run_once(schedule, START + 60)
    assert schedule.progress.jobs == ("job",)
    assert next_moment(schedule) == START + 120


@pytest.mark.parametrize("late", [2.0, 59.0])
def test_a_short_delay_is_on_time_whatever_the_policy(late: float) -> None:
    schedule, told = at(made(misfire="skip"), START + 60 + late)
    assert told == []
    assert ruling(schedule, START + 60 + late).reason == "it is time"


def test_what_was_missed_is_told_and_not_lost() -> None:
    outage = START + 3600 * 12 + 100  # it is late by more than the grace
    for misfire, kept in (("skip", 0), ("once", 1)):
        schedule, told = at(made(Every(900.0), misfire=misfire), outage)
        assert len(schedule.progress.pending) == kept
        assert sum(each.count for each in told) + kept == 48
        assert {each.decision for each in told} == {"missed"}
        assert all(each.reason for each in told)


def test_all_of_them_are_caught_up_as_far_as_the_policy_goes() -> None:
    policies = {"misfire": "all", "overlap": "queue", "catch_up_most": 3}
    schedule, told = at(made(Every(600.0), **policies), START + 6000)
    assert [entry.due for entry in schedule.progress.pending] == [
        START + 4800,
        START + 5400,
        START + 6000,
    ]
    assert sum(each.count for each in told) == 7


def test_catching_up_is_spread() -> None:
    outage = START + 3500
    moments = set()
    for number in range(20):
        schedule = structs.replace(made(Every(600.0)), id=f"id{number}")
        schedule, _ = at(schedule, outage)
        [entry] = schedule.progress.pending
        assert outage <= entry.moment <= outage + SPREAD
        moments.add(entry.moment)
    assert len(moments) == 20


def test_later_than_catch_up_is_missed() -> None:
    schedule, told = at(made(Once(START + 10), catch_up=3600.0), START + 3700)
    assert schedule.progress.pending == ()
    assert [each.decision for each in told] == ["missed"]


def test_jitter_makes_a_window_late_and_always_by_the_same() -> None:
    schedule, _ = at(made(jitter=30.0), START + 60)
    [entry] = schedule.progress.pending
    assert START + 60 <= entry.moment <= START + 90
    assert at(made(jitter=30.0), START + 60)[0].progress.pending == (entry,)


@pytest.mark.parametrize(
    ("overlap", "verdict", "decision"),
    [
        ("skip", "drop", "overlapped"),
        ("queue", "defer", "deferred"),
        ("cancel", "cancel", "deferred"),
    ],
)
def test_while_its_job_lives(overlap: str, verdict: str, decision: str) -> None:
    schedule = run_once(at(made(overlap=overlap), START + 60)[0], START + 60)
    schedule, _ = at(schedule, START + 120)
    found = ruling(schedule, START + 120)
    assert (found.verdict, "job job" in found.reason) == (verdict, True)
    [entry] = schedule.progress.pending
    schedule, told = ruled(schedule, entry, found, START + 120)
    assert told.decision == decision
    if decision == "deferred":
        assert schedule.progress.pending[0].moment == math.inf
        schedule = ended(schedule, "job", START + 130, good=True, ran=70)
        assert next_moment(schedule) == START + 130
        assert ruling(schedule, START + 130).verdict == "run"


def test_a_window_that_waits_makes_room_for_the_next() -> None:
    schedule = run_once(at(made(overlap="queue"), START + 60)[0], START + 60)
    for number in (2, 3):
        schedule, told = at(schedule, START + 60 * number)
    assert [each.decision for each in told] == ["merged"]
    assert [entry.key for entry in schedule.progress.pending] == [
        f"every-3-{START + 180:.0f}"
    ]


def test_jitter_is_no_delay() -> None:
    schedule, _ = at(made(Every(DAY), jitter=7200.0, catch_up=0.0), START + DAY)
    [entry] = schedule.progress.pending
    assert entry.moment > START + DAY + 120
    found = ruling(schedule, entry.moment)
    assert (found.verdict, found.reason) == ("run", "it is time")
    skips, _ = at(made(Every(DAY), jitter=7200.0, misfire="skip"), START + DAY)
    assert ruling(skips, entry.moment).verdict == "run"
    assert ruling(skips, entry.moment + 3600).decision == "missed"


def test_contradicting_policies_are_refused() -> None:
    for overlap in ("skip", "cancel"):
        with pytest.raises(InvalidInput, match="overlap queue"):
            Policies(misfire="all", overlap=overlap).check()
    Policies(misfire="all", overlap="queue").check()


def test_a_cooldown_defers_and_loses_nothing() -> None:
    schedule = run_once(at(made(cooldown=100.0), START + 60)[0], START + 60)
    schedule = ended(schedule, "job", START + 70, good=True, ran=10)
    schedule, _ = at(schedule, START + 120)
    found = ruling(schedule, START + 120)
    assert (found.verdict, found.later) == ("defer", START + 170)
    [entry] = schedule.progress.pending
    schedule, _ = ruled(schedule, entry, found, START + 120)
    assert ruling(schedule, START + 170).verdict == "run"


def test_failures_back_off_and_pause_it_in_the_end() -> None:
    policies = {"backoff": 100.0, "max_backoff": 300.0, "max_failures": 4}
    schedule, wall, waits = made(Every(1000.0), **policies), START, []
    for number in range(1, 5):
        wall = START + 1000 * number
        schedule, _ = at(schedule, wall)
        schedule = run_once(schedule, wall)
        schedule = ended(schedule, "job", wall + 10, good=False, ran=10)
        found = rule(schedule, Pending("x", wall, wall), Situation(wall + 11))
        waits.append(found.later - (wall + 10) if found.verdict == "defer" else None)
    assert waits == [100.0, 200.0, 300.0, None]
    assert found.verdict == "pause"
    probe, _ = at(schedule, wall + 1000)
    schedule, told = ruled(probe, probe.progress.pending[0], found, wall + 1000)
    assert (schedule.state, told.decision) == ("paused", "stopped")
    assert next_moment(schedule) == math.inf
    schedule = resumed(schedule, wall + 5500)
    assert (schedule.progress.failures, schedule.progress.pending) == (0, ())
    assert wall + 5500 < next_moment(schedule) <= wall + 6500


def test_a_daily_budget_holds_until_midnight() -> None:
    schedule = run_once(at(made(daily_budget=100.0), START + 60)[0], START + 60)
    schedule = ended(schedule, "job", START + 80, good=True, ran=100)
    schedule, _ = at(schedule, START + 120)
    found = ruling(schedule, START + 120)
    assert (found.verdict, found.later % DAY) == ("defer", 0)
    assert ruling(schedule, found.later).verdict == "run"


def test_only_when_the_checkout_is_clean() -> None:
    schedule, _ = at(made(when_clean=True), START + 60)
    for dirty, verdict in ((False, "run"), (True, "defer"), (None, "defer")):
        assert ruling(schedule, START + 60, dirty=dirty).verdict == verdict


def test_it_is_done_after_its_runs_or_at_its_end() -> None:
    schedule = run_once(at(made(max_runs=1), START + 60)[0], START + 60)
    schedule = ended(schedule, "job", START + 61, good=True, ran=1)
    schedule, _ = at(schedule, START + 120)
    assert ruling(schedule, START + 120).verdict == "done"
    schedule, _ = at(made(until=START + 100), START + 120)
    assert ruling(schedule, START + 120).verdict == "done"
    schedule = run_once(at(made(Once(START + 5)), START + 5)[0], START + 5)
    assert schedule.state == "done"


def test_a_shadow_says_what_it_would_do() -> None:
    schedule, _ = at(made(shadow=True), START + 60)
    found = ruling(schedule, START + 60)
    assert (found.verdict, found.decision) == ("drop", "would_run")


def test_what_is_asked_for_waits_for_nothing_but_an_overlap() -> None:
    schedule = made(cooldown=1e6, max_runs=1, shadow=True)
    wish = Pending("asked-1", START, START, asked=True)
    assert rule(schedule, wish, Situation(START)).verdict == "run"
    running = submitted(schedule, wish, "", "job", START)[0]
    assert rule(running, wish, Situation(START)).verdict == "drop"


def test_a_clock_that_is_set_back_repeats_nothing_and_stops_nothing() -> None:
    daily = made(cron("0 4 * * *", "UTC"))
    schedule, _ = at(daily, START + 7200)
    schedule = run_once(schedule, START + 7200)
    schedule = ended(schedule, "job", START + 7300, good=True, ran=1)
    back, told = at(schedule, START)
    assert (back.progress.pending, told) == ((), [])
    assert next_moment(back) > START + 20 * 3600, "the next day, not again"
    often = run_once(at(made(), START + 60)[0], START + 60)
    assert next_moment(set_back(often, START - 7200)) <= START - 7200 + 60
    assert next_moment(set_back(schedule, START)) == next_moment(schedule)
    little = set_back(made(), made().progress.cursor - 0.5)
    assert little.progress.cursor == made().progress.cursor - 0.5
    wrong, _ = at(daily, START + 3650 * DAY)
    assert next_moment(set_back(wrong, START)) < START + DAY


def test_what_is_ahead_says_what_would_become_of_it() -> None:
    ahead = list(islice(preview(made(cooldown=90.0), START), 4))
    assert [(due - START, runs) for due, runs, _ in ahead] == [
        (60.0, True),
        (120.0, False),
        (180.0, True),
        (240.0, False),
    ]
    assert all(reason for *_, reason in ahead)
    paused = structs.replace(made(), state="paused", why="somebody paused it")
    [(_, runs, reason)] = islice(preview(paused, START), 1)
    assert (runs, "somebody paused it" in reason) == (False, True)
    assert list(preview(made(Manual()), START)) == []
    aside = structs.replace(made(Cron("61 * * * *", "UTC")), state="quarantined")
    assert list(preview(aside, START)) == []
    begun = structs.replace(made(), progress=Progress(0.0))
    [(due, *_)] = islice(preview(begun, START), 1)
    assert START <= due <= START + 60


def test_what_is_stored_comes_back_or_is_set_aside() -> None:
    schedule = made(Cron("@daily", "Europe/Prague"), jitter=3.0, until=START)
    assert loaded("id", "s", encoded(schedule)) == (schedule, None)
    gone = made(Cron("@daily", "Nowhere/City"))
    for body in (b"{}", b"\xff", encoded(gone)):
        aside, problem = loaded("id", "s", body)
        assert (aside.state, aside.name, bool(problem)) == ("quarantined", "s", True)


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "ä", "x" * 65, ".x"])
def test_a_name_can_be_typed(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        check_name(name)
    with pytest.raises(InvalidInput, match=r"^wake: .* is no name of a controller: "):
        check_name(name, of="controller", field="wake")
    assert check_name("Night-ly_1.2")


@pytest.mark.parametrize("seed", range(12))
def test_three_years_with_sleep_clock_steps_and_restarts(seed: int) -> None:
    """Every window is decided exactly once, and none is lost without a reason."""
    chance = random.Random(seed)
    trigger = chance.choice(
        [cron("30 2 * * *", "Europe/Prague"), cron("0 */6 * * *", "America/New_York")]
    )
    misfire, overlap = chance.choice(
        [("skip", "skip"), ("once", "queue"), ("once", "cancel"), ("all", "queue")]
    )
    schedule = made(trigger, misfire=misfire, overlap=overlap, jitter=30.0)
    wall, runs = START, set()
    finals: dict[str, Occurrence] = {}
    saved = schedule, dict(finals)
    while wall < START + 3 * 365 * DAY:
        wall = max(wall, min(next_moment(schedule), wall + 40 * DAY))
        kind = chance.random()
        if kind < 0.05:  # it sleeps, or is off, for up to four days
            wall += chance.random() * 4 * DAY
        elif kind < 0.08:  # the clock is set
            wall += chance.uniform(-3 * 3600, 3 * 3600)
            schedule = set_back(schedule, wall)
        elif kind < 0.12:  # it is killed: what was not saved is forgotten
            schedule, finals = saved[0], dict(saved[1])
        for job in schedule.progress.jobs:
            if chance.random() < 0.8:
                schedule = ended(schedule, job, wall, good=True, ran=60)
        schedule, told = advance(schedule, wall)
        for index, one in enumerate(told):
            if one.id in runs:
                entry = Pending(one.key, one.due, wall)
                schedule, told[index] = submitted(schedule, entry, "ran", one.id, wall)
        for entry in schedule.progress.pending:
            if entry.moment > wall:
                continue
            found = rule(schedule, entry, Situation(wall))
            of = occurrence_id(schedule.id, entry.key)
            if of in runs or found.verdict == "run":
                runs.add(of)  # its job is there for good, whatever is forgotten
                schedule, one = submitted(schedule, entry, found.reason, of, wall)
            else:
                schedule, one = ruled(schedule, entry, found, wall)
            told.append(one)
        for one in told:
            assert one.reason
            if one.decision != "deferred":
                assert one.id not in finals, "it was decided before"
                finals[one.id] = one
        if chance.random() < 0.9:
            saved = schedule, dict(finals)
    decided = {one.due: one for one in finals.values()}
    left = [entry.due for entry in schedule.progress.pending]
    told_of = [
        (one.due, float(one.key.rpartition("-")[2]))
        for one in finals.values()
        if one.key.startswith("before-")
    ]
    for window in windows(trigger, START, 0):
        if window.due > schedule.progress.cursor:
            break
        # Of several that had no chance one record tells.
        assert (
            window.due in decided
            or window.due in left
            or any(begin <= window.due < end for begin, end in told_of)
        ), "it was lost without a reason"
    assert len(runs) > 300
