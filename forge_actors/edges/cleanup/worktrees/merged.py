"""Whether the content of a branch is in another one, though its commits are not.

A branch that was merged as one commit, or rebased, and then deleted at its origin
shares no commit with what it was merged into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.worktrees.git import GitFailed

if TYPE_CHECKING:
    from forge_actors.edges.cleanup.worktrees.git import Git

#: Commits of the other branch whose changes are compared.
MAX_COMPARED = 1000
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--full-index")


def is_merged(git: Git, tip: str, into: str) -> bool:
    """Whether everything that `tip` has changed is in `into`.

    It is if each of its files is the same there now, if one commit there has the same
    changes as all of its own together, or each of its own has its equal there.
    """
    try:
        base = git.run("merge-base", tip, into).decode().strip()
        if base == tip:
            return True
        return (
            _same_files(git, base, tip, into)
            or _as_one(git, base, tip, into)
            or _one_by_one(git, tip, into)
        )
    except GitFailed:
        return False


def _same_files(git: Git, base: str, tip: str, into: str) -> bool:
    told = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, tip)
    paths = {path for path in told.split(b"\0") if path}
    if not paths:  # commits without a change say something only by being there
        return False
    told = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", tip, into)
    return not paths & {path for path in told.split(b"\0") if path}


def _as_one(git: Git, base: str, tip: str, into: str) -> bool:
    own = _patch_ids(git, git.run("diff-tree", "-p", *_DIFF, base, tip))
    if not own:
        return False
    theirs = git.run(
        *("log", "-p", "--format=commit %H", f"--max-count={MAX_COMPARED}"),
        *(*_DIFF, "--no-merges", f"{base}..{into}", "--"),
    )
    return own <= _patch_ids(git, theirs)


def _patch_ids(git: Git, patches: bytes) -> set[bytes]:
    if not patches:
        return set()
    told = git.run("patch-id", "--stable", text=patches)
    return {line.split()[0] for line in told.splitlines() if line}


def _one_by_one(git: Git, tip: str, into: str) -> bool:
    told = git.run(
        *("rev-list", "--cherry-pick", "--right-only", "--max-count=1"),
        *(f"{into}...{tip}", "--"),
    )
    return not told.strip()


def mainlines(git: Git, base: str | None) -> list[str]:
    """The commits into which work is merged: what the worktree began at as it was
    named, what the remotes call their main branch, and what the checkout has."""
    names = ["HEAD"]
    remotes = git.run("remote").decode("utf-8", "replace").split()
    names += [f"refs/remotes/{remote}/HEAD" for remote in remotes]
    if base:
        names += [base, *(f"refs/remotes/{remote}/{base}" for remote in remotes)]
    found = [git.commit_of(name) for name in names]
    return list(dict.fromkeys(commit for commit in found if commit))
