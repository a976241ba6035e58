"""What the tests of the dashboard share: jobs and events as a service tells them."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from forge_actors.domain.events import EventView
from forge_actors.domain.jobs import RESERVED, TERMINAL, JobView

AT = "2026-01-02T03:04:05.000Z"
LATER = "2026-01-02T03:05:05.000Z"


def job(number: int, state: str = "queued", **facts: Any) -> JobView:
    """A job; those with larger numbers are newer."""
    fields: dict[str, Any] = {
        "id": f"1m8p57vc{number:011d}",
        "state": state,
        "kind": "check",
        "repo": "app",
        "argv": ["make", "all"],
        "priority": "P2",
        "attempt": 0,
        "max_attempts": 1,
        "forced": False,
        "claims": [],
        "after": [],
        "replay": "never",
        "labels": [],
        "created_at": AT,
        "queued_at": AT,
        "started_at": AT if state in RESERVED | TERMINAL else None,
    }
    unknown = ("name", "exit_code", "signal", "error", "waiting", "provider")
    unknown += ("retry_of", "finished_at")
    return convert({**dict.fromkeys(unknown), **fields, **facts}, JobView)


def event(kind: str, of: JobView | None = None, seq: int = 1, **data: Any) -> EventView:
    name = None if of is None else of.id
    return EventView(seq, LATER, kind, "app", name, data, "r-app")
