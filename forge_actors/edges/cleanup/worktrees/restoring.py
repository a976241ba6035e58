"""Making a worktree again from what was saved of it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.worktree_views import WorktreeRestored
from forge_actors.edges.cleanup.folders import Folder, Unsafe, opened_home
from forge_actors.edges.cleanup.worktrees import commits, entries, packing, receipts
from forge_actors.edges.cleanup.worktrees.branches import checked_out
from forge_actors.edges.cleanup.worktrees.checkpoint import CONFLICTS
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed
from forge_actors.edges.cleanup.worktrees.planting import BadPath, Planter, unpack

if TYPE_CHECKING:
    from forge_actors.domain.removal import Receipt
    from forge_actors.edges.cleanup.worktrees.removal import Subject

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODES = {"100644": 0o644, "100755": 0o755}


def restore(home: str, subject: Subject, to: str) -> WorktreeRestored:
    """Make the worktree again at `to`, where nothing may be yet.

    Raises:
        NotFound: nothing was saved of it. Refused: it cannot be made, and why.
    """
    worktree = subject.worktree
    if os.path.lexists(to):
        raise Refused(f"{to} is there already; name another place with --to")
    try:
        with opened_home(home) as opened, receipts.found(opened, worktree.id) as store:
            receipt = None if store is None else receipts.read(store)
            if store is None or receipt is None or receipt.closed_at is None:
                raise NotFound(f"nothing was saved of the worktree {worktree.id}")
            for archive in receipt.archives:
                packing.check(store, archive)
            return _Restoring(store, subject, receipt, to).run()
    except (GitFailed, Unsafe, BadPath, packing.ArchiveDamaged) as problem:
        raise Refused(f"the worktree {worktree.id}: {problem}") from None
    except OSError as error:
        raise Refused(f"the worktree {worktree.id}: {error.strerror}") from None


class _Restoring:
    def __init__(
        self, store: Folder, subject: Subject, receipt: Receipt, to: str
    ) -> None:
        self._store = store
        self._subject = subject
        self._receipt = receipt
        self._to = to
        self._notes: list[str] = []

    def run(self) -> WorktreeRestored:
        branch, uncommitted = None, 0
        if self._subject.has_repository and self._receipt.entry is not None:
            git = Git(self._subject.common_dir)
            branch = self._add(git)
            uncommitted = self._fill()
        else:
            os.makedirs(self._to, mode=0o700)
            self._notes.append("its repository is gone: these are only its files")
        root = os.open(self._to, _FOLDER)
        try:
            unpacked = self._unpack(Planter(root))
        finally:
            os.close(root)
        return WorktreeRestored(
            self._receipt.id,
            self._to,
            branch,
            uncommitted,
            unpacked,
            tuple(self._notes),
        )

    def _add(self, git: Git) -> str | None:
        """Have git make the worktree; the branch that it is at."""
        receipt = self._receipt
        if receipt.bundle is not None:
            self._fetch(git)
        head = receipt.head or git.commit_of(f"refs/heads/{receipt.branch}")
        if head is None or not commits.existing(git, [head]):
            raise GitFailed("its commits are not in the repository any more")
        branch = self._branch(git, head)
        place = (self._to, branch) if branch else ("--detach", self._to, head)
        git.run("worktree", "add", "--quiet", "--no-checkout", *place)
        return branch

    def _branch(self, git: Git, head: str) -> str | None:
        """The branch that it had, moved back from its checkpoint; None if that cannot
        be its own any more."""
        receipt = self._receipt
        ref = f"refs/heads/{receipt.branch}"
        if receipt.head_ref != ref:
            return None
        tip = git.commit_of(ref)
        checkpoint = receipt.checkpoint.commit if receipt.checkpoint else None
        if tip not in (None, head, checkpoint):
            self._notes.append(f"the branch {receipt.branch} has gone on")
            return None
        if tip is not None and checked_out(git, ref, None):
            self._notes.append(f"the branch {receipt.branch} is checked out elsewhere")
            return None
        why = f"restored the worktree {receipt.id}"
        git.run("update-ref", "-m", why, ref, head, tip or "0" * len(head))
        return receipt.branch

    def _fetch(self, git: Git) -> None:
        assert self._receipt.bundle is not None
        with commits.opened_bundle(git, self._store, self._receipt.bundle) as (
            reader,
            path,
        ):
            reader.run("bundle", "unbundle", path)

    def _fill(self) -> int:
        """The files of its HEAD, then those that were not committed, then the index."""
        name = entries.entry_of(self._subject.common_dir, os.path.realpath(self._to))
        if name is None:
            raise GitFailed("git does not list the new worktree")
        admin = entries.entry_path(self._subject.common_dir, name)
        # These files go through the filters of the user, as in any checkout.
        Git(admin, self._to, filtering=True).run("read-tree", "-u", "--reset", "HEAD")
        git = Git(admin, self._to)
        checkpoint = self._receipt.checkpoint
        if checkpoint is None:
            return 0
        told = git.run(
            *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"),
            *("HEAD", checkpoint.commit),
        )
        words = os.fsdecode(told).split("\0")
        root = os.open(self._to, _FOLDER)
        try:
            planter = Planter(root)
            # What gives way first, so that a folder can be where a file was.
            changes = sorted(
                zip(words[0::2], words[1::2], strict=False),
                key=lambda change: not change[0].endswith("D"),
            )
            for change, path in changes:
                _, mode, _, oid, _ = change.split(" ")
                _plant(git, planter, path, mode, oid)
        finally:
            os.close(root)
        if checkpoint.index is not None:
            self._fill_index(git, checkpoint.index)
        return len(changes)

    def _fill_index(self, git: Git, commit: str) -> None:
        """What was staged is staged again, the sides of a conflict included."""
        told = git.run("ls-tree", "-r", "-z", commit)
        sides = []
        for line in os.fsdecode(told).split("\0"):
            head, _, path = line.partition("\t")
            if path.startswith(f"{CONFLICTS}/"):
                mode, _, oid = head.split(" ")
                _, stage, path = path.split("/", 2)
                sides.append((path, f"{mode} {oid} {stage}\t{path}"))
        git.run("read-tree", commit)
        if sides:
            git.run(*("rm", "-r", "-q", "--cached", "--"), CONFLICTS)
            text = os.fsencode("".join(f"{line}\0" for _, line in sides))
            git.run("update-index", "-z", "--index-info", text=text)
            self._notes.append("what was merged or rebased has to be begun again")
        git.run("update-index", "-q", "--refresh", allowed=(0, 1))

    def _unpack(self, planter: Planter) -> int:
        count = 0
        for archive in self._receipt.archives:
            count += unpack(self._store, archive, "tree/", planter)
        if self._receipt.head_ref is None and self._receipt.entry is not None:
            place = os.path.join(self._store.path, "git.tar")
            self._notes.append(f"it was at no branch; what git had of it is in {place}")
        return count


def _plant(git: Git, planter: Planter, path: str, mode: str, oid: str) -> None:
    if mode == "000000":
        planter.remove(path)
    elif mode == "120000":
        planter.link(path, git.run("cat-file", "blob", oid))
    elif mode in _MODES:
        content = io.BytesIO(git.run("cat-file", "blob", oid))
        planter.file(path, _MODES[mode], content)
