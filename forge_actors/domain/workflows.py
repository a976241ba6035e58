"""Workflows: what comes next, and what an end of a job means for the steps behind it.

A workflow is steps, each with at most one job at a time. `Graph` holds where they are;
its moves change that and return the steps that are to be saved. A move costs as much as
it changes: nothing here looks at all steps but the beginning, a stop and the end.

Moments are seconds of the wall clock since 1970, UTC.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.workflow_steps import (
    ENDED,
    Step,
    StepEnd,
    StepState,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.workflow_definitions import Definition, StepDefinition

#: Jobs of a step in all of which nothing was found out, before that is a failure.
MAX_UNDECIDED = 3
#: Names that a sentence tells.
_TOLD = 5
_DID: dict[StepState, str] = {
    "failed": "failed",
    "skipped": "was left out",
    "cancelled": "was cancelled",
}


class Graph:
    """The plan of a portfolio: steps that depend on each other."""

    def __init__(self, definition: Definition, known: Iterable[Step] = ()) -> None:
        self._definition = definition
        self._defined = {step.name: step for step in definition.steps}
        saved = {step.name: step for step in known}
        self._steps = {
            step.name: saved.get(step.name) or Step(step.name, number)
            for number, step in enumerate(definition.steps)
        }
        self._order = list(self._steps.values())
        self._behind: dict[str, list[Step]] = {name: [] for name in self._steps}
        for step in self._order:
            for name in self._defined[step.name].after:
                self._behind[name].append(step)
        #: Why nothing new starts but what is there for when something fails.
        self._stopped: str | None = None
        self._cancelled = False
        #: Steps that were taken, and have no job so far.
        self._taken: set[str] = set()
        self._count()

    def _count(self) -> None:
        """Find out what the moves count on from here."""
        states = Counter(step.state for step in self._order)
        self._open = len(self._order) - sum(states[state] for state in ENDED)
        self._failed = states["failed"]
        self._running = states["running"]
        self._unmet = {
            name: sum(self._steps[before].state not in ENDED for before in step.after)
            for name, step in self._defined.items()
        }
        #: Numbers of the steps that may begin, and of some that were left out since.
        self._ready: list[int] = []

    # -- what is asked ---------------------------------------------------------------

    @property
    def steps(self) -> Sequence[Step]:
        return self._order

    @property
    def verdict(self) -> Verdict | None:
        if self._open:
            return None
        if any(step.state == "cancelled" for step in self._order):
            return Verdict("cancelled")
        if self._failed:
            failed = self._named("failed")
            return Verdict(
                "failed", f"{self._failed} of {len(self._order)} failed: {failed}"
            )
        return Verdict("succeeded")

    @property
    def by_name(self) -> Mapping[str, Step]:
        return self._steps

    def define(self, name: str) -> StepDefinition:
        return self._defined[name]

    # -- moves -----------------------------------------------------------------------

    def begin(self, now: float) -> list[Step]:
        changed: list[Step] = []
        if self._must_stop:
            self._stop(now, changed)
        free = [s for s in self._order if self._may_be_decided(s)]
        self._settle(free, now, changed)
        return changed

    def take(self) -> Step | None:
        parallel = self._definition.parallel
        while self._ready:
            if parallel is not None and self._running + len(self._taken) >= parallel:
                return None
            step = self._order[heapq.heappop(self._ready)]
            if step.state == "waiting" and step.name not in self._taken:
                self._taken.add(step.name)
                return step
        return None

    def give_back(self, step: Step, now: float) -> list[Step]:
        self._taken.discard(step.name)
        changed: list[Step] = []
        if self._cancelled:
            self._finish(step, "cancelled", None, now, changed)
        else:
            self._settle([step], now, changed)
        return changed

    def submitted(self, step: Step, job: str, now: float) -> list[Step]:
        self._taken.discard(step.name)
        self._running += 1
        step.state, step.job, step.why = "running", job, None
        step.validation = None
        step.tries += 1
        step.began = now if step.began is None else step.began
        return [step]

    def refused(self, step: Step, why: str, now: float) -> list[Step]:
        self._taken.discard(step.name)
        return self._over(step, "failed", why, now)

    def ended(self, step: Step, end: StepEnd, now: float) -> list[Step]:
        self._running -= 1
        step.validation = end.validation
        if end.state == "succeeded":
            step.outputs, step.items = end.outputs, end.items
            return self._over(step, "succeeded", end.why, now)
        why = end.why or f"job {step.job} {end.state}"
        if self._cancelled:
            return self._over(step, "cancelled", why, now)
        if end.retryable and step.undecided + 1 < MAX_UNDECIDED:
            step.undecided += 1
            again = True
        else:
            step.failures += 1
            again = step.failures <= self._defined[step.name].retries
        if not again or self._stopped is not None or end.state == "cancelled":
            return self._over(step, "failed", why, now)
        step.state = "waiting"
        step.why = f"{why}; it is tried again"
        heapq.heappush(self._ready, step.number)
        return [step]

    def answer(self, name: str, *, yes: bool, now: float) -> list[Step]:
        step = self._step(name)
        if step.state != "asking":
            raise Refused(f"step {name!r} asks nothing: it is {step.state}")
        if not yes:
            return self._over(step, "failed", "somebody said no", now)
        if self._defined[name].request is None:
            return self._over(step, "succeeded", "somebody said yes", now)
        step.approved, step.state, step.why = True, "waiting", None
        heapq.heappush(self._ready, step.number)
        return [step]

    def cancel(self, now: float) -> list[Step]:
        self._cancelled = True
        changed: list[Step] = []
        for step in self._order:
            idle = step.state == "waiting" and step.name not in self._taken
            if idle or step.state == "asking":
                self._finish(step, "cancelled", None, now, changed)
        return changed

    def retry(self, names: Sequence[str]) -> list[Step]:
        again = [self._step(name) for name in names]
        for step in again:
            if step.state not in ("failed", "cancelled"):
                raise Refused(f"step {step.name!r} did not fail: it is {step.state}")
        if not names:
            again = [s for s in self._order if s.state in ("failed", "cancelled")]
        if not again:
            raise Refused("no step of it failed")
        asked = [self._defined[step.name].when for step in again]
        again += [step for step in self._order if step.state == "skipped"]
        for step in again:
            step.state, step.why, step.ended = "waiting", None, None
            step.failures, step.undecided, step.approved = 0, 0, False
        self._stopped, self._cancelled = None, False
        self._count()
        if self._must_stop and "succeeded" in asked:
            raise Refused(
                f"nothing would begin, as these have failed too: "
                f"{self._named('failed')}; name them as well, or no step"
            )
        return again

    # -- the parts -------------------------------------------------------------------

    def _step(self, name: str) -> Step:
        if name not in self._steps:
            raise NotFound(f"there is no step {name!r}")
        return self._steps[name]

    def _may_be_decided(self, step: Step) -> bool:
        idle = step.state == "waiting" and step.name not in self._taken
        return idle and not self._unmet[step.name]

    def _over(
        self, step: Step, state: StepState, why: str | None, now: float
    ) -> list[Step]:
        """A step is over, and with it what is left out because of that."""
        changed: list[Step] = []
        self._settle(self._finish(step, state, why, now, changed), now, changed)
        if self._must_stop and self._stopped is None:
            self._stop(now, changed)
        return changed

    def _finish(
        self,
        step: Step,
        state: StepState,
        why: str | None,
        now: float,
        changed: list[Step],
    ) -> list[Step]:
        """A step is over; those behind it that wait for nothing else."""
        step.state, step.why, step.ended = state, why, now
        changed.append(step)
        self._open -= 1
        self._failed += state == "failed"
        free = []
        for behind in self._behind[step.name]:
            self._unmet[behind.name] -= 1
            if self._may_be_decided(behind):
                free.append(behind)
        return free

    def _settle(self, steps: list[Step], now: float, changed: list[Step]) -> None:
        """Decide about steps before which everything has ended."""
        while steps:
            step = steps.pop()
            defined = self._defined[step.name]
            out = self._left_out(defined)
            if out is not None:
                steps += self._finish(step, "skipped", out, now, changed)
            elif defined.gate is not None and not step.approved:
                step.state, step.why, step.began = "asking", defined.gate, now
                changed.append(step)
            else:
                heapq.heappush(self._ready, step.number)

    def _left_out(self, defined: StepDefinition) -> str | None:
        """Why a step does not begin, if it does not."""
        before = [self._steps[name] for name in defined.after]
        if defined.when == "succeeded":
            if self._stopped is not None:
                return self._stopped
            fine = {"succeeded"}
            if self._definition.on_failure == "continue":
                fine.add("failed")
            bad = next((step for step in before if step.state not in fine), None)
            if bad is not None:
                return f"step {bad.name} {_DID[bad.state]}"
        failed = any(step.state == "failed" for step in before)
        if defined.when == "failed" and not failed:
            return "no step before it failed"
        condition = defined.condition
        if condition is not None:
            text = self._steps[condition.step].outputs.get(condition.output, "")
            if (text == condition.text) != condition.equal:
                return f"it is not so that {condition}"
        return None

    @property
    def _must_stop(self) -> bool:
        of = self._definition
        if of.stop_after is not None and self._failed >= of.stop_after:
            return True
        return of.on_failure == "stop" and self._failed > 0

    def _stop(self, now: float, changed: list[Step]) -> None:
        why = f"nothing new starts since a step failed: {self._named('failed')}"
        self._stopped = why
        for step in self._order:
            idle = step.state == "waiting" and step.name not in self._taken
            if idle and self._defined[step.name].when == "succeeded":
                free = self._finish(step, "skipped", why, now, changed)
                self._settle(free, now, changed)

    def _named(self, state: StepState) -> str:
        names = [step.name for step in self._order if step.state == state]
        more = len(names) - _TOLD
        return ", ".join(names[:_TOLD]) + (f" and {more} more" if more > 0 else "")
