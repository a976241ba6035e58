"""What readers are shown of looks, approvals, schedules, EPICs and requests."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.epic.runs import with_jobs
from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.idempotency import HEADER, key_of
from forge_actors.domain.inbox import Facts, inbox
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.looking import Look
from forge_actors.domain.projections import StatusView, status_view
from forge_actors.domain.quarantine import named
from forge_actors.domain.webhooks import Answered, refusal


def moment(at: float) -> str:
    return f"at {at:.0f}"


def test_each_issue_of_a_run_is_shown_with_its_job() -> None:
    children = (
        ChildView(1, "a", "ready", ""),
        ChildView(2, "b", "ready", "", job="j0"),
        ChildView(3, "c", "ready", "", job="j9"),
    )
    view = EpicView("o/r", 1, "all", "running", children, {"ready": 3})
    shown = with_jobs(view, {1: "j1", 3: "j3"})
    assert [(child.number, child.job) for child in shown.children] == [
        (1, "j1"),
        (2, "j0"),
        (3, "j3"),
    ]
    assert (shown.title, shown.counts) == ("all", {"ready": 3})


STATUS = GitStatus("main", "0a1b", "origin/main", 1, 2, 3, 4, 5, 6, operation="rebase")


def test_a_repository_is_shown_as_it_was_seen_last() -> None:
    assert status_view(None, 5.0, 0, moment).reason == "it was not looked at yet"
    look = Look("r1", STATUS, 2.0, fence=3)
    assert status_view(look, 5.5, 3, moment) == StatusView(
        branch="main",
        head="0a1b",
        upstream="origin/main",
        ahead=1,
        behind=2,
        staged=3,
        unstaged=4,
        untracked=5,
        conflicts=6,
        at_least=False,
        clean=False,
        detached=False,
        unborn=False,
        operation="rebase",
        observed_at="at 2",
        age_ms=3500,
        stale=False,
        reason=None,
    )
    assert status_view(look, 1.0, 3, moment).age_ms == 0


@pytest.mark.parametrize(
    ("failures", "words"),
    [(1, "failed: no git"), (2, "failed 2 times: no git")],
)
def test_a_look_that_failed_says_how_often(failures: int, words: str) -> None:
    look = Look("r1", STATUS, 2.0, failures=failures, error="no GIT")
    view = status_view(look, 5.0, 0, moment, str.lower)
    assert (view.reason or "").endswith(words)
    assert (view.stale, view.branch) == (True, "main")
    bare = status_view(Look("r1", failures=1, error="x"), 5.0, 0, moment)
    assert (bare.branch, bare.observed_at, bool(bare.reason)) == (None, None, True)
    marked = Look("r1", STATUS, 2.0).marked("a job ended", 3.0)
    assert status_view(marked, 5.0, 0, moment).reason == "a job ended"


@pytest.mark.parametrize(
    ("text", "key"),
    [(None, None), ("a-1", "a-1"), ('"a-1"', "a-1"), ("x" * 128, "x" * 128)],
)
def test_a_key_of_a_request_may_be_quoted(text: str | None, key: str | None) -> None:
    assert key_of(text) == key


@pytest.mark.parametrize("text", ["", '"a', 'a"', "a b", "x" * 129, "é", "a\n"])
def test_a_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        key_of(text)
    assert caught.value.field == HEADER == "idempotency-key"


def test_an_approval_that_is_waited_for_says_what_would_be_done() -> None:
    job: dict[str, Any] = {
        "id": "j1",
        "name": "publish",
        "repo": "app",
        "state": "waiting_for_user",
        "queued_at": "q",
        "argv": ["make", "publish"],
        "cwd": "docs",
        "agent": None,
        "error": None,
        "waiting": {"kind": "approval", "detail": ""},
        "effects": {"held_back": ["push", "merge"], "began": "schedule night"},
    }
    [item] = inbox(
        Facts(asking=[job], logs=lambda key, number: f"{key}.{number}"),
        frozenset(),
        lambda _: job,
        10,
    ).items
    assert (item.id, item.kind, item.since) == ("approval:j1", "approval", "q")
    assert (item.repo, item.job) == ("app", "j1")
    assert item.evidence == {
        "effects": "push, merge",
        "began": "schedule night",
        "command": "make publish",
        "folder": "docs",
    }
    assert "push and merge" in item.says
    assert "schedule night" in item.says
    assert item.actions == [
        "forge-actors show j1",
        "forge-actors approve j1",
        "forge-actors deny j1",
    ]


def test_a_few_processes_are_named_by_their_pids() -> None:
    some = tuple(ProcessIdentity("b", pid, 1) for pid in range(1, 13))
    assert named(some[:1]) == "process 1"
    assert named(some[:2]) == "processes 1, 2"
    assert named(some).endswith(" more")


@pytest.mark.parametrize(
    ("status", "taken", "moved"),
    [
        *((200, True, False), (299, True, False), (300, False, True)),
        *((399, False, True), (400, False, False), (199, False, False)),
    ],
)
def test_an_answer_means_that_it_was_taken_or_says_why_not(
    status: int, taken: bool, moved: bool
) -> None:
    why = refusal(Answered(status))
    assert (why is None) is taken
    assert ("not followed" in (why or "")) is moved
    assert taken or str(status) in (why or "")
