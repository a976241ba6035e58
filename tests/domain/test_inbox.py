"""What the inbox makes of what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.inbox import Facts, Inbox, Mark, inbox, named


def ended(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "name": None,
        "repo": "app",
        "attempt": 2,
        "error": {"code": "INTERRUPTED", "message": "nobody saw its end"},
        "exit_code": None,
        "signal": "SIGKILL",
        "queued_at": "q",
        "finished_at": "f",
        "worktree": {"path": "/w", "branch": "forge/x"},
        "agent": {"name": "claude", "session": "s"},
        **fields,
    }


def logs(job: str, attempt: int) -> str:
    return f"/logs/{job}.{attempt}"


def made(
    facts: Facts, dismissed: frozenset[str] = frozenset(), limit: int = 100
) -> Inbox:
    return inbox(facts, dismissed, ended, limit)


def account(reason: str) -> dict[str, Any]:
    return {"reason": reason, "since": "t", "job": "j", "detail": "401"}


def test_a_job_with_an_unknown_outcome_has_its_log_its_worktree_and_its_session() -> (
    None
):
    [item] = made(Facts(attention=["job1"], logs=logs)).items
    assert (item.id, item.kind, item.since) == ("job:job1", "job", "f")
    assert item.evidence == {
        "code": "INTERRUPTED",
        "attempt": "2",
        "log": "/logs/job1.2",
        "signal": "SIGKILL",
        "worktree": "/w",
        "branch": "forge/x",
        "session": "s",
    }
    assert "forge-actors retry job1" in item.actions
    assert "forge-actors inbox dismiss job:job1" in item.actions


def test_a_provider_is_an_item_only_if_it_stays_closed_until_somebody_acts() -> None:
    closed = {
        name: account(name) for name in ("usage", "rate", "overload", "auth", "budget")
    }
    items = made(Facts(closed=closed, logs=logs)).items
    assert [each.id for each in items] == ["provider:auth:t", "provider:budget:t"]
    evidence = {"provider": "auth", "reason": "auth", "job": "j", "said": "401"}
    assert items[0].evidence == evidence
    assert "forge-actors resume --provider auth" in items[0].actions


def test_what_is_dismissed_is_only_counted_and_happens_anew_under_another_id() -> None:
    facts = Facts(attention=["a", "b"], closed={"x": account("auth")}, logs=logs)
    found = made(facts, frozenset({"job:a", "provider:x:t"}))
    assert [each.id for each in found.items] == ["job:b"]
    assert (found.more, found.dismissed, found.count) == (0, 2, 1)
    again = Facts(closed={"x": {**account("auth"), "since": "later"}}, logs=logs)
    assert made(again, frozenset({"provider:x:t"})).count == 1


def test_what_is_too_much_is_counted_and_never_shown() -> None:
    looked_at = []

    def job(name: str) -> dict[str, Any]:
        looked_at.append(name)
        return ended(name)

    facts = Facts(
        attention=[f"job{number}" for number in range(500)],
        closed={"x": account("auth")},
        logs=logs,
    )
    found = inbox(facts, frozenset(), job)
    assert (len(found.items), found.more, found.count) == (100, 401, 501)
    assert found.items[0].kind == "provider"
    assert len(looked_at) == 99
    assert inbox(facts, frozenset(), job, 0).count == 501
    assert len(looked_at) == 99


def test_an_item_is_named_by_its_id_or_a_part_that_only_it_has() -> None:
    items = made(Facts(attention=["4f2k9x", "7f2k9x", "4f2k"], logs=logs)).items
    assert named(items, "job:4f2k").job == "4f2k"
    assert named(items, "7f2k9x").job == "7f2k9x"
    with pytest.raises(Refused, match="could be any of"):
        named(items, "f2k9x")
    for unknown in ("9x", "job:zzzz", ""):
        with pytest.raises(NotFound, match="nothing in the inbox"):
            named(items, unknown)


def test_what_was_done_about_an_item_stays_done() -> None:
    told = Mark("a", notified_at=1.0)
    seen = Mark("a", dismissed_at=2.0)
    assert seen.after(told) == told.after(seen) == Mark("a", 2.0, 1.0)
    assert seen.after(None) == seen
