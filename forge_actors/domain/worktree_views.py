"""What readers see of worktrees."""

from __future__ import annotations

from msgspec import Struct


class WorktreeView(Struct, frozen=True):
    """A worktree of a job, and what is in it."""

    id: str
    #: The state of the job that it was made for; None: that was forgotten.
    job_state: str | None
    #: The name of its repository.
    repo: str
    branch: str
    path: str
    state: str
    base: str | None
    base_commit: str | None
    kept: bool
    #: Why the last try to make or remove it did not succeed.
    reason: str | None
    made_at: str
    removed_at: str | None
    #: What follows is None where nobody looked. Bytes on the disk.
    size: int | None = None
    #: Files that are not committed; commits that are on no other branch or remote.
    uncommitted: int | None = None
    unpushed: int | None = None
    #: Why it would stay if it was to be removed now.
    stays: str | None = None


class WorktreeRemoved(Struct, frozen=True):
    """What became of a worktree that was to be removed."""

    id: str
    branch: str
    #: Whether it is gone, or would be.
    removed: bool
    #: Why it stays; of one that is gone, what of it could not be removed.
    reason: str | None
    bytes: int
    #: Where its receipt is, and what was saved of it beside its commits.
    preserved: str


class WorktreeRestored(Struct, frozen=True):
    """A worktree that is there again."""

    id: str
    path: str
    #: None: its HEAD is detached, as it was, or as its branch is used elsewhere.
    branch: str | None
    #: Files that are as they were and are not committed.
    uncommitted: int
    #: Files that came out of archives.
    unpacked: int
    notes: tuple[str, ...] = ()
