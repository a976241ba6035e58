"""What a job may do to the outside, whoever asks for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.changes import JobApproved, JobEnded
from forge_actors.domain.effects import (
    EFFECTS,
    Approval,
    Authority,
    Effect,
    Submitter,
    again,
    allowed,
    approved,
    authority_of,
    beyond,
    held_back,
    shown,
)
from forge_actors.domain.ledger import Ledger
from tests.domain.making import make_job

NIGHTLY = "schedule:nightly"
some = st.lists(st.sampled_from(EFFECTS), unique=True, max_size=4).map(tuple)
authorities = st.none() | st.builds(
    Authority,
    automated=st.booleans(),
    began=st.just(NIGHTLY),
    declared=some,
    authorised=some,
    approvals=st.lists(
        st.builds(
            Approval,
            job=st.sampled_from(["old", "other"]),
            effects=some,
            by=st.just("somebody"),
            how=st.just("page"),
            at=st.just(1.0),
        ),
        max_size=2,
    ).map(tuple),
)


def may(authority: Authority | None, job: str) -> set[Effect]:
    found = allowed(authority, job)
    return set(EFFECTS) if found is None else set(found)


@given(authorities, some, some, st.sampled_from(["cli", NIGHTLY, "workflow:w"]))
def test_no_job_gives_another_one_more_than_it_has(
    parent: Authority | None,
    declared: tuple[Effect, ...],
    authorised: tuple[Effect, ...],
    origin: str,
) -> None:
    submitter = Submitter("old", parent)
    if beyond(authorised, submitter):
        return  # refused
    made = authority_of(origin, declared, authorised, submitter, ["true"])
    assert may(made, "new") <= may(parent, "old")


@given(authorities, authorities | st.just("nobody"))
def test_doing_it_again_widens_nothing(
    old: Authority | None, parent: Authority | str | None
) -> None:
    submitter = None if isinstance(parent, str) else Submitter("old", parent)
    made = again(old, "old", submitter, ["git", "push"])
    assert may(made, "new") <= may(old, "old")
    if submitter is not None:
        assert may(made, "new") <= may(submitter.authority, "old")


def test_a_persons_job_may_do_everything() -> None:
    assert authority_of("cli", (), (), None, ["git", "push"]) is None
    told = authority_of("cli", ("push",), (), None, ["git", "push"])
    assert told == Authority(declared=("push",))
    assert held_back(told, "job") == ()


@pytest.mark.parametrize("origin", [NIGHTLY, "workflow:w", "continuation:c"])
def test_an_automated_one_may_do_what_its_definition_says(origin: str) -> None:
    made = authority_of(origin, ("release", "push"), ("push",), None, ["true"])
    assert made == Authority(True, origin, ("push", "release"), ("push",))
    assert held_back(made, "job") == ("release",)


def test_an_approval_is_for_one_job() -> None:
    held = Authority(True, NIGHTLY, ("push",))
    approval = Approval("job", ("push",), "somebody", "page", 1.0)
    known = approved(held, approval)
    assert held_back(known, "job") == ()
    assert held_back(again(known, "job", None, ["true"]), "retry") == ("push",)


@pytest.mark.parametrize(
    ("command", "effects"),
    [
        ("git push origin", "push"),
        ("git -C x push", "push"),
        ("sh -c 'cd x && git push'", "push"),
        ("gh pr merge 5", "merge"),
        ("npm publish", "publish"),
        ("twine upload dist/*", "publish"),
        ("kubectl apply -f x", "deploy"),
        ("terraform destroy", "deploy"),
        ("psql -c 'DROP TABLE users'", "database"),
        ("psql -c 'delete from users'", "database"),
        ("git commit -m git push", "push"),
        ("MVN -q install deploy", "publish"),
        ("git commit -m x; echo push", ""),
        ("git stash; git pull", ""),
        ("make test", ""),
        ("dropdbx", ""),
    ],
)
def test_what_a_command_plainly_does_is_seen(command: str, effects: str) -> None:
    assert " ".join(shown(command.split(" "))) == effects


@pytest.mark.parametrize("word", ["git ", "mvn ", "gh pr ", "drop ", "npm  "])
def test_a_command_that_is_long_takes_no_longer_than_it_is(word: str) -> None:
    # Where each of these is looked at with all the others, it takes minutes.
    assert shown([word * 30_000, "x"]) == ()
    assert shown(["git " * 30_000, "push"]) == ("push",)


# -- in the ledger -----------------------------------------------------------------


def test_a_job_that_waits_for_approval_is_offered_once_it_is_approved() -> None:
    ledger = Ledger("repo")
    job = make_job("a", state="waiting_for_approval", admission_budget=5.0)
    # Also after a restart that comes later than somebody had to look at it.
    assert ledger.add(job, (), 100.0) == []
    assert ledger.offers(100.0) == ()
    assert ledger.waiting("a", 100.0).kind == "approval"
    [], refusal = ledger.answer("a", "x" * 64, "answered", 101.0)
    assert refusal is not None
    assert "waits for a person to allow" in refusal
    approval = Approval("a", ("push",), "somebody", "page", 102.0)
    [change], refusal = ledger.approve("a", approval, 102.0)
    assert refusal is None
    assert isinstance(change, JobApproved)
    assert (change.state, change.event.data["by"]) == ("queued", "somebody")
    assert (change.event.kind, change.event.repo) == ("job_queued", "repo")
    assert [offer.job for offer in ledger.offers(103.0)] == ["a"]
    assert ledger.approve("a", approval, 104.0)[0] == []


def test_it_is_approved_before_the_jobs_that_it_runs_after_have_ended() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", state="waiting_for_approval"), ("b",), 0.0)
    assert ledger.state_of("a", ledger.waiting("a", 0.0)) == "waiting_for_approval"
    approval = Approval("a", ("push",), "somebody", "page", 1.0)
    [change], _ = ledger.approve("a", approval, 1.0)
    assert isinstance(change, JobApproved)
    assert change.state == "waiting_for_dependency"
    assert ledger.offers(2.0) == ()
    ledger.dependency_ended("b", "succeeded", 3.0)
    assert [offer.job for offer in ledger.offers(3.0)] == ["a"]


def test_it_waits_on_when_the_jobs_that_it_runs_after_have_ended() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", state="waiting_for_approval"), ("b",), 0.0)
    assert ledger.dependency_ended("b", "succeeded", 1.0) == []
    assert ledger.offers(2.0) == ()
    approval = Approval("a", ("push",), "somebody", "page", 3.0)
    ledger.approve("a", approval, 3.0)
    assert [offer.job for offer in ledger.offers(3.0)] == ["a"]


def test_it_ends_when_a_person_says_no_or_the_job_before_it_fails() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", state="waiting_for_approval"), (), 0.0)
    ledger.add(make_job("c", state="waiting_for_approval"), ("b",), 0.0)
    [denied], _ = ledger.deny("a", "not on a Friday", 1.0)
    assert isinstance(denied, JobEnded)
    assert (denied.state, denied.error and denied.error.code) == ("failed", "DENIED")
    [blocked] = ledger.dependency_ended("b", "failed", 2.0)
    assert isinstance(blocked, JobEnded)
    assert blocked.error is not None
    assert blocked.error.code == "DEPENDENCY_BLOCKED"


def test_a_held_one_that_is_approved_is_still_held() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", state="waiting_for_approval"), (), 0.0)
    ledger.steer("a", "hold", 1.0)
    approval = Approval("a", ("push",), "somebody", "page", 2.0)
    ledger.approve("a", approval, 2.0)
    assert ledger.offers(3.0) == ()
    ledger.steer("a", "unhold", 4.0)
    assert [offer.job for offer in ledger.offers(4.0)] == ["a"]
