"""What a git program that was cut off has left: told apart from anybody's work.

A lock is removed only if nobody else takes locks of its name, and no process lives that
has to do with the worktree. A folder that was begun is gone on with only if git finds
nothing in it that differs from the commit it is to hold; else it is moved aside.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git.entries import entry_named, entry_of
from forge_actors.edges.git.living import busy_with
from forge_actors.edges.git.program import git

if TYPE_CHECKING:
    from forge_actors.domain.worktrees import Worktree, WorktreeWanted
    from forge_actors.edges.git.program import Done

#: Seconds that the lock of another git program is waited for.
LOCK_SECONDS = 15.0
#: Seconds between two tries, the first and the longest.
FIRST_PAUSE, LAST_PAUSE = 0.02, 0.5
#: Bytes of a list of changed files that is still looked through.
STATUS_BYTES = 16 << 20

_LOCKED = re.compile(r"'([^'\n]+\.lock)': File exists")
#: Another git program has just begun the entry of a worktree.
_BEGUN = re.compile(r"failed to read (\S+/worktrees/\S+)")
_FILTERED = re.compile(r"\b(?:clean|smudge|external) filter [^\n]{1,200} failed")
_FILTER_HINT = (
    "; install what this filter of the repository needs, or run the job in the checkout"
    " with --no-isolate"
)
_log = logging.getLogger(__name__)


class Tidying:
    """One try to make or to take back the worktree of one job."""

    def __init__(self, wanted: WorktreeWanted, known: Worktree) -> None:
        self._wanted = wanted
        self._known = known
        #: Locks that were removed.
        self.unlocked: list[str] = []

    async def git(
        self, *arguments: str, cwd: str | None = None, expected: int = 0
    ) -> Done:
        """Run git until no lock is in its way, in the folder or for the repository.

        Raises:
            WorktreeFailed: it fails for another reason, or the lock stays.
        """
        wanted, pause = self._wanted, FIRST_PAUSE
        place = () if cwd is not None else (f"--git-dir={wanted.common_dir}",)
        until = trio.current_time() + LOCK_SECONDS
        while True:
            done = await git(
                *place,
                *arguments,
                seconds=wanted.seconds,
                cwd=cwd,
                mark=wanted.folder,
                limit=STATUS_BYTES,
            )
            if done.code == expected:
                return done
            lock = _LOCKED.search(done.errors)
            if lock is not None and self.remove_lock(lock[1]):
                continue
            if lock is None and not _BEGUN.search(done.errors):
                words = done.words or f"it exited with {done.code}"
                hint = _FILTER_HINT if _FILTERED.search(done.errors) else ""
                raise WorktreeFailed(f"git {arguments[0]}: {words}{hint}")
            if trio.current_time() >= until:
                held = "an entry of a worktree" if lock is None else lock[1]
                raise WorktreeFailed(
                    f"git {arguments[0]}: another git program holds {held}, for longer"
                    f" than {LOCK_SECONDS:g} s; if none runs, remove that file"
                )
            await trio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)

    def remove_locks(self) -> None:
        """Remove what is locked of the worktree itself, if nobody can hold it."""
        entry = entry_named(self._wanted.folder, self._wanted.common_dir)
        with suppress(OSError):
            if entry is None:
                return
            with os.scandir(entry) as found:
                locks = [each.path for each in found if each.name.endswith(".lock")]
            for lock in locks:
                self.remove_lock(lock)

    def remove_lock(self, path: str) -> bool:
        """Remove a lock if it is of a git program of ours that has ended."""
        wanted, known = self._wanted, self._known
        path = os.path.abspath(path)
        entry = entry_named(wanted.folder, wanted.common_dir)
        ours = entry is not None and os.path.dirname(path) == entry
        if not ours and wanted.job in known.branch:
            ref = os.path.join(wanted.common_dir, "refs", "heads", known.branch)
            ours = path == f"{ref}.lock"
        if not ours or busy_with(wanted.job, wanted.folder) != ():
            return False
        with suppress(FileNotFoundError):
            os.unlink(path)
        _log.warning("removed %s, which a git program of ours had left", path)
        self.unlocked.append(path)
        return True

    async def clear(self) -> str | None:
        """Make room for the worktree, unless what is there is a part of it already.

        Returns where something was moved that is not.
        """
        folder, common = self._wanted.folder, self._wanted.common_dir
        aside: str | None = None
        if os.path.lexists(folder):
            self.remove_locks()
            if await self._is_untouched():
                return None
            if not _remove_empty(folder):
                aside = f"{folder}.left-{secrets.token_hex(4)}"
                os.rename(folder, aside)
                _log.warning("moved %s to %s: it is not as git left it", folder, aside)
        if entry_named(folder, common) is not None:
            # Twice: git marks one that it is making as locked.
            await self.git("worktree", "remove", "--force", "--force", folder)
        return aside

    async def _is_untouched(self) -> bool:
        """Whether git finds only what it has put there itself."""
        folder, known = self._wanted.folder, self._known
        try:
            entry_of(folder, self._wanted.common_dir)
            head = await self.git("symbolic-ref", "--quiet", "HEAD", cwd=folder)
            if head.text != f"refs/heads/{known.branch}":
                return False
            await self.git("read-tree", known.base_commit or "", cwd=folder)
            listing = ("--porcelain=v1", "-z", "--ignored=matching", "--no-renames")
            found = await self.git("status", *listing, "-uall", cwd=folder)
        except WorktreeFailed:
            return False
        # What is not checked out yet is missing; anything else is somebody's.
        lines = [line for line in found.out.split(b"\0") if line]
        return not found.cut and all(line.startswith(b" D") for line in lines)


def _remove_empty(folder: str) -> bool:
    """Remove a folder in which nothing is but the file that ties it to git."""
    with suppress(OSError):
        if os.path.islink(folder):
            return False
        with os.scandir(folder) as found:
            names = {entry.name for entry in found}
        if names <= {".git"}:
            for name in names:
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
            return True
    return False
