"""What readers see of a job's agent, of its effects, and of the clean-up."""

from __future__ import annotations

from typing import Any

import msgspec

from forge_actors.domain.agent_views import AgentView, agent_view
from forge_actors.domain.agents import AgentReport, LimitHit, Usage
from forge_actors.domain.answers import answer_to, answered, approved
from forge_actors.domain.changes import JobAnswered, JobApproved
from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.effect_views import (
    UNSEEN,
    ApprovalView,
    EffectsView,
    asks_for,
    effects_view,
    kept_from,
)
from forge_actors.domain.effects import Approval, Authority, RefusedEffect
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import AgentChoice, AgentSpec, JobSpec, redirected
from forge_actors.domain.launch import Receipt
from forge_actors.domain.maintenance import ClassVisit, CleanRun, Policy
from forge_actors.domain.maintenance_view import (
    maintenance_view,
    run_from,
    visits_from,
)
from forge_actors.domain.redaction import private_roots

SECRET = "ghp_" + "a1B2" * 9


def moment(at: float) -> str:
    return f"at {at:.0f}"


def test_an_agent_that_told_nothing_has_its_name_and_what_it_goes_on_with() -> None:
    assert agent_view("claude", None, moment, "j1") == AgentView(
        "claude", continues="j1"
    )


def test_an_agent_is_shown_as_its_last_attempt_told_without_secrets() -> None:
    told = AgentReport(
        "claude",
        session="s",
        resumed=True,
        anew=True,
        version="2.1",
        ok=False,
        text=f"said {SECRET}",
        usage=Usage(1, 2),
        limit=LimitHit("usage", retry_at=60.0),
        question=f"which {SECRET}?",
    )
    view = agent_view("codex", told, moment, "j1")
    assert SECRET not in view.text
    assert SECRET not in (view.question or "")
    assert view.text.startswith("said ")
    assert (view.question or "").startswith("which ")
    assert view == AgentView(
        "codex",
        session="s",
        resumed=True,
        anew=True,
        continues="j1",
        version="2.1",
        ok=False,
        text=view.text,
        usage=Usage(1, 2),
        limit="usage",
        until="at 60",
        question=view.question,
    )
    plain = agent_view("codex", AgentReport("codex", limit=LimitHit("auth")), moment)
    assert (plain.limit, plain.until, plain.question) == ("auth", None, None)


def authority(**fields: Any) -> Authority:
    about = {"automated": True, "began": "schedule night", "declared": ("push",)}
    return Authority(**{**about, **fields})


def test_effects_are_those_of_this_job_with_who_allowed_them() -> None:
    approvals = (
        Approval("j1", ("push",), "eva", "cli", 5.0),
        Approval("j2", ("push",), "jan", "cli", 6.0),
    )
    receipt = Receipt(
        "j1", 1, 1, "exit", 9.0, refused=(RefusedEffect("push", "git push"),)
    )
    view = effects_view(authority(approvals=approvals), "j1", receipt, moment)
    assert view == EffectsView(
        automated=True,
        began="schedule night",
        declared=["push"],
        authorised=[],
        approvals=[ApprovalView(["push"], "eva", "cli", "at 5")],
        held_back=[],
        refused=["git push (push)"],
        unseen=UNSEEN,
    )
    assert kept_from(view) == " It was kept from git push (push)."
    assert asks_for("j1", view) == ""
    waiting = effects_view(authority(authorised=("merge",)), "j1", None, moment)
    assert waiting is not None
    assert (waiting.authorised, waiting.held_back) == (["merge"], ["push"])
    assert (waiting.refused, waiting.approvals) == ([], [])
    asked = asks_for("j1", waiting)
    assert asked.startswith("push: schedule night began it")
    assert "approve j1" in asked
    assert "deny j1" in asked


def test_a_job_of_a_person_has_no_effects_to_show() -> None:
    assert effects_view(None, "j1", None, moment) is None
    assert (asks_for("j1", None), kept_from(None)) == ("", "")
    view = effects_view(Authority(declared=("push",)), "j1", None, moment)
    assert view is not None
    assert (view.automated, view.began, view.unseen) == (False, None, None)
    assert kept_from(view) == ""


def test_another_of_its_agents_runs_as_that_one_is_started_and_stopped() -> None:
    spec = JobSpec(
        ("claude", "-p", "x"), "/w", grace=3.0, agent=AgentSpec("claude", "d0")
    )
    choice = AgentChoice("codex", "openai", "/bin/codex", "SIGINT", 7.0)
    other = redirected(spec, choice)
    assert other.argv == ("/bin/codex", "-p", "x")
    assert (other.stop_signal, other.grace, other.cwd) == ("SIGINT", 7.0, "/w")
    assert other.agent == AgentSpec("codex", "d0")


