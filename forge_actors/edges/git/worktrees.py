"""Worktrees of jobs: made, looked at and taken back by the git program.

What all worktrees of a repository share is changed by one at a time: the branch and the
entry of the worktree, which takes some milliseconds. The files are checked out side by
side, each with an index of its own. Nothing is written to the configuration, and no
hook of the repository runs.

A branch is ours if its log says that it was made for this job, and nothing since.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.branches import base_problem, branch_for, branch_problem
from forge_actors.domain.errors import WorktreeFailed
from forge_actors.domain.worktrees import MadeWorktree, WorktreePlace, WorktreePlan
from forge_actors.edges.git.entries import entry_of
from forge_actors.edges.git.leftovers import LOCK_SECONDS, Tidying
from forge_actors.edges.git.living import until_left_alone
from forge_actors.edges.git.program import git
from forge_actors.edges.git.repository_settings import read_settings
from forge_actors.edges.git.setup_state import STATE_FILE, is_done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.worktrees import Worktree, WorktreeWanted
    from forge_actors.edges.git.program import Done

#: Seconds for a git command that only looks.
QUICK_SECONDS = 30.0
#: Repositories that may be around a job's folder within its checkout.
MAX_NESTED = 16


class GitWorktrees:
    """The port `Worktrees`. One for each runtime."""

    def __init__(self) -> None:
        #: By common directory: who may change what its worktrees share.
        self._turns: dict[str, trio.Lock] = {}

    async def plan(self, wanted: WorktreeWanted) -> WorktreePlan:
        """See the port."""
        with _limit(wanted.seconds):
            settings = read_settings(wanted.common_dir)
            pattern = wanted.pattern or settings.worktree.branch
            branch = branch_for(pattern or wanted.default_pattern, wanted.names)
            problem = branch_problem(branch)
            if problem is not None:
                raise WorktreeFailed(f"{branch!r} is no name of a branch: {problem}")
            root, _ = await _checkout(wanted)
            commit = await _commit(root, wanted.base)
            if await _branch_at(wanted.common_dir, branch) is not None:
                raise _taken(branch)
        return WorktreePlan(branch, commit)

    async def make(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        """See the port."""
        tidying = Tidying(wanted, known)
        with _limit(wanted.seconds):
            _prepare_parents(wanted.folder)
            await until_left_alone(wanted.folder, LOCK_SECONDS)
            async with self._turn(wanted.common_dir):
                await _make_branch(wanted, known, tidying)
                aside = await tidying.clear()
                if not os.path.lexists(wanted.folder):
                    place = (wanted.folder, known.branch)
                    await tidying.git("worktree", "add", "--no-checkout", *place)
            await tidying.git("reset", "--hard", "--quiet", cwd=wanted.folder)
            place_, cwd = await _place(wanted, known)
        return MadeWorktree(place_, cwd, tuple(tidying.unlocked), aside)

    async def enter(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        """See the port."""
        tidying = Tidying(wanted, known)
        with _limit(wanted.seconds):
            tidying.remove_locks()
            place, cwd = await _place(wanted, known)
        return MadeWorktree(place, cwd, tuple(tidying.unlocked))

    async def undo(self, wanted: WorktreeWanted, known: Worktree) -> None:
        """See the port."""
        tidying = Tidying(wanted, known)
        with _limit(wanted.seconds):
            await until_left_alone(wanted.folder, LOCK_SECONDS)
            async with self._turn(wanted.common_dir):
                await tidying.clear()
                if os.path.lexists(wanted.folder):  # it is as git left it
                    remove = ("worktree", "remove", "--force", "--force")
                    await tidying.git(*remove, wanted.folder)
                if await _is_ours(wanted, known):
                    ref, commit = f"refs/heads/{known.branch}", known.base_commit or ""
                    await tidying.git("update-ref", "-d", ref, commit)

    def _turn(self, common_dir: str) -> trio.Lock:
        return self._turns.setdefault(common_dir, trio.Lock())


async def _place(wanted: WorktreeWanted, known: Worktree) -> tuple[WorktreePlace, str]:
    """Where the job is to be, if the worktree is still what it was made as."""
    folder = wanted.folder
    entry = entry_of(folder, wanted.common_dir)
    head = await _look("symbolic-ref", "--quiet", "HEAD", cwd=folder)
    if head.text != f"refs/heads/{known.branch}":
        branch = head.text.removeprefix("refs/heads/") or "no branch"
        raise WorktreeFailed(
            f"its worktree {folder} is at {branch}, not at {known.branch}: what an"
            " earlier attempt left there has to be looked at; a retry has a new one"
        )
    commit = known.base_commit or ""
    ancestor = ("merge-base", "--is-ancestor", commit, "HEAD")
    if (await _look(*ancestor, cwd=folder)).code != 0:
        raise WorktreeFailed(
            f"its worktree {folder} does not go back to its base {commit[:12]} any"
            " more; a retry has a new one"
        )
    settings = read_settings(wanted.common_dir)
    done = not settings.setup or is_done(entry.git_dir)
    place = WorktreePlace(
        root=folder,
        git_dir=entry.git_dir,
        common_dir=wanted.common_dir,
        device=entry.device,
        inode=entry.inode,
        setup=() if done else settings.setup,
        setup_seconds=settings.setup_seconds,
        setup_state=os.path.join(entry.git_dir, STATE_FILE),
    )
    _, within = await _checkout(wanted)
    return place, os.path.normpath(os.path.join(folder, within))


async def _checkout(wanted: WorktreeWanted) -> tuple[str, str]:
    """The checkout in which the job was to run, and where in it.

    A repository of its own may be in it, and the job's folder in that.
    """
    cwd = folder = os.path.realpath(wanted.cwd)
    for _ in range(MAX_NESTED):
        if not os.path.isdir(folder):
            raise WorktreeFailed(f"the folder {cwd} does not exist any more")
        ask = ("rev-parse", "--show-toplevel", "--git-common-dir")
        found = await _look(*ask, cwd=folder)
        if found.code != 0:
            break
        root, common = (os.path.join(folder, line) for line in found.text.split("\n"))
        if os.path.samefile(common, wanted.common_dir):
            root = os.path.realpath(root)
            return root, os.path.relpath(cwd, root)
        folder = os.path.dirname(root)
    raise WorktreeFailed(f"{cwd} is in no checkout of its repository any more")


async def _commit(root: str, base: str | None) -> str:
    """The commit that a base is now."""
    name = base or "HEAD"
    problem = base_problem(name)
    if problem is not None:
        raise WorktreeFailed(f"{name!r} is no name of a commit: {problem}")
    ask = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    found = await _look(*ask, cwd=root)
    if found.code == 0:
        return found.text
    if base is None:
        raise WorktreeFailed(f"{root} has no commit yet, so nothing can begin at it")
    raise WorktreeFailed(f"its base {base} is no commit that git knows in {root}")


async def _make_branch(
    wanted: WorktreeWanted, known: Worktree, tidying: Tidying
) -> None:
    """Make the branch, unless an earlier try has."""
    if await _branch_at(wanted.common_dir, known.branch) is not None:
        if not await _is_ours(wanted, known):
            raise _taken(known.branch)
        return
    commit = known.base_commit or ""
    none = "0" * len(commit)
    await tidying.git(
        *("update-ref", "--create-reflog", "-m", _message(known)),
        *(f"refs/heads/{known.branch}", commit, none),
    )


async def _is_ours(wanted: WorktreeWanted, known: Worktree) -> bool:
    """Whether the branch was made for this job, and is as it was made."""
    ref = f"refs/heads/{known.branch}"
    if await _branch_at(wanted.common_dir, known.branch) != known.base_commit:
        return False
    ask = ("log", "-g", "-n", "2", "--no-show-signature", "--format=%H %gs", ref, "--")
    told = await _look(f"--git-dir={wanted.common_dir}", *ask)
    return told.text == f"{known.base_commit} {_message(known)}"


def _message(known: Worktree) -> str:
    """What the log of its branch begins with."""
    return f"forge-actors: worktree of job {known.id}"


async def _branch_at(common_dir: str, branch: str) -> str | None:
    """The commit that a branch is at, or None."""
    ask = ("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    found = await _look(f"--git-dir={common_dir}", *ask)
    return found.text if found.code == 0 else None


def _taken(branch: str) -> WorktreeFailed:
    return WorktreeFailed(
        f"there is a branch {branch} that was not made for this job: give another name"
        " with --branch, for example one with {job} in it"
    )


async def _look(*arguments: str, cwd: str | None = None) -> Done:
    """What git says of what is there; it takes no lock."""
    return await git(
        *arguments,
        seconds=QUICK_SECONDS,
        cwd=cwd,
        environment={"GIT_OPTIONAL_LOCKS": "0"},
    )


def _prepare_parents(folder: str) -> None:
    """The folders around it, which only this user may write to."""
    repository = os.path.dirname(folder)
    for path in (os.path.dirname(repository), repository):
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            status = os.lstat(path)
        except OSError as error:
            raise WorktreeFailed(f"{path} cannot be made: {error.strerror}") from None
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise WorktreeFailed(f"{path} is a link, or another user's: move it away")


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """All of it has to be done in this time, and what goes wrong is told clearly."""
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise WorktreeFailed(f"it was not ready within {seconds:g} s") from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise WorktreeFailed(f"{where}{error.strerror or error}") from None
