"""What of a store is different once its home is on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.relocation import relocation
from forge_actors.edges.sqlite.statements import queries
from forge_actors.edges.sqlite.writing import move_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from forge_actors.domain.repositories import Checkout


#: What became of the worktrees of a home that came from another machine.
LEFT_BEHIND = "it stayed on the machine that the home came from"


class Moved(NamedTuple):
    """Where a repository is now; without a checkout, why it is nowhere."""

    repo: str
    checkout: Checkout | None
    problem: str | None = None


def move_repositories(db: apsw.Connection, moved: Iterable[Moved]) -> None:
    """Give repositories their new places, and their jobs with them; those that have
    none are disabled, and get numbers that no folder has."""
    for number, (repo, checkout, _) in enumerate(moved, start=1):
        away = "UPDATE repository SET device = -1, inode = ? WHERE id = ?"
        db.execute(away, (-number, repo))
        if checkout is None:
            db.execute("UPDATE repository SET enabled = 0 WHERE id = ?", (repo,))
    for repo, checkout, _ in moved:
        if checkout is not None:
            query = "SELECT common_dir, path FROM repository WHERE id = ?"
            [(common, path)] = db.execute(query, (repo,))
            there = relocation(common, checkout.common_dir, path, checkout.root)
            if there is not None:
                move_jobs(db, queries(), repo, there)
            values = (checkout.root, checkout.common_dir, checkout.device)
            db.execute(
                "UPDATE repository SET path = ?, common_dir = ?, device = ?, inode = ?"
                " WHERE id = ?",
                (*values, checkout.inode, repo),
            )


def set_free(db: apsw.Connection) -> list[tuple[str, int, int]]:
    """Forget which processes and worktrees jobs had; of those that ran the job, the
    attempt and the fence."""
    db.execute("UPDATE job SET identity = NULL")
    db.execute("DELETE FROM quarantine")
    db.execute("DELETE FROM git_status")
    db.execute(
        "UPDATE worktree SET state = 'removed', reason = ? WHERE state <> 'removed'",
        (LEFT_BEHIND,),
    )
    query = (
        "SELECT id, attempt, fence FROM job WHERE state IN ('dispatched', 'running')"
    )
    return [(str(job), int(n), int(f)) for job, n, f in db.execute(query)]
