"""Continuation: whether a controller may be woken, and what its turn came to.

Every answer follows from the controller, the moment and what is seen around it; each
comes with its reason.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from forge_actors.domain.controllers import MINUTE, Controller, Round
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.controller_hosts import HostAnswer
    from forge_actors.domain.controllers import (
        By,
        ControllerState,
        Disposition,
        Wake,
        WakeState,
    )
    from forge_actors.domain.jobs import State

#: Stalled turns that are gone on with in one pass, and of one controller in all.
RECOVERIES_AT_ONCE = 2
MAX_RECOVERIES = 8
#: Seconds from one pass to the next, where more have stalled.
PASS = MINUTE
#: Seconds before the first recovery, doubled with each more, up to the longest.
FIRST_BACKOFF, LONGEST_BACKOFF = MINUTE, 15 * MINUTE

Answer = Literal["dispatch", "wait", "wait_for_user", "semantic_wait", "rejected"]


class NotNow(Refused):
    """The controller cannot be woken at the moment."""

    code = "CONTROLLER_BUSY"

    def __init__(self, reason: str, later: float = math.inf) -> None:
        super().__init__(reason)
        #: When to ask again; infinite: once something has happened.
        self.later = later


class NotWoken(Refused):
    """This occurrence does not wake the controller, now or later."""

    code = "CONTROLLER_NOT_WOKEN"

    def __init__(self, reason: str, *, failed: bool) -> None:
        super().__init__(reason)
        #: Whether that is a failure of whoever wakes it.
        self.failed = failed


class Verdict(Struct, frozen=True):
    answer: Answer
    reason: str
    #: Of `wait`: until when; infinite: until something happens.
    later: float = math.inf


class Around(Struct, frozen=True):
    """What a verdict goes by besides the controller."""

    wall: float
    #: What can be seen of its work from outside.
    seen: str = ""
    #: Its session is there.
    retained: bool = True
    #: Its binding is what it was when a person gave it.
    bound: bool = True
    #: A job of it that has not ended.
    running: str | None = None
    #: Why nothing begins now.
    closed: str | None = None
    #: Something came to pass, which is news whatever is seen.
    news: bool = False


class Turn(Struct, frozen=True):
    """How the job of a turn ended; one of a host without jobs has just ended."""

    state: State = "succeeded"
    seen: str = ""
    #: The last words of its agent.
    said: str = ""


def may_wake(controller: Controller, by: By, around: Around) -> Verdict:
    """Whether it goes on now."""
    name, wall, limits = controller.name, around.wall, controller.limits
    if controller.state == "done":
        return Verdict("rejected", f"controller {name} has done its work")
    if controller.state == "quarantined":
        return Verdict("rejected", f"controller {name} is set aside: {controller.why}")
    if not around.retained:
        return Verdict("rejected", "the session that it would go on with is gone")
    if not around.bound:
        return Verdict("rejected", "it is bound to something else than it was")
    if controller.state == "waiting_for_user":
        return Verdict("wait_for_user", f"it waits for a person: {controller.why}")
    if controller.state == "paused":
        return Verdict("wait", f"controller {name} is paused")
    if around.running is not None:
        return Verdict("wait", f"its job {around.running} has not ended")
    if controller.round is not None:
        return Verdict("wait", "its turn has not ended")
    if around.closed is not None:
        return Verdict("wait", around.closed)
    if (spent := spent_of(controller)) is not None:
        return Verdict("wait_for_user", spent)
    if by == "schedule":
        until = controller.active + limits.grace
        if controller.active and wall < until <= wall + limits.grace:
            return Verdict("wait", "it was active not long ago", until)
        if controller.waits and not around.news and controller.seen == around.seen:
            return Verdict(
                "semantic_wait", "nothing is new since it said that it waits"
            )
    return Verdict("dispatch", _WOKEN[by])


_WOKEN: dict[By, str] = {
    "schedule": "a schedule wakes it",
    "person": "somebody asked for it",
    "agent": "it asked to go on",
    "recovery": "it ended its turn without a word",
}


def spent_of(controller: Controller) -> str | None:
    """Which of its budgets is spent, in words; None if none is."""
    limits = controller.limits
    if controller.failures >= limits.failures:
        return f"{controller.failures} of its turns failed in a row"
    if controller.repeats >= limits.repeats:
        return f"{controller.repeats} of its turns in a row came to the same state"
    if controller.rounds >= limits.rounds:
        return f"it has had {controller.rounds} turns since a person looked"
    return None


def ended(controller: Controller, turn: Turn, wall: float) -> Controller:
    """A controller whose turn has ended, and what follows from how it did."""
    last = controller.round
    assert last is not None, "it had one"
    begun = last.wake != ""
    came_to = _digest(last.mark or turn.said, turn.seen)
    same = begun and came_to == controller.came_to
    after = structs.replace(
        controller,
        round=None,
        active=wall,
        waits=False,
        seen=turn.seen,
        came_to=came_to,
        repeats=controller.repeats + 1 if same else 0,
        due=None,
    )
    if turn.state == "cancelled":
        return become(after, "paused", "somebody cancelled its job", wall)
    if last.told is None:
        if turn.state == "succeeded" and not begun:
            # Nobody had told the first one that it is to say anything.
            return after
        return _stalled(after, failed=turn.state != "succeeded", wall=wall)
    after = structs.replace(after, failures=0, recoveries=0)
    return _told(after, last.told, last.note, wall)


def _told(
    controller: Controller, told: Disposition, note: str, wall: float
) -> Controller:
    match told:
        case "goal_complete":
            return become(controller, "done", note or "its agent says so", wall)
        case "wait_for_user":
            why = note or "its agent asks for a person"
            return become(controller, "waiting_for_user", why, wall)
        case "wait":
            return _within_budgets(structs.replace(controller, waits=True), wall)
        case "continue_immediately":
            due = structs.replace(controller, due=wall, by="agent")
            return _within_budgets(due, wall)


def _stalled(controller: Controller, *, failed: bool, wall: float) -> Controller:
    failures = controller.failures + 1 if failed else 0
    recoveries = controller.recoveries + 1
    controller = structs.replace(controller, failures=failures)
    if recoveries > MAX_RECOVERIES:
        why = f"it ended {MAX_RECOVERIES} of its turns without a word"
        return become(controller, "waiting_for_user", why, wall)
    due = wall + controller.limits.stalled + backoff_of(recoveries)
    again = structs.replace(controller, recoveries=recoveries, due=due, by="recovery")
    return _within_budgets(again, wall)


def backoff_of(recoveries: int) -> float:
    """Seconds before the recovery with this number, from 1 on."""
    return min(FIRST_BACKOFF * 2.0 ** min(16, recoveries - 1), LONGEST_BACKOFF)


def _within_budgets(controller: Controller, wall: float) -> Controller:
    spent = spent_of(controller)
    if spent is None:
        return controller
    return become(controller, "waiting_for_user", spent, wall)


def become(
    controller: Controller, state: ControllerState, why: str | None, wall: float
) -> Controller:
    """The same in another state; only an active one goes on by itself."""
    due = controller.due if state == "active" else None
    return structs.replace(controller, state=state, why=why, since=wall, due=due)


def resumed(controller: Controller, wall: float) -> Controller:
    """A controller that a person has looked at: its budgets begin anew."""
    return structs.replace(
        become(controller, "active", None, wall),
        rounds=0,
        repeats=0,
        failures=0,
        recoveries=0,
        came_to="",
    )


def prepared(controller: Controller, wake: Wake, wall: float) -> Controller:
    """A controller whose turn is about to begin."""
    return structs.replace(
        controller, number=wake.number, round=Round(wake.id, wall), due=None
    )


def answered(
    controller: Controller, by: By, answer: HostAnswer, wall: float
) -> tuple[Controller, WakeState]:
    """What follows from what its host said, for itself and for the occurrence."""
    if answer.answer == "accepted":
        last = controller.round
        assert last is not None, "it was asked for a turn"
        last = structs.replace(
            last, accepted=True, dispatch=answer.dispatch, job=answer.job
        )
        begun = structs.replace(
            controller,
            round=last,
            job=answer.job or controller.job,
            rounds=controller.rounds + 1,
            active=wall,
        )
        return begun, "dispatched"
    controller = structs.replace(controller, round=None)
    itself = by in ("agent", "recovery")
    match answer.answer:
        case "wait" if itself:
            return _stalled(controller, failed=False, wall=wall), "semantic_wait"
        case "wait":
            return controller, "semantic_wait"
        case "rejected" if not itself:
            return controller, "rejected"
        case told:
            why = answer.reason or "its host asks for a person"
            after = become(controller, "waiting_for_user", why, wall)
            return after, "rejected" if told == "rejected" else "wait_for_user"


def unanswered(controller: Controller, problem: str, wall: float) -> Controller:
    """A controller of which nobody knows whether its turn has begun."""
    why = (
        f"it is not known whether {controller.host} had it go on ({problem}); look, and"
        " let it go on when no turn of it is under way"
    )
    controller = structs.replace(controller, round=None)
    return become(controller, "waiting_for_user", why, wall)


def stalls_at(controller: Controller) -> float:
    """When a turn has stalled whose host has no job that ends; infinite: never."""
    last = controller.round
    if last is None or last.job is not None or not last.accepted:
        return math.inf
    return max(controller.active, last.began) + controller.limits.stalled


def next_moment(controller: Controller) -> float:
    """When there is something to decide about it; infinite for never."""
    if controller.state != "active":
        return math.inf
    due = math.inf if controller.due is None else controller.due
    return min(due, stalls_at(controller))


def those_due(controllers: Iterable[Controller], wall: float) -> list[Controller]:
    """Those that go on by themselves now, the longest due first; of those that have
    stalled only as many as one pass takes."""
    waiting = sorted(
        (one for one in controllers if one.round is None and next_moment(one) <= wall),
        key=lambda one: (next_moment(one), one.id),
    )
    stalled = [one for one in waiting if one.by == "recovery"][:RECOVERIES_AT_ONCE]
    return [one for one in waiting if one.by != "recovery" or one in stalled]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
