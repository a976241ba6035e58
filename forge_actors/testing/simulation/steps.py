"""What must hold of jobs whose work is checked, by what really ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.testing.simulation.plan import Operation

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobEnded, JobRequeued
    from forge_actors.domain.verifying import Verify
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.machine import Process
    from forge_actors.testing.simulation.world import World

#: What a check takes.
CHECK_TOKENS = ("workers", "heavy_checks")


class StepRules:
    """Judges by books of its own: the step of each job, and what ended it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def added(self, case: Case, verify: Verify | None) -> None:
        if verify is not None:
            case.step, case.rounds = "work", verify.rounds
            case.agent_tokens = case.tokens

    def began(self, case: Case, process: Process) -> None:
        """Only what is of the step begins."""
        for other in self._world.machine.processes.values():
            alone = self._world.plan.apart and not (process.checks or other.checks)
            if alone and other.cwd == process.cwd:
                self._fail("one agent a folder", case, f"beside {other.key[0]}")
        if process.checks != (case.step == "check"):
            what = "its check" if process.checks else "its agent"
            self._fail("step by step", case, f"{what} begins at the step {case.step}")

    def requeued(self, case: Case, change: JobRequeued) -> bool:
        """Whether another step begins; then that is because of what ran."""
        if change.state == "waiting_for_approval":
            answer = Operation(0.0, "answer", case.job)
            self._world.timers.after(
                self._world.plan.person, lambda: self._world.clients.do(answer)
            )
        step = change.verify
        if step is None:
            return False
        process = self._world.machine.history.get((case.job, case.attempt))
        ended = None if process is None else process.ended
        if process is None or ended is None:
            self._fail("step by step", case, "a step follows what never ended")
            return True
        if step.checking:
            if case.step == "check" or ended.exit_code != 0:
                self._fail("step by step", case, f"its check follows {ended}")
        else:
            self._mends(case, step, process)
        case.step = step.step
        case.tokens = CHECK_TOKENS if step.checking else case.agent_tokens
        case.entered, case.begun, case.isolatable = case.attempt, 0, False
        case.refused_before = case.refused
        return True

    def _mends(self, case: Case, step: Verify, process: Process) -> None:
        ended = process.ended
        assert ended is not None, "it has ended"
        over = process.wall is not None and process.ran >= process.wall
        died = ended.signal is not None and ended.signal == process.run.signal
        own = bool(ended.exit_code) or died
        if case.step != "check" or not (own or (over and ended.asked)):
            self._fail("step by step", case, f"mending follows {ended}")
        in_vain = case.round > 0 and case.alike and process.run.alike
        case.round, case.alike = case.round + 1, process.run.alike
        if step.round != case.round or case.round > case.rounds or in_vain:
            what = f"round {step.round} of {case.rounds}, by the books {case.round}"
            self._fail("rounds are counted", case, what)

    def ended(self, case: Case, change: JobEnded) -> None:
        """Nothing has succeeded that was not checked, and nothing fails too early."""
        if case.step is None or change.event.data.get("accepted") is not None:
            return
        process = self._world.machine.history.get((case.job, case.attempt))
        checked = process is not None and process.checks
        if change.state == "succeeded" and not (checked and case.step == "check"):
            self._fail("checked, then succeeded", case, f"at the step {case.step}")
        code = None if change.error is None else change.error.code
        if code == "VERIFY_FAILED" and process is not None and checked:
            alike = case.round > 0 and case.alike and process.run.alike
            if case.round < case.rounds and not alike:
                what = f"it had {case.round} of {case.rounds} rounds"
                self._fail("rounds are counted", case, what)

    def _fail(self, rule: str, case: Case, what: str) -> None:
        self._world.fail(rule, f"{case.job}: {what}")
