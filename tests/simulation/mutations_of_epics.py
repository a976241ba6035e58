"""Deliberate bugs in runs of EPICs: each puts one in, as a wrong edit would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.actors.epic_admission import Admissions
from forge_actors.actors.epic_finalizing import Finalizing
from forge_actors.actors.epic_reading import Reading
from forge_actors.actors.epic_run import Run
from forge_actors.domain.epic import reconciling, verdicts
from forge_actors.domain.epic.graph import IssueText, Reread, node_digest
from forge_actors.domain.epic.progress import Progress
from forge_actors.domain.epic.records import AdmissionStatus, Closed
from forge_actors.domain.epic.stopping import Ending
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.testing.epic.locks import FakeControllerLock, FakeRunLock

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    Mutation = Callable[[pytest.MonkeyPatch], None]


def the_controllers_lock_is_given_back_by_an_unlock(patch: pytest.MonkeyPatch) -> None:
    real = FakeControllerLock.close

    def close(self: Any) -> None:
        self._opened.unlock()
        real(self)

    patch.setattr(FakeControllerLock, "close", close)


def a_lock_that_was_handed_off_is_unlocked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeRunLock, "hand_off", lambda self: self._descriptor)


def an_issue_begins_as_the_snapshot_has_it(patch: pytest.MonkeyPatch) -> None:
    async def reread(self: Any, issue: int) -> Any:
        node = self._run.progress.snapshot.child(issue)
        text = IssueText("", "")
        return Reread(node, node_digest(node), (), text), text

    patch.setattr(Admissions, "_reread", reread)


def what_changed_begins_all_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reread, "unchanged", True)


def a_slot_is_free_once_the_claim_is_closed(patch: pytest.MonkeyPatch) -> None:
    def free(self: Any) -> int:
        return self._limit - len(self.live) - len(self.ended)  # type: ignore[no-any-return]

    patch.setattr(Progress, "free", property(free))


def there_is_one_slot_more(patch: pytest.MonkeyPatch) -> None:
    real = Progress.free.fget  # type: ignore[attr-defined]
    patch.setattr(Progress, "free", property(lambda self: real(self) + 1))


def workers_are_interrupted_a_third_time(patch: pytest.MonkeyPatch) -> None:
    real = Run.end

    def end(self: Any) -> Any:
        for issue in sorted(self.progress.live):
            self.progress.live[issue].worker.interrupt()
        return real(self)

    patch.setattr(Run, "end", end)


def a_drain_interrupts_workers(patch: pytest.MonkeyPatch) -> None:
    real = Ending.step

    def step(self: Any, now: float) -> Any:
        order = real(self, now)
        drained = self.reason == "drained" and order == "nothing"
        return "interrupt" if drained else order

    patch.setattr(Ending, "step", step)


def the_grace_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    real = Ending.step

    def step(self: Any, now: float) -> Any:
        order = real(self, now)
        self.deadline = None if self.deadline is None else now
        return order

    patch.setattr(Ending, "step", step)


def a_stop_closes_what_is_degraded(patch: pytest.MonkeyPatch) -> None:
    real = Ending.step

    def step(self: Any, now: float) -> Any:
        order = real(self, now)
        if order == "interrupt":
            self.admission = AdmissionStatus("closed", "interrupted")
        return order

    patch.setattr(Ending, "step", step)


def a_request_to_stop_another_run_counts(patch: pytest.MonkeyPatch) -> None:
    def read(self: Any) -> None:
        found = self.context.namespaces.read_stop(self.epic.number)
        if found.kind != "none":
            self.ending.request("drain" if not found.request else found.request.mode)

    patch.setattr(Run, "_read_request", read)


def a_claim_is_closed_without_looking_for_its_process(
    patch: pytest.MonkeyPatch,
) -> None:
    real = Admissions._not_started

    def not_started(self: Any, issue: int, claim: Any, lock: Any, error: Any) -> None:
        run = self._run
        done = Closed("abandoned", None, None, str(error), run.now)
        run.context.namespaces.close_claim(lock, claim, done)
        real(self, issue, claim, lock, error)

    patch.setattr(Admissions, "_not_started", not_started)


def what_others_had_is_not_looked_at_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reading, "_look_at_observed", lambda _self: True)


def a_snapshot_that_was_refused_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    real = Run.degrade

    def degrade(self: Any, reason: Any) -> None:
        if reason != "snapshot-refused":
            real(self, reason)

    patch.setattr(Run, "degrade", degrade)


def the_graph_is_read_all_the_time(patch: pytest.MonkeyPatch) -> None:
    real = Progress.taken

    def taken(self: Any, snapshot: Any, now: float) -> None:
        real(self, snapshot, now - self._poll)

    patch.setattr(Progress, "taken", taken)


def the_earlier_claim_is_closed_first(patch: pytest.MonkeyPatch) -> None:
    real = FileNamespaces.open_claim

    def open_claim(self: Any, lock: Any, claim: Any, supersede: Any = None) -> None:
        if supersede is not None:
            claims = (*self.read(lock, claim.run_key.issue_number).claims, claim)
            self._take_over(claims, supersede, claim)
        real(self, lock, claim, supersede)

    patch.setattr(FileNamespaces, "open_claim", open_claim)


def what_was_held_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Run.hold

    def hold(self: Any, issue: int, fact: Any, why: Any = None) -> None:
        if fact != "resumable":
            real(self, issue, fact, why)

    patch.setattr(Run, "hold", hold)


def a_claim_ends_by_the_status_of_its_worker(patch: pytest.MonkeyPatch) -> None:
    real = Finalizing._close

    def close(self: Any, live: Any, status: Any, lock: Any) -> None:
        if status in (0, None):
            real(self, live, status, lock)
            return
        done = Closed("abandoned", None, status, "it failed", self._run.now)
        self._run.context.namespaces.close_claim(lock, live.claim, done)
        self._run.hold(live.issue, "resumable")

    patch.setattr(Finalizing, "_close", close)


def what_earlier_runs_left_stays_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reading, "_close_unready", lambda _self: None)


def what_was_left_is_not_closed_as_it_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciling, "by_state", lambda *_args, **_more: None)


def whatever_is_closed_satisfies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        verdicts, "satisfied", lambda blocker, _by=(): blocker.state != "open"
    )


def a_run_of_its_own_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Run, "look_at_standalone", lambda _self: None)


def who_is_skipped_keeps_its_slot(patch: pytest.MonkeyPatch) -> None:
    async def step(self: Any) -> None:
        await self._round()

    patch.setattr(Admissions, "step", step)


OF_EPICS: list[Mutation] = [
    the_controllers_lock_is_given_back_by_an_unlock,
    a_lock_that_was_handed_off_is_unlocked,
    an_issue_begins_as_the_snapshot_has_it,
    what_changed_begins_all_the_same,
    a_slot_is_free_once_the_claim_is_closed,
    there_is_one_slot_more,
    workers_are_interrupted_a_third_time,
    a_drain_interrupts_workers,
    the_grace_is_over_at_once,
    a_stop_closes_what_is_degraded,
    a_request_to_stop_another_run_counts,
    a_claim_is_closed_without_looking_for_its_process,
    what_others_had_is_not_looked_at_again,
    a_snapshot_that_was_refused_is_tried_again,
    the_graph_is_read_all_the_time,
    the_earlier_claim_is_closed_first,
    what_was_held_is_forgotten,
    a_claim_ends_by_the_status_of_its_worker,
    what_earlier_runs_left_stays_open,
    what_was_left_is_not_closed_as_it_ended,
    whatever_is_closed_satisfies,
    a_run_of_its_own_is_not_looked_for,
    who_is_skipped_keeps_its_slot,
]
