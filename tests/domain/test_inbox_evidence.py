"""Each kind of item that follows from what is stored: its id, evidence and actions."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.agents import Budget
from forge_actors.domain.budget_items import SpentBudgetView, spent_items, spent_view
from forge_actors.domain.day_budgets import SpentBudget
from forge_actors.domain.inbox import (
    MAX_COMMAND,
    Facts,
    Inbox,
    Item,
    Mark,
    inbox,
    shown_command,
)

SECRET = "ghp_" + "a1B2" * 9


def job(id_: str = "j1", **fields: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "name": "night",
        "repo": "app",
        "attempt": 2,
        "error": {"code": "QUESTION", "message": "Which?"},
        "exit_code": None,
        "signal": None,
        "queued_at": "q",
        "finished_at": "f",
        "worktree": None,
        "agent": None,
        "cwd": None,
        "argv": ["true"],
        **fields,
    }


def logs(name: str, attempt: int) -> str:
    return f"/logs/{name}.{attempt}"


def items(**facts: Any) -> list[Item]:
    return inbox(Facts(logs=logs, **facts), (), job).items


def only(**facts: Any) -> Item:
    [item] = items(**facts)
    return item


def test_a_question_is_answered_approved_or_denied() -> None:
    item = only(asking=[job(worktree={"path": "/w"})])
    assert item == Item(
        id="question:j1:2",
        kind="question",
        says="job j1 (night) asks: Which?",
        since="q",
        repo="app",
        job="j1",
        evidence={"attempt": "2", "worktree": "/w"},
        actions=[
            'forge-actors answer j1 "..."',
            "forge-actors approve j1",
            "forge-actors deny j1",
        ],
    )
    for tree in (None, {"problem": "it is gone"}):
        bare = only(asking=[job(error=None, name=None, worktree=tree)])
        assert bare.says.startswith("job j1 asks: ")
        assert bare.evidence == {"attempt": "2"}


def test_what_waits_to_be_allowed_says_what_it_would_do() -> None:
    effects = {"held_back": ["push", "merge"], "began": "schedule:s"}
    argv = ["git", {"b64": "AA=="}, SECRET]
    item = only(asking=[job(effects=effects, argv=argv, cwd="/app")])
    assert (item.id, item.kind, item.since) == ("approval:j1", "approval", "q")
    assert (item.repo, item.job) == ("app", "j1")
    assert item.says.startswith("job j1 (night) waits to be allowed to push and merge")
    assert "schedule:s" in item.says
    assert item.evidence["effects"] == "push, merge"
    assert item.evidence["began"] == "schedule:s"
    assert item.evidence["folder"] == "/app"
    assert item.evidence["command"].startswith("git (bytes) ")
    assert SECRET not in item.evidence["command"]
    assert item.actions == [
        "forge-actors show j1",
        "forge-actors approve j1",
        "forge-actors deny j1",
    ]
    bare = only(asking=[job(effects={**effects, "began": None})])
    assert bare.evidence["began"] == ""
    assert "folder" not in bare.evidence
    # Nothing is held back: it asks something.
    nothings: list[dict[str, Any] | None] = [None, {}, {"held_back": []}]
    for nothing in nothings:
        assert only(asking=[job(effects=nothing)]).kind == "question"


def test_a_long_command_is_cut() -> None:
    assert shown_command(["a" * MAX_COMMAND]) == "a" * MAX_COMMAND
    assert len(shown_command(["a" * (MAX_COMMAND + 1)])) <= MAX_COMMAND


def test_what_a_job_was_kept_from_can_be_authorised() -> None:
    effects = {
        "refused": ["git push (push)", "git push -f (push)", "gh pr merge (merge)"],
        "began": "schedule:s",
    }
    [item] = inbox(
        Facts(logs=logs, kept_from=["j1"]), (), lambda name: job(name, effects=effects)
    ).items
    assert (item.id, item.kind, item.since) == ("effect:j1:2", "effect", "f")
    assert (item.repo, item.job) == ("app", "j1")
    assert "kept from git push (push), git push -f (push)" in item.says
    assert item.evidence == {
        "attempt": "2",
        "began": "schedule:s",
        "log": "/logs/j1.2",
    }
    assert item.actions == [
        "forge-actors logs j1",
        "forge-actors retry j1 --authorise push,merge",
        "forge-actors inbox dismiss effect:j1:2",
    ]
    bare = job(attempt=0, finished_at=None)
    [item] = inbox(Facts(logs=logs, kept_from=["j1"]), (), lambda _: bare).items
    assert (item.id, item.since) == ("effect:j1:0", "q")
    assert item.evidence == {"attempt": "0", "began": ""}
    assert item.actions[1] == "forge-actors retry j1 --authorise NAME"


@pytest.mark.parametrize(
    ("name", "id_", "what"), [("j1", "aside:app:j1:s", "job j1"), (None, *("",) * 2)]
)
def test_what_was_set_aside_can_be_enabled(
    name: str | None, id_: str, what: str
) -> None:
    item = only(aside=[{"repo": "app", "job": name, "since": "s", "error": "a bug"}])
    assert item.id == (id_ or "aside:app::s")
    assert (item.kind, item.since, item.repo, item.job) == ("aside", "s", "app", name)
    assert item.says.startswith(f"repository app: {what or 'all of it'} was set aside")
    assert item.evidence == {"error": "a bug"}
    assert item.actions == ["forge-actors repo enable app"]


def test_claims_that_are_kept_can_be_let_go_of() -> None:
    left = {"job": "j1", "repo": "app", "since": "s", "reason": "it stays"}
    item = only(quarantined=[{**left, "claims": ["write:a", "b"], "pids": [1, 22]}])
    assert (item.id, item.kind, item.since) == ("claims:j1", "claims", "s")
    assert (item.repo, item.job) == ("app", "j1")
    assert "job j1 left" in item.says
    assert item.evidence == {
        "claims": "write:a b",
        "processes": "1 22",
        "reason": "it stays",
    }
    assert item.actions == [
        "forge-actors quarantine release j1",
        "forge-actors quarantine release j1 --yes",
    ]


@pytest.mark.parametrize("url", [None, "https://h"])
def test_a_webhook_that_is_told_nothing_can_be_opened(url: str | None) -> None:
    hook = {"name": "ci", "url": url, "since": "s", "detail": "404", "behind": 7}
    item = only(hooks=[hook])
    assert (item.id, item.kind, item.since) == ("webhook:ci:s", "webhook", "s")
    assert (item.repo, item.job) == (None, None)
    assert item.says == "the webhook ci is told nothing any more: 404"
    where = {} if url is None else {"url": url}
    assert item.evidence == {"webhook": "ci", **where, "behind": "7 events"}
    assert item.actions == [
        "forge-actors webhook test ci",
        "forge-actors webhook open ci",
    ]


def test_a_worktree_that_has_to_stay_is_kept_or_removed() -> None:
    tree = {"id": "j1", "repo": "app", "made_at": "m", "reason": "it has changes"}
    item = only(worktrees=[{**tree, "path": "/w", "branch": "b"}])
    assert (item.id, item.kind, item.since) == ("worktree:j1", "worktree", "m")
    assert (item.repo, item.job) == ("app", "j1")
    assert item.says == "the worktree of job j1 has to stay: it has changes"
    assert item.evidence == {"worktree": "/w", "branch": "b"}
    assert item.actions == [
        "forge-actors worktree keep j1",
        "forge-actors worktree remove j1",
    ]


def test_a_closed_provider_says_whether_to_log_in() -> None:
    account = {"reason": "budget", "since": "s", "job": None, "detail": ""}
    item = only(closed={"claude": account})
    assert (item.kind, item.since, item.repo, item.job) == (
        *("provider", "s", None),
        None,
    )
    assert item.evidence == {"provider": "claude", "reason": "budget"}
    assert "its budget is spent" in item.says
    assert item.actions[0] == "forge-actors doctor"
    login = only(closed={"claude": {**account, "reason": "auth"}})
    assert "not logged in" in login.says


def test_a_job_that_ended_shows_what_there_is_of_it() -> None:
    def of(**fields: Any) -> Item:
        shown = job(**fields)
        [item] = inbox(Facts(logs=logs, attention=["j1"]), (), lambda _: shown).items
        return item

    bare = of(error=None, attempt=0, exit_code=0)
    assert bare.evidence == {"code": "", "attempt": "0", "exit code": "0"}
    assert "its outcome is not known" in bare.says
    assert (bare.repo, bare.job, bare.since) == ("app", "j1", "f")
    assert bare.actions == [
        "forge-actors logs j1",
        "forge-actors show j1",
        "forge-actors retry j1",
        "forge-actors inbox dismiss job:j1",
    ]
    full = of(worktree={"problem": "gone"}, agent={"name": "claude", "session": None})
    assert full.evidence == {"code": "QUESTION", "attempt": "2", "log": "/logs/j1.2"}


def test_items_come_by_their_urgency_and_only_the_first_are_shown() -> None:
    asks, tree = job("asks"), {"id": "t", "repo": "app", "made_at": "m", "reason": "r"}
    facts = Facts(
        logs=logs,
        asking=[asks, job("asks2")],
        attention=["j1", "j2"],
        worktrees=[{**tree, "path": "/w", "branch": "b"}],
    )
    kinds = [one.kind for one in inbox(facts, (), job).items]
    assert kinds == ["question", "question", "job", "job", "worktree"]
    found = inbox(facts, {"question:asks2:2", "worktree:t", "other"}, job, 2)
    assert [one.id for one in found.items] == ["question:asks:2", "job:j1"]
    assert (found.more, found.dismissed, found.count) == (1, 2, 3)
    assert inbox(facts, (), job, 1) == Inbox(found.items[:1], 4, 0)


def test_what_was_done_about_an_item_stays_done() -> None:
    new, old = Mark("a", dismissed_at=2.0), Mark("a", notified_at=1.0)
    assert new.after(None) is new
    assert new.after(old) == Mark("a", 2.0, 1.0)
    assert old.after(new) == Mark("a", 2.0, 1.0)
    assert Mark("a", 3.0, 4.0).after(Mark("a", 1.0, 2.0)) == Mark("a", 3.0, 4.0)


@pytest.mark.parametrize(
    ("scope", "section", "repo", "by"),
    [
        ("home", "[budgets]", None, "provider"),
        ("providers.claude", "[budgets.providers.claude]", None, "repo"),
        ("repositories.app", "[budgets.repositories.app]", "app", "provider"),
    ],
)
def test_a_spent_budget_is_another_item_each_day_and_for_each_amount(
    scope: str, section: str, repo: str | None, by: str
) -> None:
    spent = SpentBudget(
        "agents", 1.0, 2.0, "it is spent", None, scope, Budget(tokens=100)
    )

    def moment(at: float) -> str:
        return f"2026-01-0{at:.0f}T00:00"

    [item] = spent_items([spent], moment)
    amount = Budget(tokens=100).amount
    assert item.id == f"budget:{scope}:2026-01-01:{amount}"
    assert (item.kind, item.repo, item.job) == ("budget", repo, None)
    assert item.since == "2026-01-01T00:00"
    assert item.says.startswith("it is spent; ")
    assert item.says.endswith("2026-01-02T00:00")
    assert item.evidence == {"settings": section, "until": "2026-01-02T00:00"}
    assert item.actions == [
        f"forge-actors usage --since 1d --by {by}",
        "forge-actors settings reload",
        f"forge-actors inbox dismiss {item.id}",
    ]
    assert spent_view(spent, moment) == SpentBudgetView(
        scope, "it is spent", "2026-01-02T00:00"
    )
