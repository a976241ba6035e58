"""Worktree: a linked work tree of a repository, made for one job in the home."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from forge_actors.domain.branches import BranchNames
from forge_actors.domain.claims import Claim

#: `making`: its folder may be there in part. `ready`: jobs may run in it. `removing`: a
#: clean-up has begun to save what is in it. `removed`: the folder is gone, and its
#: receipt says where the content is.
WorktreeState = Literal["making", "ready", "removing", "removed"]
WORKTREE_STATES: tuple[WorktreeState, ...] = get_args(WorktreeState)

#: Variables that would lead git from the worktree to somewhere else.
GIT_PLACES = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    }
)


class Isolation(Struct, frozen=True, omit_defaults=True):
    """That a job runs in a worktree of its own, and where that begins.

    `branch` is a pattern, None the default of the settings. `base` is anything that git
    takes for a commit, None what the checkout has as HEAD when the worktree is made.
    """

    branch: str | None = None
    base: str | None = None
    #: The jobs that held the checkout, if it was isolated only for that; and what it
    #: claimed before.
    instead_of: tuple[str, ...] = ()
    claims: tuple[Claim, ...] | None = None
    #: The job for which its worktree was made, if that is another one.
    of: str | None = None


class Worktree(Struct, frozen=True, omit_defaults=True):
    """The record of one worktree. Its id is that of the job it was made for."""

    id: str
    repo: str
    #: Where its folder is, below the home.
    path: str
    branch: str
    made_at: float
    state: WorktreeState = "making"
    #: What it begins at: as it was asked for, and the commit that this was.
    base: str | None = None
    base_commit: str | None = None
    #: A person wants it kept until a person says otherwise.
    kept: bool = False
    #: Why the last try to make or remove it did not succeed, or why it has to stay.
    reason: str | None = None
    removed_at: float | None = None


class WorktreeWanted(Struct, frozen=True):
    """A worktree that is to be there before an attempt begins.

    `job` is the one that it is made for.
    """

    job: str
    repo: str
    #: Of the repository.
    common_dir: str
    #: Where it is to be, and the same below the home.
    folder: str
    path: str
    #: The folder around all worktrees; above it git is to look for no repository.
    ceiling: str
    #: Where in a checkout of the repository the job was to run.
    cwd: str
    base: str | None
    #: What the job asks for, and what holds where the repository says nothing either.
    pattern: str | None
    default_pattern: str
    names: BranchNames
    #: Seconds in which it has to be there.
    seconds: float


class WorktreePlan(Struct, frozen=True):
    """What a worktree begins as."""

    branch: str
    base_commit: str


class WorktreePlace(Struct, frozen=True):
    """Where the process of a job has to be when it starts."""

    root: str
    #: What is in its file `.git`, and of which repository that is a part.
    git_dir: str
    common_dir: str
    device: int
    inode: int
    #: Commands to run before the job itself, and the seconds they may take in all.
    setup: tuple[str, ...] = ()
    setup_seconds: float = 0.0
    #: Where it is written down how far these are.
    setup_state: str = ""


class MadeWorktree(Struct, frozen=True):
    """A worktree that is ready: where, and where in it the job is to run."""

    place: WorktreePlace
    cwd: str
    #: Locks that a git program of ours had left and that were removed.
    unlocked: tuple[str, ...] = ()
    #: Where something was moved that stood in its place.
    set_aside: str | None = None


class LeftLocks(Struct, frozen=True):
    """Locks in a checkout that a job may have left."""

    removed: tuple[str, ...] = ()
    #: Those that may be somebody else's, each with why.
    kept: tuple[tuple[str, str], ...] = ()


def worktree_view(
    isolation: Isolation, known: Worktree | None, home: str
) -> dict[str, object]:
    """The worktree of a job as readers see it, made or not."""
    shown: dict[str, object] = {"state": "wanted" if known is None else known.state}
    if known is not None:
        shown |= {"path": f"{home}/{known.path}", "branch": known.branch}
    base = isolation.base if known is None else known.base
    told = {
        "base": base,
        "base_commit": None if known is None else known.base_commit,
        "kept": known is not None and known.kept,
        "reason": None if known is None else known.reason,
        "of": isolation.of,
        "instead_of": list(isolation.instead_of),
    }
    return shown | {name: value for name, value in told.items() if value}
