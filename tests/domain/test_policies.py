"""Policies: what is let in, what is started, and how one becomes another."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.errors import (
    AdmissionBlocked,
    ForgeError,
    InvalidInput,
    NotConverging,
    Outdated,
)
from forge_actors.domain.jobs import Job
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.policies import (
    MAX_REASON,
    MODES,
    Policy,
    PolicyRequest,
    changed,
    check_job,
    check_request,
    check_work,
    ended,
    held_schedules,
    in_force,
)
from tests.domain.making import (
    AT_ONCE,
    INTERRUPTED,
    dispatch_any,
    end_attempt,
    make_job,
)

WORK = "wf-1"
EXCLUSIVE = Policy("exclusive", WORK, "release", 5.0, None, 3)
CONVERGENCE = Policy("convergence", None, "", 5.0, None, 3)
MAINTENANCE = Policy("maintenance", None, "", 5.0, 90.0, 3)


def job(name: str, *claims: str, work: str | None = None, **fields: Any) -> Job:
    return structs.replace(make_job(name, *claims, **fields), work=work)


def offered(ledger: Ledger, now: float) -> set[str]:
    return {offer.job for offer in ledger.offers(now)}


# -- from one to another ---------------------------------------------------------------


def test_another_policy_has_the_next_revision_and_its_own_beginning() -> None:
    found = changed(EXCLUSIVE, Policy("convergence", reason="x"), 9.0)
    assert found == Policy("convergence", None, "x", 9.0, None, 4)


def test_the_same_mode_for_the_same_work_began_when_it_began() -> None:
    longer = Policy("exclusive", WORK, "release", until=50.0)
    assert changed(EXCLUSIVE, longer, 9.0) == structs.replace(
        EXCLUSIVE, until=50.0, revision=4
    )
    other = changed(EXCLUSIVE, Policy("exclusive", "wf-2"), 9.0)
    assert isinstance(other, Policy)
    assert other.since == 9.0
    # What is so already changes nothing.
    assert changed(EXCLUSIVE, Policy("exclusive", WORK, "release"), 9.0) == EXCLUSIVE


@pytest.mark.parametrize(("revision", "good"), [(None, True), (3, True), (2, False)])
def test_only_the_revision_that_was_read_is_changed(
    revision: int | None, *, good: bool
) -> None:
    found = changed(EXCLUSIVE, Policy(), 9.0, revision=revision)
    assert isinstance(found, Policy if good else Outdated)
    # Also where nothing would change.
    same = Policy("exclusive", WORK, "release")
    found = changed(EXCLUSIVE, same, 9.0, revision=revision)
    assert isinstance(found, Policy if good else Outdated)


def test_only_what_converges_is_narrowed_to_one_work() -> None:
    wanted = Policy("exclusive", WORK, "now")
    narrowed = changed(CONVERGENCE, wanted, 9.0, narrows=True)
    assert narrowed == Policy("exclusive", WORK, "now", 9.0, None, 4)
    # Again it is the same one, whatever it was read as.
    assert isinstance(narrowed, Policy)
    assert changed(narrowed, wanted, 10.0, revision=3, narrows=True) == narrowed
    stale = changed(CONVERGENCE, wanted, 9.0, revision=2, narrows=True)
    assert isinstance(stale, Outdated)
    other = Policy("exclusive", "wf-2", revision=3)
    for known in (Policy(), MAINTENANCE, other):
        refused = changed(known, wanted, 9.0, narrows=True)
        assert isinstance(refused, NotConverging)
        assert refused.code == "WORK_ADMISSION_TRANSITION_REQUIRES_CONVERGENCE"
        assert str(refused).startswith(refused.code)


def test_a_policy_is_over_at_its_last_moment() -> None:
    assert [MAINTENANCE.is_over(wall) for wall in (89.9, 90.0)] == [False, True]
    assert not EXCLUSIVE.is_over(1e12)
    assert ended(MAINTENANCE, 90.0) == Policy(since=90.0, revision=4)


WRONG = [
    (PolicyRequest("exclusive"), "work"),
    (PolicyRequest("convergence", work=WORK), "work"),
    (PolicyRequest("exclusive", work=""), "work"),
    (PolicyRequest("exclusive", work="a\x1bb"), "work"),
    (PolicyRequest("exclusive", work="x" * 201), "work"),
    (PolicyRequest("normal", until="2100-01-01"), "until"),
    (PolicyRequest("normal", for_="2h"), "until"),
    (PolicyRequest("maintenance", until="2100-01-01", for_="2h"), "for"),
    (PolicyRequest("maintenance", reason="x" * (MAX_REASON + 1)), "reason"),
    (PolicyRequest("maintenance", reason="a\nb"), "reason"),
]


@pytest.mark.parametrize(("request_", "field"), WRONG)
def test_a_request_that_makes_no_sense_is_refused(
    request_: PolicyRequest, field: str
) -> None:
    with pytest.raises(InvalidInput) as told:
        check_request(request_)
    assert told.value.field == field


def test_a_request_that_makes_sense_is_not() -> None:
    check_request(PolicyRequest("exclusive", work="x" * 200, for_=60))
    check_request(PolicyRequest("maintenance", reason="x" * MAX_REASON))
    check_request(PolicyRequest("normal", reason="done"))


# -- what is let in --------------------------------------------------------------------


def outcome(check: Any, *args: Any, **options: Any) -> str | None:
    try:
        check(*args, **options)
    except AdmissionBlocked as error:
        return error.code
    return None


CONVERGES = "WORK_ADMISSION_BLOCKED:CONVERGENCE"
ALONE = "WORK_ADMISSION_BLOCKED:P0_EXCLUSIVE_WORK"


@pytest.mark.parametrize(
    ("policy", "work", "child", "code"),
    [
        (CONVERGENCE, None, False, CONVERGES),
        (CONVERGENCE, None, True, None),
        (CONVERGENCE, WORK, False, None),
        # These wait in the queue.
        (EXCLUSIVE, None, False, None),
        (MAINTENANCE, None, False, None),
    ],
)
def test_which_jobs_are_let_in(
    policy: Policy, work: str | None, code: str | None, *, child: bool
) -> None:
    assert outcome(check_job, policy, work, child=child) == code


@pytest.mark.parametrize(
    ("policy", "create", "go_on"),
    [
        (None, None, None),
        (MAINTENANCE, None, None),
        (CONVERGENCE, CONVERGES, None),
        (EXCLUSIVE, ALONE, ALONE),
    ],
)
def test_which_works_are_begun_and_go_on(
    policy: Policy | None, create: str | None, go_on: str | None
) -> None:
    assert outcome(check_work, policy, "create", "wf-2") == create
    assert outcome(check_work, policy, "continue", "wf-2") == go_on
    assert outcome(check_work, policy, "create", None) == create
    if policy is EXCLUSIVE:
        assert outcome(check_work, policy, "create", WORK) is None
        assert outcome(check_work, policy, "continue", WORK) is None


def test_schedules_wait_under_all_but_the_normal_one() -> None:
    for mode in MODES:
        policy = Policy(mode, WORK if mode == "exclusive" else None)
        assert (held_schedules(in_force(policy)) is None) == (mode == "normal")
        assert (in_force(policy) is None) == (mode == "normal")


# -- what is started -------------------------------------------------------------------


def test_only_jobs_of_the_one_work_are_offered() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(job("before"), (), 0.0)
    ledger.add(job("mine", work=WORK, priority=4), (), 0.0)
    ledger.add(job("theirs", work="wf-2"), (), 0.0)
    assert ledger.told_of_policy(EXCLUSIVE, 6.0) == []
    ledger.add(job("later"), (), 7.0)
    assert offered(ledger, 8.0) == {"mine"}
    assert dispatch_any(ledger, 8.0) == "mine"
    assert offered(ledger, 8.0) == set()
    waiting = ledger.waiting("theirs", 8.0)
    assert (waiting.kind, waiting.since) == ("policy", 5.0)
    assert waiting.detail == (
        "only jobs of work wf-1 are started (release);"
        " forge-actors policy normal ends that"
    )
    assert ledger.state_of("theirs", waiting) == "queued"
    assert ledger.announce(9.0) == []
    ledger.told_of_policy(None, 10.0)
    assert dispatch_any(ledger, 10.0) == "before"
    assert [dispatch_any(ledger, 10.0) for _ in "ab"] == ["later", "theirs"]


def test_nothing_is_offered_during_maintenance() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(job("a", work=WORK), (), 0.0)
    ledger.told_of_policy(MAINTENANCE, 6.0)
    ledger.add(job("b"), (), 7.0)
    assert offered(ledger, 8.0) == set()
    assert ledger.dispatch(("workers",), 8.0) == ([], None)
    waiting = ledger.waiting("b", 8.0)
    assert (waiting.kind, waiting.until) == ("policy", 90.0)
    # It does not end a pause, nor a pause it.
    ledger.pause(9.0, jobs=False)
    assert ledger.waiting("b", 9.0).kind == "pause"
    ledger.told_of_policy(None, 10.0)
    assert offered(ledger, 10.0) == set()
    ledger.told_of_policy(MAINTENANCE, 11.0)
    ledger.resume(12.0, jobs=False)
    assert offered(ledger, 12.0) == set()
    ledger.told_of_policy(None, 13.0)
    assert dispatch_any(ledger, 13.0) == "a"


@pytest.mark.parametrize("policy", [EXCLUSIVE, MAINTENANCE])
def test_a_queue_budget_stands_still_while_a_policy_holds_back(policy: Policy) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(job("a", queue_budget=10.0), (), 0.0)
    assert ledger.next_deadline() == 10.0
    ledger.told_of_policy(policy, 4.0)
    ledger.add(job("b", queue_budget=10.0), (), 5.0)
    assert ledger.next_deadline() is None
    assert ledger.expire(1000.0) == []
    ledger.told_of_policy(None, 1000.0)
    assert ledger.next_deadline() == 1006.0


def test_what_is_held_asks_or_runs_after_others_stays_so_when_it_ends() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(job("held"), (), 0.0)
    ledger.steer("held", "hold", 0.0)
    ledger.add(job("after", state="waiting_for_dependency"), ("other",), 0.0)
    ledger.add(job("asks", state="waiting_for_approval", attempt=1), (), 0.0)
    for policy in (EXCLUSIVE, MAINTENANCE, None):
        ledger.told_of_policy(policy, 1.0)
        kinds = [ledger.waiting(name, 1.0).kind for name in ("held", "after", "asks")]
        assert kinds == ["pause", "dependency", "approval"]
        assert offered(ledger, 1.0) == set()


def test_what_becomes_due_while_it_is_kept_out_waits_on() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(job("after", state="waiting_for_dependency"), ("other",), 0.0)
    ledger.add(job("held"), (), 0.0)
    ledger.steer("held", "hold", 0.0)
    ledger.add(job("runs", replay="safe"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "runs"
    ledger.told_of_policy(EXCLUSIVE, 1.0)
    ledger.dependency_ended("other", "succeeded", 2.0)
    ledger.steer("held", "unhold", 2.0)
    _, found = end_attempt(ledger, "runs", 1, INTERRUPTED, None, 2.0)
    assert found is not None
    assert found.again
    assert offered(ledger, 3.0) == set()
    for name in ("after", "held", "runs"):
        assert ledger.waiting(name, 3.0).kind == "policy"
    ledger.told_of_policy(None, 4.0)
    assert {dispatch_any(ledger, 4.0) for _ in range(4)} == {
        *("after", "held", "runs", None)
    }


def test_what_is_kept_out_reserves_nothing() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE, overtake_after=10.0)
    ledger.add(job("old", "write:path:a"), (), 0.0)
    ledger.told_of_policy(EXCLUSIVE, 1.0)
    ledger.add(job("mine", "write:path:a", work=WORK), (), 50.0)
    assert dispatch_any(ledger, 100.0) == "mine"


def test_a_job_that_lacks_its_agent_is_asked_for_it_again() -> None:
    missing: dict[str, str] = {"bot": "it is not installed"}
    ledger = Ledger("repo", backoff=AT_ONCE, agent_problem=missing.get)
    ledger.add(structs.replace(job("a"), agent="bot"), (), 0.0)
    assert ledger.waiting("a", 0.0).kind == "agent"
    ledger.told_of_policy(EXCLUSIVE, 1.0)
    assert ledger.waiting("a", 1.0).kind == "policy"
    missing.clear()
    ledger.announce(2.0)
    assert offered(ledger, 2.0) == set()
    ledger.told_of_policy(None, 3.0)
    assert offered(ledger, 3.0) == {"a"}


def test_the_error_of_a_refusal_is_one_of_ours() -> None:
    assert issubclass(AdmissionBlocked, ForgeError)
    error = AdmissionBlocked("X", "y")
    assert (error.code, str(error)) == (
        *("WORK_ADMISSION_BLOCKED:X", "WORK_ADMISSION_BLOCKED:X: y"),
    )
