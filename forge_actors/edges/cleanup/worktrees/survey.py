"""Looking at a worktree without changing anything: its size, and what is in it."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.removal import Content, Receipt, why_in_use, why_it_stays
from forge_actors.edges.cleanup.folders import Folder, Unsafe
from forge_actors.edges.cleanup.worktrees.commits import commits_without_ref
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed
from forge_actors.edges.cleanup.worktrees.place import BEHIND, spot_of
from forge_actors.edges.cleanup.worktrees.saving import Saving

if TYPE_CHECKING:
    from forge_actors.domain.removal import Limits
    from forge_actors.domain.worktrees import Worktree
    from forge_actors.edges.cleanup.worktrees.place import Spot
    from forge_actors.edges.cleanup.worktrees.removal import Subject, UseFacts

#: Entries of one worktree that are measured.
MAX_ENTRIES = 2_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Survey(Struct, frozen=True):
    """What a worktree is at this moment."""

    there: bool
    #: Bytes on the disk; None: they were not counted.
    size: int = 0
    #: Files that are not committed, and commits that are on no other branch or remote.
    uncommitted: int = 0
    unpushed: int = 0
    #: Why it would stay if it was to be removed now.
    stays: str | None = None


def survey(
    home: Folder,
    subject: Subject,
    limits: Limits,
    facts: UseFacts,
    *,
    force: bool = False,
) -> Survey:
    """Look at a worktree. Whatever is wrong with it is why it would stay."""
    worktree = subject.worktree
    try:
        with spot_of(home, worktree.path) as spot:
            place = "gone" if spot.entry(spot.name) is None else spot.find(None)
            if place != "whole":
                return Survey(False)
            folders = (spot.path, f"{spot.path}{BEHIND}")
            stays = why_in_use(facts.use(worktree, folders))
            content = _content(spot, subject, limits)
            unpushed = _unpushed(subject)
    except (Unsafe, GitFailed) as problem:
        return Survey(True, stays=str(problem))
    except OSError as error:
        return Survey(True, stays=error.strerror or str(error))
    return Survey(
        True,
        size_of(home, worktree),
        content.uncommitted_files,
        unpushed,
        stays or why_it_stays(content, limits, force=force),
    )


def size_of(home: Folder, worktree: Worktree) -> int:
    """Bytes that a worktree takes on the disk; what cannot be read is not counted."""
    try:
        with spot_of(home, worktree.path) as spot, spot.opened(spot.name) as root:
            return _measure(root)
    except (Unsafe, OSError):
        return 0


def _measure(root: Folder) -> int:
    size = 0
    for count, (_, _, files, fd) in enumerate(os.fwalk(".", dir_fd=root.fd)):
        for name in files:
            try:
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                size += status.st_blocks * 512
        if count > MAX_ENTRIES:
            break
    return size


def _content(spot: Spot, subject: Subject, limits: Limits) -> Content:
    worktree = subject.worktree
    receipt = Receipt(
        worktree.id, worktree.repo, "", worktree.path, worktree.branch, 0.0
    )
    with tempfile.TemporaryDirectory(prefix="forge-actors-") as scratch:
        store = Folder(os.open(scratch, _FOLDER), scratch)
        with store, spot.opened(spot.name) as root:
            return Saving(store, spot, subject, receipt, limits).look(root)


def _unpushed(subject: Subject) -> int:
    if not subject.has_repository:
        return 0
    git = Git(subject.common_dir)
    branch = f"refs/heads/{subject.worktree.branch}"
    tip = git.commit_of(branch)
    return 0 if tip is None else len(commits_without_ref(git, [tip], branch))
