"""The branch of an issue: what is left uncommitted on it, and where it is pushed.

What is pushed is one commit to one branch, never by force; what is there already is
looked at before.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git.program import git

#: Seconds for a command that only looks, for a commit, and for one over the network.
QUICK, COMMIT, NETWORK = 30.0, 600.0, 600.0
#: Who commits where nobody is configured.
NOBODY = ("user.name=Forge Actors", "user.email=forge-actors@localhost")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
#: What `git push --porcelain` says of a ref that the other side did not take.
_REJECTED = re.compile(r"^!\t", re.MULTILINE)


class Pushed(NamedTuple):
    """What became of a push."""

    ok: bool
    #: The other side does not want it, however often it is tried.
    rejected: bool = False
    words: str = ""


async def branch_commit(common_dir: str, branch: str) -> str | None:
    """The commit that a branch is at; None: there is no such branch."""
    ask = ("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    found = await git(f"--git-dir={common_dir}", *ask, seconds=QUICK)
    return found.text if found.code == 0 and _COMMIT.fullmatch(found.text) else None


async def head(folder: str) -> str:
    """The commit that a worktree is at.

    Raises:
        WorktreeFailed: it is at none.
    """
    found = await git("rev-parse", "--verify", "HEAD", seconds=QUICK, cwd=folder)
    if found.code != 0 or not _COMMIT.fullmatch(found.text):
        raise WorktreeFailed(f"{folder} is at no commit: {found.words}")
    return found.text


async def commit_rest(folder: str, message: str) -> bool:
    """Commit what is left of the work; False if there was nothing.

    Raises:
        WorktreeFailed: in git's words.
    """
    listing = await git("status", "--porcelain", seconds=COMMIT, cwd=folder, limit=1)
    if listing.code == 0 and not listing.out:
        return False
    who = await git("var", "GIT_COMMITTER_IDENT", seconds=QUICK, cwd=folder)
    options = [part for option in NOBODY for part in ("-c", option)]
    for words in (
        ("add", "--all"),
        (*(options if who.code else ()), "commit", "--quiet", "-m", message),
    ):
        done = await git(*words, seconds=COMMIT, cwd=folder, mark=folder)
        if done.code != 0:
            raise WorktreeFailed(f"what is left cannot be committed: {done.words}")
    return True


async def remote_commit(folder: str, remote: str, branch: str) -> str | None:
    """The commit that a branch is at over there; None: there is none.

    Raises:
        WorktreeFailed: it cannot be asked.
    """
    ask = ("ls-remote", "--heads", "--", remote, f"refs/heads/{branch}")
    found = await git(*ask, seconds=NETWORK, cwd=folder)
    if found.code != 0:
        raise WorktreeFailed(f"{remote} cannot be asked: {found.words}")
    commit, _, ref = found.text.partition("\n")[0].partition("\t")
    good = ref == f"refs/heads/{branch}" and _COMMIT.fullmatch(commit)
    return commit if good else None


async def push(folder: str, remote: str, commit: str, branch: str) -> Pushed:
    """Have a branch over there be at a commit that goes on from where it is.

    Raises:
        WorktreeFailed: it took too long.
    """
    ref = f"{commit}:refs/heads/{branch}"
    words = ("push", "--porcelain", "--no-verify", "--", remote, ref)
    done = await git(*words, seconds=NETWORK, cwd=folder)
    if done.code == 0:
        return Pushed(True)
    told = done.out.decode("utf-8", "replace")
    rejected = _REJECTED.search(told)
    line = told[rejected.start() :].split("\n")[0] if rejected else ""
    why = line.rpartition("\t")[2] or done.words or f"git exited with {done.code}"
    return Pushed(False, rejected is not None, why)
