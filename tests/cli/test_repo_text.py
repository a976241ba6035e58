"""How the git status of a repository reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from forge_actors.cli.repo_text import age, branch, row, shown, state, sync
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.looking import JOB_ENDED, Look
from forge_actors.domain.projections import status_view

HEAD = "0123456789" * 4


def view(status: GitStatus | None, *, at: float = 100.0, now: float = 103.0) -> Any:
    look = None if status is None else Look("repo").sampled(0, status, at)
    made = status_view(look, now, 0, lambda seconds: f"at {seconds:g}")
    return msgspec.to_builtins(made)


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        (None, ("-", "-", "-", "-")),
        (GitStatus("main", HEAD), ("main", "clean", "-", "3s")),
        (GitStatus("main", HEAD, "up", 0, 0), ("main", "clean", "=", "3s")),
        (
            GitStatus("main", HEAD, "up", 2, 1, 1, 1, 1),
            ("main", "3 changed", "+2 -1", "3s"),
        ),
        (GitStatus(None, HEAD), ("(0123456789)", "clean", "-", "3s")),
        (GitStatus("main"), ("main", "clean", "-", "3s")),
        (
            GitStatus("main", HEAD, untracked=9, at_least=True),
            ("main", "9+ changed", "-", "3s"),
        ),
        (
            GitStatus("main", HEAD, conflicts=1, staged=2, operation="merge"),
            ("main", "conflict, merge", "-", "3s"),
        ),
    ],
)
def test_a_status_in_a_line(
    status: GitStatus | None, cells: tuple[str, str, str, str]
) -> None:
    found = view(status)
    assert (branch(found), state(found), sync(found), age(found)) == cells


def test_what_may_be_out_of_date_is_marked_and_says_why() -> None:
    look = Look("repo").sampled(0, GitStatus("main", HEAD), 100.0)
    marked = status_view(look.marked(JOB_ENDED, 101.0), 165.0, 0, str)
    found = msgspec.to_builtins(marked)
    assert age(found) == "1m 5s?"
    assert (found["stale"], found["reason"]) == (True, "a job ended")
    failed = status_view(look.failed(0, "git is gone", 102.0), 165.0, 0, str)
    assert failed.reason == "looking at it failed: git is gone"
    again = look.failed(0, "a", 102.0).failed(0, "b", 103.0)
    assert "2 times: B" in str(status_view(again, 165.0, 0, str, str.upper).reason)
    assert failed.clean, "what was known is still shown"


def test_jobs_that_ran_since_make_it_stale() -> None:
    look = Look("repo").sampled(0, GitStatus("main", HEAD), 100.0, fence=7)
    assert not status_view(look, 200.0, 7, str).stale
    assert status_view(look, 200.0, 8, str).reason is not None


def test_the_page_leaves_out_what_says_nothing() -> None:
    page = shown(
        {
            "name": "app",
            "enabled": True,
            "attention": 1,
            "attention_jobs": [{"id": "j1", "state": "orphaned", "finished_at": None}],
            "leases": [{"job": "j2", "fence": 3, "claims": ["write:path:a"]}],
            "status": view(GitStatus("main", HEAD, "up", 2, 0, staged=1)),
        }
    )
    assert page["git"] == "1 changed, 1 staged"
    assert page["upstream"] == "up +2 -0"
    assert page["looked_at"] == "at 100, 3s ago"
    assert page["leases"] == ["j2 write:path:a"]
    assert page["attention_jobs"] == ["j1 orphaned"]
    assert page["stale"] is None


def test_a_row_has_all_columns() -> None:
    cells = row(
        {
            "name": "app",
            "status": view(None),
            "waiting": 1,
            "running": 2,
            "enabled": False,
            "path": "/app",
        }
    )
    assert cells == ("app", "-", "-", "-", "-", "1", "2", "no", "/app")
