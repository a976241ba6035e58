"""What becomes of the branch of a worktree whose folder is gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.worktrees.commits import tips_without_ref
from forge_actors.edges.cleanup.worktrees.entries import entry_path, head_ref
from forge_actors.edges.cleanup.worktrees.git import GitFailed
from forge_actors.edges.cleanup.worktrees.merged import is_merged, mainlines

if TYPE_CHECKING:
    from forge_actors.domain.removal import Receipt
    from forge_actors.domain.worktrees import Worktree
    from forge_actors.edges.cleanup.worktrees.git import Git


def settle(git: Git, receipt: Receipt, worktree: Worktree) -> str:
    """Have the branch hold the checkpoint, or delete it if it holds nothing of its own.

    A branch that has gone on, or that is checked out elsewhere, is left alone. That it
    cannot be changed is no reason to stay: our own refs hold everything.
    """
    ref = f"refs/heads/{worktree.branch}"
    try:
        tip = git.commit_of(ref)
        if tip is None:
            return "there is no branch"
        if checked_out(git, ref, receipt.entry):
            return "the branch is checked out elsewhere"
        if receipt.checkpoint is not None:
            commit = receipt.checkpoint.commit
            if tip == commit:
                return "the branch holds the checkpoint"
            if receipt.head_ref != ref or tip != receipt.head:
                return "the branch stays; a ref of ours holds the checkpoint"
            why = f"checkpoint of the worktree {worktree.id}"
            git.run("update-ref", "-m", why, ref, commit, tip)
            return "the branch holds the checkpoint"
        ours = worktree.base_commit is not None
        if not ours or not _holds_nothing(git, ref, tip, receipt, worktree):
            return "the branch stays"
        git.run("update-ref", "-d", ref, tip)
    except GitFailed as problem:
        return f"the branch stays as it is: {problem}"
    return "the branch is deleted, as it held nothing of its own"


def _holds_nothing(
    git: Git, ref: str, tip: str, receipt: Receipt, worktree: Worktree
) -> bool:
    """Whether every commit of a branch is on another ref, or its content is merged."""
    if not tips_without_ref(git, [tip], ref):
        return True
    if tip not in {kept.commit for kept in receipt.refs}:
        return False
    return any(is_merged(git, tip, into) for into in mainlines(git, worktree.base))


def checked_out(git: Git, ref: str, own: str | None) -> bool:
    """Whether another checkout than the one that is gone is at a branch."""
    if head_ref(git.git_dir) == ref:
        return True
    try:
        names = os.listdir(os.path.join(git.git_dir, "worktrees"))  # noqa: PTH208
    except OSError:
        return False
    return any(
        head_ref(entry_path(git.git_dir, name)) == ref for name in names if name != own
    )
