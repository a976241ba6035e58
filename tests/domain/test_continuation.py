"""Whether a controller may be woken, and what its turns come to."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.continuation import (
    MAX_RECOVERIES,
    RECOVERIES_AT_ONCE,
    Around,
    Turn,
    answered,
    backoff_of,
    become,
    ended,
    may_wake,
    next_moment,
    prepared,
    resumed,
    spent_of,
    those_due,
    unanswered,
)
from forge_actors.domain.controller_hosts import HostAnswer
from forge_actors.domain.controllers import Controller, Limits, Round, Wake

if TYPE_CHECKING:
    from forge_actors.domain.controllers import By, ControllerState, Disposition
    from forge_actors.domain.jobs import State

NOW = 10_000.0
SCHEDULE: By = "schedule"


def made(**fields: Any) -> Controller:
    given = {
        "id": "c",
        "name": "fixer",
        "repo": "app",
        "host": "fake",
        "binding": {},
        "prompt": "Go on.",
        "limits": Limits(),
        "job": "job0",
        "made": 1.0,
        **fields,
    }
    return Controller(**given)


def under_way(told: Disposition | None = None, **fields: Any) -> Controller:
    wake = fields.pop("wake", "w")
    mark = fields.pop("mark", "")
    last = Round(wake, NOW - 60, True, "d", "job1", told, "a note", mark)
    return made(round=last, job="job1", **fields)


#: What is so of a controller or around it, by what is answered for it. Of several the
#: first one decides.
REASONS: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
    ("done", {"state": "done"}, {}, "rejected"),
    ("aside", {"state": "quarantined"}, {}, "rejected"),
    ("gone", {}, {"retained": False}, "rejected"),
    ("drift", {}, {"bound": False}, "rejected"),
    ("asks", {"state": "waiting_for_user"}, {}, "wait_for_user"),
    ("paused", {"state": "paused"}, {}, "wait"),
    ("runs", {}, {"running": "job1"}, "wait"),
    ("turn", {"round": Round("w", 1.0)}, {}, "wait"),
    ("closed", {}, {"closed": "maintenance"}, "wait"),
    ("failures", {"failures": 3}, {}, "wait_for_user"),
    ("repeats", {"repeats": 2}, {}, "wait_for_user"),
    ("rounds", {"rounds": 8}, {}, "wait_for_user"),
    ("grace", {"active": NOW - 299}, {}, "wait"),
    ("same", {"waits": True, "seen": "a"}, {}, "semantic_wait"),
)


@pytest.mark.parametrize("by", ["schedule", "person", "agent", "recovery"])
def test_every_pair_of_reasons_is_answered_by_the_first(by: By) -> None:
    of_schedules = {"grace", "same"}
    known = [each for each in REASONS if by == SCHEDULE or each[0] not in of_schedules]
    for (first, a, b, answer), (_, c, d, _) in product(known, known):
        at = [name for name, *_ in known]
        if at.index(first) > at.index(_name(c, d)):
            continue
        around = Around(NOW, **{"seen": "a", **d, **b})
        told = may_wake(made(**{**c, **a}), by, around)
        assert told.answer == answer, (first, told)


def _name(fields: dict[str, Any], around: dict[str, Any]) -> str:
    return next(n for n, a, b, _ in REASONS if (a, b) == (fields, around))


@pytest.mark.parametrize("by", ["schedule", "person", "agent", "recovery"])
def test_one_that_nothing_holds_back_is_woken(by: By) -> None:
    assert may_wake(made(), by, Around(NOW)).answer == "dispatch"
    # The grace and the silence around it are for schedules.
    held = made(active=NOW - 1, waits=True, seen="a")
    around = Around(NOW, "a")
    answer = may_wake(held, by, around).answer
    assert answer == ("wait" if by == SCHEDULE else "dispatch")


def test_the_grace_says_until_when_and_a_clock_that_was_set_ends_it() -> None:
    told = may_wake(made(active=NOW - 100), SCHEDULE, Around(NOW))
    assert (told.answer, told.later) == ("wait", NOW + 200)
    for active in (NOW - 300, NOW + 1, NOW + 5000):
        told = may_wake(made(active=active), SCHEDULE, Around(NOW))
        assert told.answer == "dispatch"
    assert may_wake(made(state="paused"), SCHEDULE, Around(NOW)).later == math.inf


def test_what_has_changed_or_come_to_pass_ends_a_wait() -> None:
    waits = made(waits=True, seen="a", active=NOW - 1000)
    for around, answer in (
        (Around(NOW, "a"), "semantic_wait"),
        (Around(NOW, "b"), "dispatch"),
        (Around(NOW, "a", news=True), "dispatch"),
    ):
        assert may_wake(waits, SCHEDULE, around).answer == answer
    goes_on = structs.replace(waits, waits=False)
    assert may_wake(goes_on, SCHEDULE, Around(NOW, "a")).answer == "dispatch"


@pytest.mark.parametrize(
    ("told", "state", "due", "waits"),
    [
        ("goal_complete", "done", None, False),
        ("wait_for_user", "waiting_for_user", None, False),
        ("wait", "active", None, True),
        ("continue_immediately", "active", NOW, False),
    ],
)
@pytest.mark.parametrize("job", ["succeeded", "failed"])
def test_each_disposition_has_what_follows(
    told: Disposition,
    state: ControllerState,
    due: float | None,
    waits: bool,
    job: State,
) -> None:
    after = ended(under_way(told, failures=2, recoveries=4), Turn(job, "s", "x"), NOW)
    assert (after.state, after.due, after.waits) == (state, due, waits)
    assert (after.failures, after.recoveries, after.round) == (0, 0, None)
    assert (after.active, after.seen) == (NOW, "s")
    if state != "active":
        assert (after.why, after.since) == ("a note", NOW)


def test_turns_that_come_to_the_same_state_end_with_a_person() -> None:
    turn = Turn(seen="s", said="nothing to do")
    controller, states = under_way("continue_immediately"), []
    for _ in range(3):
        controller = ended(controller, turn, NOW)
        states.append((controller.repeats, controller.state))
        controller = structs.replace(controller, round=Round("w", NOW, True, "d", "j"))
        told = structs.replace(controller.round, told="continue_immediately")
        controller = structs.replace(controller, round=told)
    assert states == [(0, "active"), (1, "active"), (2, "waiting_for_user")]
    for other in (
        Turn(seen="t", said="nothing to do"),
        Turn(seen="s", said="something"),
    ):
        again = ended(under_way("wait", came_to=controller.came_to), other, NOW)
        assert again.repeats == 0
    # What the agent says of the state counts for more than its last words.
    first = ended(under_way("wait", mark="half"), Turn(said="a"), NOW)
    then = under_way("wait", mark="half", came_to=first.came_to)
    assert ended(then, Turn(said="b"), NOW).repeats == 1


def test_a_turn_without_a_word_is_gone_on_with_later_each_time() -> None:
    assert [backoff_of(n) for n in range(1, 7)] == [60, 120, 240, 480, 900, 900]
    controller, waits = made(), []
    for number in range(MAX_RECOVERIES + 1):
        last = Round(f"w{number}", NOW, True, "d", "j")
        controller = structs.replace(controller, round=last)
        controller = ended(controller, Turn(said=str(number)), NOW)
        waits.append(None if controller.due is None else controller.due - NOW)
    assert waits == [660, 720, 840, 1080, 1500, 1500, 1500, 1500, None]
    assert controller.state == "waiting_for_user"


def test_failures_in_a_row_end_with_a_person() -> None:
    controller = under_way(failures=1)
    once = ended(controller, Turn("failed", said="1"), NOW)
    assert (once.failures, once.state, once.by) == (2, "active", "recovery")
    last = structs.replace(once, round=Round("v", NOW, True, "d", "j"))
    assert ended(last, Turn("timed_out", said="2"), NOW).state == "waiting_for_user"
    assert ended(last, Turn("succeeded", said="2"), NOW).failures == 0


def test_a_cancelled_turn_pauses_and_the_first_job_need_not_say_anything() -> None:
    cancelled = ended(under_way("continue_immediately"), Turn("cancelled"), NOW)
    assert (cancelled.state, cancelled.due) == ("paused", None)
    first = ended(under_way(wake=""), Turn(), NOW)
    assert (first.state, first.due, first.waits, first.repeats) == (
        *("active", None, False),
        0,
    )
    said = ended(under_way("continue_immediately", wake=""), Turn(), NOW)
    assert said.due == NOW


def test_the_last_turn_of_a_budget_is_followed_by_a_person() -> None:
    after = ended(under_way("continue_immediately", rounds=8), Turn(), NOW)
    assert (after.state, after.due) == ("waiting_for_user", None)
    assert after.why == "it has had 8 turns since a person looked"
    again = resumed(after, NOW + 1)
    assert (again.state, again.why, again.rounds) == ("active", None, 0)
    assert spent_of(again) is None
    done = ended(under_way("goal_complete", rounds=8), Turn(), NOW)
    assert done.state == "done"


@pytest.mark.parametrize("by", ["schedule", "person", "agent", "recovery"])
def test_what_a_host_answers(by: By) -> None:
    wake = Wake("w", "c", 7, by, "prepared", "r", NOW, "o")
    begun = prepared(made(due=NOW), wake, NOW)
    assert (begun.round, begun.number, begun.due) == (Round("w", NOW), 7, None)
    itself = by in ("agent", "recovery")
    after, state = answered(begun, by, HostAnswer("accepted", "", "d", "job9"), NOW)
    assert (state, after.job, after.rounds) == ("dispatched", "job9", 1)
    assert after.round is not None
    assert (after.round.accepted, after.round.job) == (True, "job9")
    after, state = answered(begun, by, HostAnswer("wait", "busy"), NOW)
    assert (state, after.round, after.state) == ("semantic_wait", None, "active")
    assert (after.due is not None) == itself
    after, state = answered(begun, by, HostAnswer("wait_for_user", "log in"), NOW)
    assert (state, after.state, after.why) == (
        *("wait_for_user", "waiting_for_user"),
        "log in",
    )
    after, state = answered(begun, by, HostAnswer("rejected", "no"), NOW)
    assert (state, after.rounds) == ("rejected", 0)
    assert after.state == ("waiting_for_user" if itself else "active")
    lost = unanswered(begun, "it broke", NOW)
    assert (lost.state, lost.round) == ("waiting_for_user", None)
    assert "it broke" in (lost.why or "")


def test_few_of_those_that_stalled_are_gone_on_with_at_once() -> None:
    stalled = [
        made(id=f"s{n}", name=f"s{n}", due=NOW - n, by="recovery") for n in range(5)
    ]
    asked = [made(id=f"a{n}", name=f"a{n}", due=NOW, by="agent") for n in range(3)]
    later = made(id="l", due=NOW + 1, by="agent")
    paused = become(made(id="p", due=NOW, by="agent"), "paused", "x", NOW)
    found = those_due([*asked, *stalled, later, paused], NOW)
    assert [one.id for one in found] == ["s4", "s3", "a0", "a1", "a2"]
    assert RECOVERIES_AT_ONCE == 2
    assert (next_moment(later), next_moment(paused)) == (NOW + 1, math.inf)
    # A host without jobs: without a word its turn has stalled.
    silent = made(round=Round("w", NOW, True, "d"))
    assert next_moment(silent) == NOW + 600
    assert next_moment(under_way()) == math.inf
