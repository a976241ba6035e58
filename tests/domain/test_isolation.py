"""Isolation: an agent job gets a worktree where only a checkout is in its way."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.capacity import RepositoryLimits, tokens_for
from forge_actors.domain.changes import JobDispatched, JobIsolated
from forge_actors.domain.claims import Claim, conflict, parse_claim
from forge_actors.domain.isolation import (
    inherited,
    isolated,
    may_be_isolated,
    own_worktree,
    with_isolation,
)
from forge_actors.domain.jobs import Job, JobSpec
from forge_actors.domain.launch import Receipt
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.worktrees import Isolation

CONTENT = (Claim("write", "repo-content", "*"),)
AGENT = tokens_for("agent-run", None)


def job(job_id: str, claims: tuple[Claim, ...] = CONTENT, **changes: Any) -> Job:
    values: dict[str, Any] = {
        "id": job_id,
        "repo": "repo",
        "kind": "agent-run",
        "priority": 2,
        "claims": claims,
        "tokens": AGENT,
        "queued_at": 10.0,
        "isolatable": True,
    }
    return Job(**(values | changes))


def ledger(*jobs: Job, isolates: bool = True, workers: int = 8) -> Ledger:
    made = Ledger("repo", isolates=isolates, workers=workers)
    for each in jobs:
        made.add(each, (), 10.0)
    return made


def claims(*texts: str) -> tuple[Claim, ...]:
    return tuple(parse_claim(text, checkout="/c") for text in texts)


def end(made: Ledger, job_id: str, now: float) -> None:
    fence = made.jobs[job_id].fence
    assert fence is not None
    receipt = Receipt(job_id, 1, fence, "exit", now, exit_code=0)
    assert made.finish(job_id, 1, receipt, None, now)[1] is not None


def dispatch(made: Ledger, tokens: tuple[str, ...] = AGENT) -> list[Any]:
    changes, _ = made.dispatch(tokens, 20.0)
    return changes


def test_the_second_agent_job_is_isolated_and_says_from_whom() -> None:
    made = ledger(job("a"), job("b"), job("c"))
    assert [type(change) for change in dispatch(made)] == [JobDispatched]
    changes = dispatch(made)
    assert [type(change) for change in changes] == [JobIsolated, JobDispatched]
    change = changes[0]
    assert change.job == "b"
    assert change.claims == (own_worktree("b"),) == made.leases["b"]
    assert change.isolation == Isolation(instead_of=("a",), claims=CONTENT)
    assert change.event.kind == "job_auto_isolated"
    assert change.event.data["blockers"] == ("a",)
    assert changes[1].event.data["claims"] == (own_worktree("b"),)
    # And the next one as well, at once: it waits for nobody.
    assert [type(change) for change in dispatch(made)] == [JobIsolated, JobDispatched]


def test_one_that_is_alone_runs_in_the_checkout() -> None:
    made = ledger(job("a"))
    assert [type(change) for change in dispatch(made)] == [JobDispatched]
    assert made.leases["a"] == CONTENT


def test_it_is_not_isolated_before_it_could_start() -> None:
    made = ledger(job("a"), job("b"), workers=1)
    dispatch(made)
    assert dispatch(made) == []
    assert made.jobs["b"].claims == CONTENT
    waiting = made.waiting("b", 21.0)
    assert waiting.kind == "token"
    assert "a has its checkout, so it gets a worktree of its own" in waiting.note


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("exclusive:repo-content:*", "write:repo-content:*"),
        ("write:repo-content:*", "exclusive:repo-content:*"),
        ("write:git-ref:main", "write:repo-content:*"),
        ("write:release", "write:repo-content:*"),
        ("write:heavy-check:x", "write:heavy-check:x"),
    ],
)
def test_what_is_in_its_way_otherwise_is_waited_for(held: str, wanted: str) -> None:
    made = ledger(job("a", claims(held)), job("b", claims(wanted)))
    assert [type(change) for change in dispatch(made)] == [JobDispatched]
    assert dispatch(made) == []
    assert made.waiting("b", 21.0).kind == "claim"
    assert made.waiting("b", 21.0).holders == ("a",)


def test_one_that_only_reads_is_not_isolated_into_what_is_reserved() -> None:
    """What it claims in a worktree of its own is more than what it claimed before."""
    made = Ledger("repo", isolates=True, workers=8, overtake_after=5.0)
    made.add(job("h", isolatable=False), (), 10.0)
    assert [type(change) for change in dispatch(made)] == [JobDispatched]
    made.add(job("r", claims("write:release:1"), isolatable=False), (), 10.0)
    made.add(job("a", claims("read:repo-content:*"), queued_at=11.0), (), 11.0)
    assert dispatch(made) == []
    assert made.leases.keys() == {"h"}
    end(made, "h", 21.0)
    assert [change.job for change in dispatch(made)] == ["r"]


def test_one_other_claim_in_its_way_is_enough_to_wait() -> None:
    wanted = claims("write:repo-content:*", "write:heavy-check:x")
    made = ledger(job("a", claims("write:repo-content:*")), job("b", wanted))
    made.add(job("x", claims("write:heavy-check:x"), priority=0), (), 10.0)
    dispatch(made)
    dispatch(made)
    assert set(made.leases) == {"a", "x"}
    assert dispatch(made) == []
    end(made, "x", 30.0)
    [change, _] = dispatch(made)
    assert isinstance(change, JobIsolated)
    # What it needs beside the checkout it goes on to claim.
    assert set(change.claims) == {own_worktree("b"), *claims("write:heavy-check:x")}


def test_a_job_that_is_not_to_be_isolated_waits() -> None:
    made = ledger(job("a"), job("b", isolatable=False))
    dispatch(made)
    assert dispatch(made) == []


def test_the_setting_turns_it_off_and_on_while_jobs_wait() -> None:
    made = ledger(job("a"), job("b"), isolates=False)
    dispatch(made)
    assert dispatch(made) == []
    made.set_limits(RepositoryLimits(8, 1800.0, isolates=True))
    assert [type(change) for change in dispatch(made)] == [JobIsolated, JobDispatched]
    made.add(job("c"), (), 10.0)
    made.set_limits(RepositoryLimits(8, 1800.0, isolates=False))
    assert dispatch(made) == []


def test_who_waits_for_the_checkout_goes_on_waiting_for_who_has_it() -> None:
    command = job("z", kind="repository-command", tokens=("workers",), isolatable=False)
    made = ledger(job("a"), job("b"), command)
    dispatch(made)
    dispatch(made)
    assert made.dispatch(("workers",), 21.0)[1] is None
    assert made.waiting("z", 21.0).holders == ("a",)
    end(made, "a", 30.0)
    started = made.dispatch(("workers",), 31.0)[1]
    assert started is not None
    assert started.id == "z", "b is in a worktree"


def test_what_waited_for_a_reservation_of_one_that_is_isolated_goes_on() -> None:
    """It had reserved a checkout that it does not need any more."""
    wanted = claims("write:repo-content:*", "write:heavy-check:x")
    made = Ledger("repo", isolates=True, workers=8, overtake_after=5.0)
    made.add(job("x", claims("write:heavy-check:x")), (), 10.0)
    made.dispatch(AGENT, 11.0)
    made.add(job("old", wanted, queued_at=10.0), (), 11.0)
    assert made.dispatch(AGENT, 20.0)[1] is None
    late = job("late", kind="integration", tokens=("workers",), isolatable=False)
    late.queued_at = 20.0
    made.add(late, (), 20.0)
    assert made.dispatch(("workers",), 21.0)[1] is None, "its claim is reserved"
    holder = job("c", claims("read:repo-content:*"), tokens=("t",), queued_at=1.0)
    made.add(holder, (), 21.0)
    made.dispatch(("t",), 21.0)
    end(made, "x", 30.0)
    assert [type(change) for change in made.dispatch(AGENT, 31.0)[0]] == [
        JobIsolated,
        JobDispatched,
    ]
    end(made, "c", 32.0)
    started = made.dispatch(("workers",), 33.0)[1]
    assert started is not None
    assert started.id == "late"


@pytest.mark.parametrize(
    ("kind", "provider", "spec", "may"),
    [
        ("agent-run", None, JobSpec(("x",), "/"), True),
        ("dispatch-task", "codex", JobSpec(("x",), "/"), True),
        ("agent-run", "github-copilot", JobSpec(("x",), "/"), False),
        ("repository-command", None, JobSpec(("x",), "/"), False),
        ("check", None, JobSpec(("x",), "/"), False),
        ("agent-run", None, JobSpec(("x",), "/", in_checkout=True), False),
        ("agent-run", None, JobSpec(("x",), "/", isolation=Isolation()), False),
    ],
)
def test_which_jobs_may_be_isolated(
    kind: Any, provider: str | None, spec: JobSpec, may: bool
) -> None:
    made = job("a", kind=kind, tokens=tokens_for(kind, provider))
    assert may_be_isolated(made, spec) is may


def test_worktrees_of_two_jobs_do_not_conflict_and_with_no_checkout() -> None:
    one, two = isolated(CONTENT, "one"), isolated(CONTENT, "two")
    assert not conflict(one[0], two[0])
    assert conflict(one[0], one[0])
    assert not conflict(one[0], CONTENT[0])
    assert not conflict(one[0], Claim("exclusive", "repo-content", "*"))


def test_a_job_made_anew_has_its_own_worktree() -> None:
    assert inherited((own_worktree("old"),), "old", "new") == (own_worktree("new"),)
    assert inherited(CONTENT, "old", "new") == CONTENT


def test_one_that_can_have_no_worktree_waits_and_is_not_isolated_again() -> None:
    made = ledger(job("a"), job("b"))
    dispatch(made)
    [change, _] = dispatch(made)
    assert change.isolation.claims == CONTENT
    spec = with_isolation(JobSpec(("x",), "/c"), change.isolation)
    fence = made.jobs["b"].fence or 0
    receipt = Receipt("b", 1, fence, "spawn", 30.0, error="no", no_worktree=True)
    [again, back], outcome = made.finish("b", 1, receipt, None, 30.0, spec=spec)
    assert outcome is not None
    assert (again.job, again.state) == ("b", "queued")
    assert (back.claims, back.isolation) == (CONTENT, None)
    assert back.event.kind == "job_unisolated"
    assert back.event.data == {"reason": "no", "claims": CONTENT}
    waiting = made.jobs["b"]
    assert (waiting.claims, waiting.attempt, waiting.counted) == (CONTENT, 1, 0)
    assert dispatch(made) == []
    assert made.waiting("b", 31.0).holders == ("a",)
    spec = with_isolation(spec, None)
    assert not may_be_isolated(waiting, spec), "also after a restart"
    end(made, "a", 40.0)
    assert [type(change) for change in dispatch(made)] == [JobDispatched]
    assert made.leases["b"] == CONTENT


def test_one_that_was_to_have_a_worktree_fails_without_it() -> None:
    made = ledger(job("a", (own_worktree("a"),)))
    dispatch(made)
    spec = JobSpec(("x",), "/c", isolation=Isolation())
    receipt = Receipt("a", 1, 1, "spawn", 30.0, error="no", no_worktree=True)
    _, outcome = made.finish("a", 1, receipt, None, 30.0, spec=spec)
    assert outcome is not None
    assert outcome.state == "failed"
