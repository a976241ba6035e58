"""Deliberate bugs in how the work of agents is checked and mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain import (
    blockers,
    in_line,
    job_queue,
    lanes,
    ledger,
    recovery,
    verifying,
)

if TYPE_CHECKING:
    import pytest

    from tests.simulation.mutations import Mutation


def work_is_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "decide", recovery._within_budget)
    patch.setattr(ledger, "decide", recovery._within_budget)


def a_lost_check_is_one_that_failed(patch: pytest.MonkeyPatch) -> None:
    codes = recovery._CHECK_FAILURES | {"WORKER_LOST", "INTERRUPTED"}
    patch.setattr(recovery, "_CHECK_FAILURES", codes)


def a_check_takes_the_tokens_of_its_agent(patch: pytest.MonkeyPatch) -> None:
    def go(job: Any, step: Any) -> None:
        job.verify, job.isolatable = step, False

    patch.setattr(ledger, "go_to_step", go)


def others_come_between_work_and_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(job_queue.JobQueue, "_keep_for_check", lambda *_: None)


def what_reserves_kept_claims_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    real = blockers.find_blocker

    def find(job: Any, leases: Any, reservations: Any, now: float) -> Any:
        plain = structs.replace(job, verify=None)
        return real(plain, leases, reservations, now)

    patch.setattr(lanes, "find_blocker", find)
    patch.setattr(in_line, "find_blocker", find)


def rounds_have_no_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "why_no_round", lambda *_: None)


def a_failure_that_is_alike_is_mended_again(patch: pytest.MonkeyPatch) -> None:
    real = verifying.why_no_round

    def why(verify: Any, report: Any) -> Any:
        return real(verify, structs.replace(report, likeness=None))

    patch.setattr(recovery, "why_no_round", why)


def the_step_is_not_saved(patch: pytest.MonkeyPatch) -> None:
    real = ledger.JobRequeued

    def requeued(*values: Any) -> Any:
        return real(*values[:9])

    patch.setattr(ledger, "JobRequeued", requeued)


def rounds_are_counted_twice(patch: pytest.MonkeyPatch) -> None:
    real = verifying.mend_next

    def mend(*values: Any) -> Any:
        step = real(*values)
        return structs.replace(step, round=step.round + 1)

    patch.setattr(recovery, "mend_next", mend)


def a_check_is_interrupted_for_good(patch: pytest.MonkeyPatch) -> None:
    """As the work of one that may not be repeated is."""
    real = recovery._decide

    def decide(job: Any, known: Any, backoff: Any) -> Any:
        replay = "never" if job.checking else job.replay
        return real(structs.replace(job, replay=replay), known, backoff)

    patch.setattr(recovery, "_decide", decide)


OF_STEPS: tuple[Mutation, ...] = (
    work_is_not_checked,
    a_lost_check_is_one_that_failed,
    a_check_takes_the_tokens_of_its_agent,
    others_come_between_work_and_check,
    what_reserves_kept_claims_waits_for_ever,
    rounds_have_no_bound,
    a_failure_that_is_alike_is_mended_again,
    the_step_is_not_saved,
    rounds_are_counted_twice,
    a_check_is_interrupted_for_good,
)
