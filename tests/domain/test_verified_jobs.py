"""Jobs whose work is checked, in their ledger: tokens, claims, what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.accounts import Account
from forge_actors.domain.agents import AgentReport, Usage
from forge_actors.domain.capacity import CHECK_TOKENS, provider_token, tokens_for
from forge_actors.domain.changes import AttemptUsed, JobRequeued
from forge_actors.domain.edits import Edit
from forge_actors.domain.jobs import AgentChoice
from forge_actors.domain.launch import Receipt
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.verifying import Verify
from tests.domain.making import IDENTITY, make_job

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job

AGENT = tokens_for("agent-run", "claude")
TOLD = AgentReport("claude", "s", ok=True, text="done", usage=Usage(10, 7))


def agent_job(name: str = "a", *claims: str, **fields: object) -> Job:
    job = make_job(name, *claims, kind="agent-run", provider="claude")
    job.agent, job.verify = "claude", Verify("make test")
    return structs.replace(job, **fields)


def ledger_of(*jobs: Job) -> Ledger:
    made = Ledger("repo", agent_problem=lambda agent: None)
    for job in jobs:
        made.add(job, (), 0.0)
    return made


def end(made: Ledger, job: str, code: int, now: float) -> list[Change]:
    held = made.jobs[job]
    assert held.fence is not None
    receipt = Receipt(
        job,
        held.attempt,
        held.fence,
        "exit",
        now,
        started_at=now,
        identity=IDENTITY,
        exit_code=code,
        agent=None if held.checking else TOLD,
    )
    changes, outcome = made.finish(job, held.attempt, receipt, None, now)
    assert outcome is not None
    return changes


def worked(*jobs: Job) -> Ledger:
    """The first of these has worked, and waits to be checked."""
    made = ledger_of(*jobs)
    made.dispatch(AGENT, 1.0)
    end(made, jobs[0].id, 0, 2.0)
    return made


def test_a_check_waits_for_tokens_of_its_own() -> None:
    made = ledger_of(agent_job())
    made.dispatch(AGENT, 1.0)
    changes = end(made, "a", 0, 2.0)
    assert [type(change) for change in changes[1:]] == [AttemptUsed, JobRequeued]
    assert made.leases == {}
    job = made.jobs["a"]
    assert (job.state, job.tokens) == ("waiting_for_heavy_check", CHECK_TOKENS)
    waiting = made.waiting("a", 3.0)
    assert waiting.kind == "token"
    assert made.state_of("a", waiting) == "waiting_for_heavy_check"
    assert [offer.tokens for offer in made.offers(3.0)] == [CHECK_TOKENS]
    assert made.announce(3.0) == []


def test_when_it_fails_the_agent_has_its_tokens_again() -> None:
    made = worked(agent_job())
    made.dispatch(CHECK_TOKENS, 3.0)
    changes = end(made, "a", 1, 4.0)
    # A check uses nothing, so nothing is saved of that.
    assert not any(isinstance(change, AttemptUsed) for change in changes)
    job = made.jobs["a"]
    assert (job.state, job.tokens, job.attempt) == ("queued", AGENT, 2)
    assert [offer.tokens for offer in made.offers(5.0)] == [AGENT]


def test_nobody_comes_into_the_checkout_between_work_and_check() -> None:
    other = make_job("b", "write:repo-content:*")
    made = worked(agent_job("a", "write:repo-content:*"), other)
    assert [offer.job for offer in made.offers(3.0)] == ["a"]
    assert made.waiting("b", 3.0).holders == ("a",)
    made.dispatch(CHECK_TOKENS, 3.0)
    assert made.offers(4.0) == ()
    end(made, "a", 0, 5.0)
    assert [offer.job for offer in made.offers(6.0)] == ["b"]


def test_one_that_needs_the_same_as_a_check_is_not_in_its_way() -> None:
    """It came first, waits for what the other one keeps, and needs the same tokens."""
    other = make_job("0", "write:repo-content:*", kind="check")
    made = Ledger("repo", agent_problem=lambda agent: None)
    made.add(agent_job("a", "write:repo-content:*"), (), 0.0)
    made.dispatch(AGENT, 1.0)
    made.add(other, (), 1.0)
    end(made, "a", 0, 2.0)
    assert [offer.job for offer in made.offers(3.0)] == ["a"]
    assert made.dispatch(CHECK_TOKENS, 3.0)[1] is made.jobs["a"]


def test_what_is_kept_for_a_check_is_free_when_the_job_has_ended() -> None:
    other = make_job("b", "write:repo-content:*")
    made = worked(agent_job("a", "write:repo-content:*"), other)
    made.cancel("a", 4.0)
    assert [offer.job for offer in made.offers(5.0)] == ["b"]
    made.cancel("b", 6.0)
    assert made.idle


def test_after_a_restart_it_is_kept_as_before() -> None:
    waiting = worked(agent_job("a", "write:repo-content:*")).jobs["a"]
    made = ledger_of(waiting, make_job("b", "write:repo-content:*"))
    assert [offer.job for offer in made.offers(3.0)] == ["a"]
    assert made.waiting("b", 3.0).holders == ("a",)


def test_while_it_mends_its_checkout_is_taken_as_by_any_attempt() -> None:
    other = make_job("b", "write:repo-content:*", priority=0)
    made = worked(agent_job("a", "write:repo-content:*"), other)
    made.dispatch(CHECK_TOKENS, 3.0)
    end(made, "a", 1, 4.0)
    assert {offer.job for offer in made.offers(5.0)} == {"a", "b"}


def test_a_closed_account_or_a_missing_program_keeps_nothing_from_being_checked() -> (
    None
):
    made = worked(agent_job())
    account = Account("claude", open=False, since=0.0, reason="usage")
    made.told_of_accounts([account], frozenset(), 3.0)
    assert [offer.tokens for offer in made.offers(3.0)] == [CHECK_TOKENS]
    gone = Ledger("repo", agent_problem=lambda agent: "it is not there")
    gone.add(worked(agent_job()).jobs["a"], (), 3.0)
    assert [offer.tokens for offer in gone.offers(3.0)] == [CHECK_TOKENS]


def test_another_agent_may_mend_but_not_check() -> None:
    choices = tuple(
        AgentChoice(name, name, name, "SIGTERM", 10.0) for name in ("claude", "codex")
    )
    made = worked(agent_job(choices=choices))
    account = Account("claude", open=False, since=0.0, reason="usage")
    assert made.told_of_accounts([account], frozenset(), 3.0) == []
    made.dispatch(CHECK_TOKENS, 3.0)
    end(made, "a", 1, 4.0)
    [change] = made.redirect_all(5.0)
    assert change.event is not None
    assert change.event.kind == "job_redirected"
    assert provider_token("codex") in made.jobs["a"].tokens


def test_a_held_check_says_so_and_keeps_its_state() -> None:
    made = worked(agent_job())
    made.steer("a", "hold", 3.0)
    assert made.offers(3.0) == ()
    waiting = made.waiting("a", 3.0)
    assert waiting.kind == "pause"
    assert made.state_of("a", waiting) == "waiting_for_heavy_check"
    made.steer("a", "unhold", 4.0)
    assert made.jobs["a"].state == "waiting_for_heavy_check"
    assert [offer.tokens for offer in made.offers(4.0)] == [CHECK_TOKENS]


def test_what_is_kept_for_a_check_is_what_the_job_claims_by_now() -> None:
    others = [
        make_job("b", "write:repo-content:*"),
        make_job("c", "write:build-cache:one"),
    ]
    made = worked(agent_job("a", "write:repo-content:*"), *others)
    edit = Edit(claims=others[1].claims)
    assert made.edit("a", edit, 3.0)[1] is None
    assert made.waiting("c", 3.0).holders == ("a",)
    assert {offer.job for offer in made.offers(3.0)} == {"a", "b"}


def test_a_queue_budget_is_for_the_start_and_not_for_the_check() -> None:
    made = worked(agent_job(queue_budget=5.0))
    assert made.next_deadline() is None
    assert made.expire(100.0) == []


def test_a_check_that_was_interrupted_still_keeps_the_checkout() -> None:
    other = make_job("b", "write:repo-content:*")
    made = worked(agent_job("a", "write:repo-content:*"), other)
    made.dispatch(CHECK_TOKENS, 3.0)
    job = made.jobs["a"]
    lost = Receipt("a", job.attempt, job.fence or 0, "lost", 4.0, identity=IDENTITY)
    _, outcome = made.finish("a", job.attempt, lost, None, 4.0)
    assert outcome is not None
    assert outcome.state == "waiting_for_retry"
    assert made.offers(4.5) == ()
    made.expire(100.0)
    assert job.state == "waiting_for_heavy_check"
    assert [offer.job for offer in made.offers(100.0)] == ["a"]
