"""What the models of the ledger share: what their jobs need, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.priority import rank

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job, Kind

WORKERS = 3
CLAIMS = [
    (),
    ("write:path:a",),
    ("write:path:b",),
    ("read:path:a",),
    ("read:path:a", "write:path:b"),
    ("write:path:a", "write:path:b"),
    ("write:git-ref:x",),
    ("exclusive:repo-content:*",),
    ("read:workspace", "write:release:1"),
]
KINDS: list[Kind] = ["repository-command", "check", "agent-run"]
TOKENS = [tokens_for(kind, who) for kind in KINDS for who in (None, "local")]


def place(job: Job, now: float) -> tuple[int, float, str]:
    return rank(job.priority, job.queued_at, job.id, now)
