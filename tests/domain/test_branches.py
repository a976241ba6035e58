"""Branches and worktrees: their names, what git takes, and what readers see."""

from __future__ import annotations

import pytest

from forge_actors.domain.branches import (
    MAX_BRANCH,
    BranchNames,
    base_problem,
    branch_for,
    branch_problem,
    check_pattern,
    fit,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repository_settings import (
    MAX_SETUP,
    RepositorySettings,
    WorktreeTable,
)
from forge_actors.domain.worktrees import Isolation, Worktree, worktree_view

NAMES = BranchNames("0a1b", "app", "unit-tests", "2026-01-31")


def test_a_pattern_is_filled_with_the_names_of_the_job() -> None:
    assert branch_for("forge/{job}", NAMES) == "forge/0a1b"
    assert branch_for("{repo}/{date}-{name}", NAMES) == "app/2026-01-31-unit-tests"
    assert check_pattern("{repo}/{job}", field="branch") == "{repo}/{job}"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("{job}/{x}", r"\{x\}"), ("a b{job}", "' '"), ("x" * 200 + "{job}", "200")],
)
def test_a_pattern_that_makes_no_branch_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        check_pattern(pattern, field="worktree.branch")
    assert caught.value.field == "worktree.branch"
    if "{x}" in pattern:
        assert caught.value.allowed == ("{job}", "{repo}", "{name}", "{date}")


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("unit tests", "unit-tests"),
        (None, "job"),
        ("", "job"),
        ("..", "job"),
        ("-a-", "a"),
        ("a..b", "a-b"),
        ("a.b", "a.b"),
        ("x.lock", "x"),
        ("x" * 120, "x" * 100),
        ("x" * 99 + ".y", "x" * 99),
    ],
)
def test_the_name_of_a_job_becomes_a_part_of_a_branch(
    name: str | None, fitting: str
) -> None:
    assert fit(name) == fitting
    assert branch_problem(fitting) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "1 to 200"),
        ("x" * (MAX_BRANCH + 1), "1 to 200"),
        ("a~b", "'~'"),
        ("a//b", "'//'"),
        ("a\x7fb", "x7f"),
        ("-a", "begins with -"),
        ("/a", "begins with -"),
        ("a/", "begins with -"),
        ("a.", "begins with -"),
        ("HEAD", "begins with -"),
        ("a/.b", "'.b'"),
        ("a.lock/b", "'a.lock'"),
        ("x" * MAX_BRANCH, None),
        ("a/b-c_d.e", None),
    ],
)
def test_what_git_takes_as_a_branch(name: str, problem: str | None) -> None:
    told = branch_problem(name)
    assert told is None if problem is None else problem in (told or "")


@pytest.mark.parametrize(
    ("base", "fine"),
    [
        ("main~2", True),
        ("x" * MAX_BRANCH, True),
        ("a b", True),
        ("", False),
        ("x" * (MAX_BRANCH + 1), False),
        ("-a", False),
        ("a\x1f", False),
        ("a\x7f", False),
    ],
)
def test_what_is_surely_no_commit(base: str, fine: bool) -> None:
    assert (base_problem(base) is None) is fine


def test_a_worktree_is_shown_before_and_after_it_is_made() -> None:
    wanted = Isolation(base="main", of="j0", instead_of=("j1",))
    assert worktree_view(wanted, None, "/home") == {
        "state": "wanted",
        "base": "main",
        "of": "j0",
        "instead_of": ["j1"],
    }
    made = Worktree(
        *("j2", "r1", "worktrees/j2", "forge/j2", 1.0, "ready", "dev", "0a1b"),
        kept=True,
        reason="it has changes",
    )
    assert worktree_view(Isolation(base="main"), made, "/home") == {
        "state": "ready",
        "path": "/home/worktrees/j2",
        "branch": "forge/j2",
        "base": "dev",
        "base_commit": "0a1b",
        "kept": True,
        "reason": "it has changes",
    }
    plain = Worktree("j2", "r1", "w", "b", 1.0)
    assert worktree_view(Isolation(), plain, "/home") == {
        "state": "making",
        "path": "/home/w",
        "branch": "b",
    }


@pytest.mark.parametrize(
    ("table", "field"),
    [
        (WorktreeTable(branch="{x}"), "worktree.branch"),
        (WorktreeTable(setup_timeout=0.9), "worktree.setup_timeout"),
        (WorktreeTable(setup_timeout="25h"), "worktree.setup_timeout"),
        (WorktreeTable(setup_timeout="soon"), "worktree.setup_timeout"),
        (WorktreeTable(setup=["make"] * (MAX_SETUP + 1)), "worktree.setup"),
        (WorktreeTable(setup=["make", " "]), "worktree.setup[1]"),
        (WorktreeTable(setup=["a\0b"]), "worktree.setup[0]"),
    ],
)
def test_settings_of_a_repository_are_bounded(table: WorktreeTable, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        RepositorySettings(table)
    assert caught.value.field == field


def test_settings_of_a_repository_reach_to_their_bounds() -> None:
    settings = RepositorySettings(WorktreeTable(["make"] * MAX_SETUP, "1d", "x/{job}"))
    assert settings.setup == ("make",) * MAX_SETUP
    assert settings.setup_seconds == 86_400
    assert RepositorySettings(WorktreeTable(setup_timeout=1.0)).setup_seconds == 1
    assert RepositorySettings().setup_seconds == 600
