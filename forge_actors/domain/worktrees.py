"""Worktree: a linked work tree of a repository, made for one job in the home."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

#: `making`: its folder may be there in part. `ready`: jobs may run in it. `removing`: a
#: clean-up has begun to save what is in it. `removed`: the folder is gone, and its
#: receipt says where the content is.
WorktreeState = Literal["making", "ready", "removing", "removed"]
WORKTREE_STATES: tuple[WorktreeState, ...] = get_args(WorktreeState)


class Isolation(Struct, frozen=True, omit_defaults=True):
    """That a job runs in a worktree of its own, and where that begins.

    `branch` is a pattern, None the default of the settings. `base` is anything that git
    takes for a commit, None what the checkout has as HEAD when the worktree is made.
    """

    branch: str | None = None
    base: str | None = None


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
