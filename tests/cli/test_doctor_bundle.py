"""What a bundle of `doctor` leaves out."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from forge_actors.cli.doctor_bundle import _without
from forge_actors.domain.inbox import Facts, inbox

PRIVATE = "PRIVATE"


def job(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": PRIVATE,
        "repo": "app",
        "argv": ["echo", PRIVATE],
        "cwd": f"/{PRIVATE}",
        "attempt": 1,
        "error": {"code": "AGENT_QUESTION", "message": f"printed {PRIVATE}"},
        "exit_code": 1,
        "signal": None,
        "queued_at": "q",
        "finished_at": "f",
        "worktree": None,
        "agent": None,
    }


def test_the_inbox_tells_nothing_of_what_jobs_print_or_are_told() -> None:
    held = {**job("j3"), "effects": {"held_back": ["push"], "began": "schedule:x"}}
    closed = {"reason": "auth", "since": "t", "job": "j", "detail": PRIVATE}
    facts = Facts(
        attention=["j1"],
        asking=[job("j2"), held],
        closed={"claude": closed},
        logs=lambda name, attempt: f"{name}.{attempt}",
    )
    items = to_builtins(inbox(facts, frozenset(), job))
    assert len(items["items"]) == 4
    assert PRIVATE in str(items)
    told = str(_without(items))
    assert PRIVATE not in told
    assert "approval:j3" in told
