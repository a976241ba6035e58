"""What the store of a home that nothing serves says of the worktrees of its jobs."""

from __future__ import annotations

import os
from typing import Any

from forge_actors.client import offline

_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'worktree'"
_WORKTREES = """\
SELECT worktree.id, job.state, repository.name, branch, worktree.path, worktree.state,
    base, base_commit, kept, reason, made_at, worktree.removed_at
FROM worktree JOIN repository ON repository.id = worktree.repo
    LEFT JOIN job ON job.id = worktree.id
ORDER BY made_at, worktree.id"""


def worktrees(home: str, *, removed: bool) -> list[dict[str, Any]]:
    """What a `GET /v1/worktrees` would list without looking into them."""
    if not offline.rows(home, _KNOWN):
        return []  # an older release wrote it
    found = []
    for row in offline.rows(home, _WORKTREES):
        job, job_state, repo, branch, path, state, base, commit = row[:8]
        kept, reason, made_at, removed_at = row[8:]
        if state == "removed" and not removed:
            continue
        found.append(
            {
                "id": job,
                "job_state": job_state,
                "repo": repo,
                "branch": branch,
                "path": os.path.join(os.path.realpath(home), path),
                "state": state,
                "base": base,
                "base_commit": commit,
                "kept": bool(kept),
                "reason": reason,
                "made_at": offline.moment(made_at),
                "removed_at": None
                if removed_at is None
                else offline.moment(removed_at),
                "size": None,
                "uncommitted": None,
                "unpushed": None,
                "stays": "a person keeps it" if kept and state != "removed" else None,
            }
        )
    return found
