"""Goals: act, check, decide, until the check passes or what they may use is spent.

The steps of a goal grow: act-1, check-1, act-2 and so on. Nothing is kept but these,
and what comes next follows from them alone, so a restart at any point goes on alike.

Moments are seconds of the wall clock since 1970, UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.rounds import (
    ROLES,
    Marks,
    Role,
    Round,
    Turn,
    anew,
    decide,
    used,
)
from forge_actors.domain.workflow_steps import ENDED, Step, StepEnd, Verdict
from forge_actors.domain.workflows import MAX_UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.workflow_definitions import Definition, StepDefinition

#: Steps over all of its retries.
MAX_STEPS = 1000
#: Jobs of acts that the next one is told of, to go on where one of them worked.
LOOKED_BACK = 5
#: The place of the number of a round in the texts of the jobs.
PLACE = "round"


class Place(NamedTuple):
    """Which step of a goal one is."""

    role: Role
    number: int


def place_of(step: Step) -> Place:
    """By its name, such as act-2."""
    role, _, number = step.name.rpartition("-")
    return Place("check" if role == "check" else "act", int(number))


class Goal:
    """The plan of a goal."""

    def __init__(self, definition: Definition, known: Iterable[Step] = ()) -> None:
        assert definition.goal is not None, definition.name
        self._terms = definition.goal
        self._defined = dict(zip(ROLES, definition.steps, strict=True))
        self._steps = list(known)
        self._by_name = {step.name: step for step in self._steps}
        self._verdict: Verdict | None = None
        self._cancelled = False
        #: The step that is to begin was taken, and has no job so far.
        self._taken = False
        self._go_on()

    # -- what is asked ---------------------------------------------------------------

    @property
    def verdict(self) -> Verdict | None:
        return self._verdict

    @property
    def steps(self) -> Sequence[Step]:
        return self._steps

    @property
    def by_name(self) -> Mapping[str, Step]:
        return self._by_name

    @property
    def rounds(self) -> list[Round]:
        """Those since the goal was begun, or begun anew."""
        found: list[Round] = []
        for step in self._steps[self._first :]:
            role, number = place_of(step)
            marks = step.marks or Marks()
            why = step.why or f"step {step.name} {step.state}"
            good = step.state == "succeeded"
            if role == "act":
                found.append(
                    Round(number, good, why=why, tokens=marks.tokens, cost=marks.cost)
                )
            else:
                found[-1] = structs.replace(
                    found[-1],
                    passed=good,
                    why=why,
                    likeness=marks.likeness,
                    blind=marks.blind,
                )
        return found

    def define(self, name: str) -> StepDefinition:
        step = self._by_name[name]
        index = step.number
        role, number = place_of(step)
        turn = self._turn(step, role, number)
        return structs.replace(
            self._defined[role],
            name=name,
            after=(self._steps[index - 1].name,) if index else (),
            values={PLACE: str(turn.number)},
            turn=turn,
        )

    # -- moves -----------------------------------------------------------------------

    def begin(self, now: float) -> list[Step]:
        return []

    def take(self) -> Step | None:
        step = self._steps[-1]
        if step.state != "waiting" or self._taken:
            return None
        self._taken = True
        return step

    def give_back(self, step: Step, now: float) -> list[Step]:
        self._taken = False
        return self.cancel(now) if self._cancelled else []

    def submitted(self, step: Step, job: str, now: float) -> list[Step]:
        self._taken = False
        step.state, step.job, step.why = "running", job, None
        step.validation = None
        step.tries += 1
        step.began = now if step.began is None else step.began
        return [step]

    def refused(self, step: Step, why: str, now: float) -> list[Step]:
        self._taken = False
        end = StepEnd("failed", why, marks=Marks(blind=place_of(step).role == "check"))
        return self.ended(step, end, now)

    def ended(self, step: Step, end: StepEnd, now: float) -> list[Step]:
        why = end.why or f"job {step.job} {end.state}"
        step.marks = _added(step.marks or Marks(), end.marks or Marks())
        step.outputs, step.validation = end.outputs, end.validation
        if end.state == "succeeded":
            step.state, step.why = "succeeded", end.why
        elif self._cancelled or end.state == "cancelled":
            step.state, step.why = "cancelled", why
        elif end.retryable and self._may_try_again(step, now):
            step.undecided += 1
            step.state, step.why = "waiting", f"{why}; it is tried again"
            return [step]
        else:
            step.failures += 1
            nothing = end.retryable or end.validation == "infrastructure_failure"
            if nothing and place_of(step).role == "check":
                step.marks = structs.replace(step.marks, blind=True)
            step.state, step.why = "failed", why
        step.ended = now
        self._go_on()
        return [step, *self.cancel(now)] if self._cancelled else [step]

    def answer(self, name: str, *, yes: bool, now: float) -> list[Step]:
        if name not in self._by_name:
            raise NotFound(f"there is no step {name!r}")
        raise Refused(f"step {name!r} asks nothing: it is {self._by_name[name].state}")

    def cancel(self, now: float) -> list[Step]:
        self._cancelled = True
        step = self._steps[-1]
        if step.state != "waiting" or self._taken:
            return []
        step.state, step.ended = "cancelled", now
        self._go_on()
        return [step]

    def retry(self, names: Sequence[str]) -> list[Step]:
        if names:
            raise Refused("a goal goes on as a whole: name no steps of it")
        if self._verdict is None or self._verdict.state == "succeeded":
            raise Refused("no step of it failed")
        if len(self._steps) >= MAX_STEPS:
            raise Refused(f"it has {MAX_STEPS} steps, which is the most")
        self._verdict, self._cancelled = None, False
        step = self._append("act", place_of(self._steps[-1]).number + 1)
        step.marks = anew(step.marks)
        return [step]

    # -- the parts -------------------------------------------------------------------

    def _go_on(self) -> None:
        """Find out what comes after the last step, by what was saved of them all."""
        if not self._steps:
            self._append("act", 1)
            return
        last = self._steps[-1]
        role, number = place_of(last)
        if last.state not in ENDED:
            return
        if last.state == "cancelled":
            self._verdict = Verdict("cancelled", last.why)
        elif role == "act" and last.state == "succeeded":
            self._append("check", number)
        else:
            decision = decide(self._terms, self.rounds, self._seconds(last.ended))
            match decision.what:
                case "go on":
                    self._append("act", number + 1)
                case "done":
                    self._verdict = Verdict("succeeded", decision.why)
                case "stuck":
                    self._verdict = Verdict("human_attention_required", decision.why)
                case "spent":
                    self._verdict = Verdict("failed", decision.why)

    def _append(self, role: Role, number: int) -> Step:
        step = Step(f"{role}-{number}", len(self._steps))
        self._steps.append(step)
        self._by_name[step.name] = step
        return step

    @property
    def _first(self) -> int:
        """The first step of those on which its budgets count."""
        for index in range(len(self._steps) - 1, 0, -1):
            marks = self._steps[index].marks
            if marks is not None and marks.anew:
                return index
        return 0

    def _seconds(self, now: float | None) -> float:
        """How long it has gone on by then."""
        began = self._steps[self._first].began
        return 0.0 if began is None or now is None else now - began

    def _may_try_again(self, step: Step, now: float) -> bool:
        limit = self._terms.seconds
        over = limit is not None and self._seconds(now) >= limit
        return not over and step.undecided + 1 < MAX_UNDECIDED

    def _turn(self, step: Step, role: Role, number: int) -> Turn:
        terms, index = self._terms, step.number
        before = self._steps[index - 1] if index else None
        check = why = None
        if role == "act" and before is not None:
            why = before.why or f"step {before.name} {before.state}"
            blind = before.marks is not None and before.marks.blind
            if place_of(before).role == "check" and before.state == "failed":
                check = None if blind else before.job
        first = self._first
        begun = place_of(self._steps[first]).number
        # Of those that have ended nobody asks.
        tokens, cost = used(self.rounds) if step.state not in ENDED else (0, 0.0)
        began = self._steps[first].began
        until = None
        if terms.seconds is not None and began is not None:
            until = began + terms.seconds
        return Turn(
            role=role,
            number=number,
            round=number - begun + 1 if index >= first else number,
            rounds=terms.rounds,
            before=self._acted(index),
            check=check,
            why=why,
            until=until,
            seconds=terms.seconds,
            tokens=None if terms.tokens is None else max(1, terms.tokens - tokens),
            cost=None if terms.cost is None else max(0.01, terms.cost - cost),
        )

    def _acted(self, index: int) -> tuple[str, ...]:
        """The last jobs that acted up to a step, the newest first."""
        found: list[str] = []
        for step in reversed(self._steps[: index + 1]):
            if step.job is not None and place_of(step).role == "act":
                found.append(step.job)
                if len(found) == LOOKED_BACK:
                    break
        return tuple(found)


def _added(marks: Marks, more: Marks) -> Marks:
    """What is known of a step after another job of it."""
    return structs.replace(
        marks,
        likeness=more.likeness,
        tokens=marks.tokens + more.tokens,
        cost=marks.cost + more.cost,
        blind=more.blind,
    )
