"""What must hold when an attempt is over, by what its process really did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobEnded, JobRequeued
    from forge_actors.domain.launch import Receipt
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.machine import Ended, Process
    from forge_actors.testing.simulation.world import World


class Ends:
    """Judges ends by the books and by the machine, which knows what ran."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._books = world.books

    def judge_requeue(self, case: Case, change: JobRequeued, epoch: int) -> None:
        process = self._process(case)
        once = case.replay == "never" and process is not None and not process.checks
        if once:
            self._fail("never means once", f"{case.job} began and is queued again")
        if case.stopped_by == (epoch, case.attempt):
            self._fail("a cancel stands", f"{case.job} is queued again")

    def judge_end(self, case: Case, change: JobEnded) -> None:
        """Of a job that was dispatched or running."""
        process = self._process(case)
        self._judge_attempts(case, change)
        ended = None if process is None else process.ended
        self._judge_receipt(change.receipt)
        child = change.event.data.get("accepted")
        if child is not None:
            if child not in self._books.cases:
                self._fail("an end is what it was", f"{case.job} handed nothing on")
        elif change.state == "succeeded" and (ended is None or ended.exit_code != 0):
            self._fail("an end is what it was", f"{case.job} did not exit with 0")
        if change.receipt is not None and ended is not None and child is None:
            self._judge_outcome(change, change.receipt, ended)
        if change.state == "human_attention_required" and case.replay != "never":
            self._fail("an end is what it was", f"{case.job} may be repeated")

    def _judge_attempts(self, case: Case, change: JobEnded) -> None:
        """What a provider refused is neither an end nor one of the attempts."""
        process, receipt = self._process(case), change.receipt
        if process is None or change.state == "cancelled":
            return
        if receipt is not None and receipt.ending == "exit" and process.limit:
            self._fail("a limit parks", f"{case.job} is {change.state}")
        spent = change.error is not None and "attempts are used" in change.error.message
        since = case.attempt - case.entered - (case.refused - case.refused_before)
        if spent and since < case.max_attempts:
            self._fail("refusals do not count", f"{case.job} has others left")

    def judge_early_end(self, case: Case, change: JobEnded) -> None:
        """Of a job that waited."""
        if change.state == "succeeded":
            self._fail("an end is what it was", f"{case.job} waited and succeeded")

    def _judge_outcome(self, change: JobEnded, receipt: Receipt, ended: Ended) -> None:
        state = change.state
        good = ended.exit_code == 0
        case = self._books.cases[change.job]
        # Good work that nobody wants any more is not checked; a check may be cut short.
        unwanted = state == "cancelled" and case.step in ("work", "mend")
        if receipt.ending == "exit" and good != (state == "succeeded") and not unwanted:
            self._fail("an end is what it was", f"{change.job} is {state}: {ended}")
        if receipt.ending == "cancel" and state not in ("cancelled", "succeeded"):
            self._fail("a cancel stands", f"{change.job} is {state}")
        timed_out = receipt.ending in ("wall", "idle")
        if timed_out and state == "failed" and case.step != "check":
            self._fail("an end is what it was", f"{change.job} ran out of time")

    def _judge_receipt(self, receipt: Receipt | None) -> None:
        if receipt is None or receipt.ending != "exit":
            return
        process = self._world.machine.history[receipt.job, receipt.attempt]
        if process.fence != receipt.fence:
            self._fail("a receipt of its own", f"{receipt.job}: another one's receipt")

    def judge_leases(self, case: Case) -> None:
        """Nothing of it may run, unless that is known and its claims stay taken."""
        process = self._world.machine.processes.get((case.job, case.attempt))
        quarantined = self._books.quarantined.get(case.repo, {})
        if process is not None and case.job not in quarantined:
            self._fail("leases outlive processes", f"{case.job} still runs, unnamed")

    def judge_release(self, job: str) -> None:
        """Nothing of what an attempt left may run when its claims are free."""
        case = self._books.cases[job]
        if (job, case.attempt) in self._world.machine.processes:
            self._fail("quarantined leases hold", f"{job} still runs")

    def _process(self, case: Case) -> Process | None:
        return self._world.machine.history.get((case.job, case.attempt))

    def _fail(self, rule: str, what: str) -> None:
        self._world.fail(rule, what)