def test_an_answer_is_for_the_job_and_the_attempt_that_asked() -> None:
    spec = JobSpec(("claude",), "/w", agent=AgentSpec("claude", "d0"))
    event = Event("job_answered", 1.0, "r", "j1")
    told = answered(spec, JobAnswered("j1", "d1", event, attempt=2)).agent
    assert told is not None
    assert (told.name, told.prompt) == ("claude", "d0")
    assert answer_to(told, "j1") == answer_to(told, "j1", since=2) == "d1"
    assert answer_to(told, "j1", since=3) is None
    assert answer_to(told, "j2") is None
    assert answer_to(AgentSpec("claude", "d0"), "j1") is None


def test_an_approval_comes_to_those_that_were_given_before() -> None:
    event = Event("job_approved", 1.0, "r", "j1")
    first = Approval("j1", ("push",), "eva", "cli", 5.0)
    second = Approval("j1", ("merge",), "eva", "cli", 6.0)
    spec = JobSpec(("make",), "/w")
    for approval in (first, second):
        spec = approved(spec, JobApproved("j1", approval, event, "queued"))
    assert spec.authority == Authority(approvals=(first, second))
    assert spec.argv == ("make",)


RUN = CleanRun(10.0, 20.0, runs=4, failures=2, in_a_row=1, removed=5, bytes=600)


def test_the_clean_up_is_shown_without_a_run_and_without_settings() -> None:
    view = maintenance_view(None, None, {}, (), moment)
    assert view == {
        "enabled": None,
        "period": None,
        "runs": 0,
        "last": None,
        "problem": None,
        "classes": {},
    }


def test_the_clean_up_is_shown_with_what_its_classes_came_to() -> None:
    roots = private_roots(["/home/eva"], [], [])
    error = f"/home/eva/x: {SECRET}"
    report = ClassReport(
        "logs",
        removed=3,
        bytes=200,
        skipped={"kept": 1},
        failed=2,
        error=error,
        size=900,
        cursor="c",
    )
    visits = {
        "logs": ClassVisit("logs", 30.0, report=report),
        "jobs": ClassVisit("jobs", 40.0, report=ClassReport("jobs")),
        "worktrees": ClassVisit("worktrees", 50.0),
    }
    run = msgspec.structs.replace(RUN, error=error)
    view = maintenance_view(Policy(period=9.0), run, visits, roots, moment)
    classes: Any = view.pop("classes")
    last: Any = view.pop("last")
    for told in (classes["logs"].pop("error"), last.pop("error")):
        assert told.startswith("<home>/x: ")
        assert SECRET not in told
    assert view == {
        "enabled": True,
        "period": 9.0,
        "runs": 4,
        "failures": 2,
        "failures_in_a_row": 1,
        "removed": 5,
        "bytes": 600,
        "problem": None,
    }
    assert last == {"began_at": "at 10", "ended_at": "at 20"}
    assert classes["logs"] == {
        "visited_at": "at 30",
        "ended": True,
        "removed": 3,
        "bytes": 200,
        "skipped": {"kept": 1},
        "failed": 2,
        "size": 900,
        "more": True,
    }
    assert (classes["jobs"]["error"], classes["jobs"]["more"]) == (None, False)
    assert classes["worktrees"] == {"visited_at": "at 50", "ended": False}


def test_a_clean_up_that_fails_for_ever_is_a_problem_without_secrets() -> None:
    roots = private_roots(["/home/eva"], [], [])
    failing = msgspec.structs.replace(
        RUN, ended_at=None, in_a_row=90, error=f"/home/eva {SECRET}"
    )
    view: Any = maintenance_view(Policy(), failing, {}, roots, moment)
    assert view["last"]["ended_at"] is None
    assert view["failures_in_a_row"] == 89
    assert "89 times" in view["problem"]
    assert "<home>" in view["problem"]
    assert SECRET not in view["problem"]
    why = f"/home/eva {SECRET}"
    view = maintenance_view(Policy(), None, {}, roots, moment, given_up=why)
    assert "does not run any more: <home>" in view["problem"]
    assert SECRET not in view["problem"]


def test_what_is_stored_of_the_clean_up_is_read_by_column() -> None:
    assert run_from([]) is None
    row = (10.0, 20.0, 5.0, 4, 2, 1, 5, 600, None, 1, None)
    assert run_from([row]) == msgspec.structs.replace(RUN, looked_at=5.0, more=True)
    report = ClassReport("logs", removed=3)
    rows = [
        ("logs", 30.0, "c", msgspec.json.encode(report), 900),
        ("jobs", 40.0, None, None, None),
    ]
    assert dict(visits_from(rows)) == {
        "logs": ClassVisit("logs", 30.0, "c", report, 900),
        "jobs": ClassVisit("jobs", 40.0),
    }
