"""One removal of one worktree, by steps that can be cut short anywhere."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import structs

from forge_actors.domain.removal import (
    Receipt,
    Step,
    Taken,
    after,
    begin_with,
    why_in_use,
    why_it_stays,
)
from forge_actors.edges.cleanup.folders import Folder, Unsafe, shown
from forge_actors.edges.cleanup.walking import ASIDE, Remover
from forge_actors.edges.cleanup.worktrees import branches, entries, receipts
from forge_actors.edges.cleanup.worktrees.census import Unreadable
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed
from forge_actors.edges.cleanup.worktrees.packing import ArchiveDamaged
from forge_actors.edges.cleanup.worktrees.place import Spot, spot_of
from forge_actors.edges.cleanup.worktrees.saving import Saving

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from forge_actors.domain.removal import Limits, Use
    from forge_actors.domain.worktrees import Worktree

#: How often a worktree is saved anew that has changed while it was saved.
ROUNDS = 3


class Subject(NamedTuple):
    """A worktree, and where its repository was when that was looked at last."""

    worktree: Worktree
    common_dir: str
    device: int
    inode: int

    @property
    def has_repository(self) -> bool:
        """Whether that repository is still there, and no other one in its place."""
        try:
            status = os.stat(self.common_dir)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (self.device, self.inode)


class Outcome(NamedTuple):
    """What a removal came to."""

    gone: bool
    #: Why it stays; of one that is gone, what of it could not be removed.
    reason: str | None
    bytes: int = 0


class UseFacts(Protocol):
    """What a look at a worktree has to be told."""

    def use(self, worktree: Worktree, folders: tuple[str, ...]) -> Use:
        """What uses a worktree at this moment."""


class Facts(UseFacts, Protocol):
    """What a removal has to be told, again and again while it goes on."""

    def record(self, worktree: Worktree, step: str) -> None:
        """Save what is known of it; durable when this returns."""

    def now(self) -> float: ...


class Stays(Exception):
    """The worktree has to stay, and why."""


class Changed(Exception):
    """What was saved is not what is there any more."""


class Removal:
    """Removes one worktree of a home, or goes on where an earlier try has ended."""

    def __init__(
        self,
        home: Folder,
        subject: Subject,
        limits: Limits,
        facts: Facts,
        *,
        force: bool = False,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._home = home
        self._subject = subject
        self._worktree = subject.worktree
        self._limits = limits
        self._facts = facts
        self._force = force
        self._may_go_on = may_go_on
        self._receipt = self._new_receipt()
        #: Whether that is the one of this removal.
        self._has_begun = False
        self._bytes = 0
        #: What could not be removed.
        self._left: str | None = None

    def run(self) -> Outcome:
        """Take all steps that are left. What is in the way is the reason to stay."""
        try:
            with (
                spot_of(self._home, self._worktree.path) as spot,
                self._opened_store() as store,
            ):
                self._store, self._spot = store, spot
                for left in reversed(range(ROUNDS)):
                    try:
                        self._run(spot)
                        return Outcome(True, self._left, self._bytes)
                    except Changed:
                        if not left:
                            raise Stays("it changes while it is saved") from None
        except (Stays, Unsafe, Unreadable, GitFailed, ArchiveDamaged) as problem:
            reason = str(problem)
        except OSError as error:
            name = "" if error.filename is None else f"{shown(str(error.filename))}: "
            reason = f"{name}{error.strerror or error}"
        return self._stay(reason)

    def _opened_store(self) -> AbstractContextManager[Folder]:
        return receipts.preserved(self._home, self._worktree.id)

    def _stay(self, reason: str) -> Outcome:
        if self._has_begun and not self._begun():
            self._receipt.tried_at, self._receipt.reason = self._facts.now(), reason
            with suppress(OSError), self._opened_store() as store:
                receipts.write(store, self._receipt)
        now = structs.replace(self._worktree, reason=reason)
        if now.state == "removing" and self._has_begun and not self._begun():
            now = structs.replace(now, state="ready")
        if now != self._worktree:
            self._facts.record(now, "stays")
        return Outcome(False, reason)

    def _begun(self) -> bool:
        """Whether content may be missing in the folder."""
        return self._receipt.has("removing")

    def _run(self, spot: Spot) -> None:
        known = receipts.read(self._store)
        place = spot.find(known)
        step: Step | None = begin_with(known, place)
        if place == "aside" and step == "looked":
            spot.put_back()
        if known is not None and step in ("removing", "branch"):
            self._receipt = known
        else:
            self._receipt = self._new_receipt()
        self._has_begun = True
        if step not in ("removing", "branch"):
            self._receipt.tried_at = self._facts.now()
            receipts.write(self._store, self._receipt)
        self._saving = Saving(
            self._store, spot, self._subject, self._receipt, self._limits
        )
        if step in ("removing", "branch"):
            self._saving.prove()
        if step == "archived":
            self._lock()
        while step is not None:
            if not self._may_go_on() and not self._begun():
                raise Stays("there was no time left")
            self._take(step)
            step = after(step)

    def _new_receipt(self) -> Receipt:
        subject, worktree = self._subject, self._worktree
        return Receipt(
            id=worktree.id,
            repo=worktree.repo,
            common_dir=subject.common_dir,
            path=worktree.path,
            branch=worktree.branch,
            begun_at=self._facts.now(),
            base_commit=worktree.base_commit,
        )

    def _take(self, step: Step) -> None:
        """Take one step, and write down that it was taken."""
        if step == "removing":
            # Before and not after it, as content is missing from its first moment.
            self._write(step, "")
        proof = getattr(self, f"_{step}")()
        if step != "removing":
            self._write(step, proof or "")

    def _write(self, step: Step, proof: str) -> None:
        if not (step == "removing" and self._receipt.has("removing")):
            self._receipt.steps.append(Taken(step, self._facts.now(), proof))
        receipts.write(self._store, self._receipt)

    def _looked(self) -> str:
        with self._spot.opened(self._spot.name) as root:
            self._receipt.device, self._receipt.inode = root.identity
            self._refuse_use()
            if self._saving.is_locked and not self._force:
                raise Stays(f"it is locked: git worktree unlock {self._spot.path}")
            content = self._saving.look(root)
        reason = why_it_stays(content, self._limits, force=self._force)
        if reason is not None:
            raise Stays(reason)
        return f"{content.uncommitted_files} files are not committed"

    def _refuse_use(self) -> None:
        folders = (self._spot.path, f"{self._spot.path}.removing")
        reason = why_in_use(self._facts.use(self._worktree, folders))
        if reason is not None:
            raise Stays(reason)

    def _locked(self) -> str:
        self._lock()
        self._refuse_use()
        return "no job can start in it"

    def _lock(self) -> None:
        locked = structs.replace(self._worktree, state="removing", reason=None)
        if locked != self._worktree:
            self._facts.record(locked, "removing")
            self._worktree = locked

    def _saved(self) -> str:
        with self._spot.opened(self._spot.name) as root:
            return self._saving.save(root, self._facts.now())

    def _archived(self) -> str:
        if self._spot.find(self._receipt) == "gone":
            return self._saving.archive_entry(self._facts.now())
        with self._spot.opened(self._spot.name) as root:
            return self._saving.archive(root, force=self._force)

    def _kept(self) -> str:
        return self._saving.keep()

    def _proven(self) -> str:
        proof = self._saving.prove()
        if self._spot.find(self._receipt) == "whole":
            with self._spot.opened(self._spot.name) as root:
                if not self._saving.is_unchanged(root):
                    raise Changed
        return proof

    def _aside(self) -> str:
        if self._spot.find(self._receipt) == "gone":
            return "somebody else has removed it"
        self._spot.put_aside()
        try:
            self._refuse_use()
            with self._spot.opened(self._spot.aside_name) as root:
                if root.identity != (self._receipt.device, self._receipt.inode):
                    raise Stays("it was exchanged for something else")
                if not self._saving.is_unchanged(root):
                    raise Changed
        except BaseException:
            self._spot.put_back()
            raise
        return "nothing uses it, and nothing has changed"

    def _removing(self) -> str:
        found = self._spot.find(self._receipt)
        name = self._spot.aside_name if found == "aside" else self._spot.name
        entry = self._spot.entry(name)
        if entry is None:
            return ""
        with self._home.make_folder(ASIDE) as aside:
            done = Remover(aside, self._may_go_on).remove(self._spot.parent, entry)
        self._bytes += done.bytes
        if not done.gone:
            raise Stays(done.reason or "it cannot be removed")
        if done.left:
            self._left = f"{done.left[0].path}: {done.left[0].reason}"
        return ""

    def _removed(self) -> str:
        if self._spot.entry(self._spot.name) is not None:
            raise Stays("something else was put in its place")
        if self._spot.entry(self._spot.aside_name) is not None:
            raise Stays("it cannot be removed")
        return "nothing is there any more"

    def _branch(self) -> str:
        if not self._subject.has_repository:
            return "its repository is gone"
        return branches.settle(
            Git(self._subject.common_dir), self._receipt, self._worktree
        )

    def _pruned(self) -> str:
        name = self._receipt.entry
        common = self._subject.common_dir
        if name is None or not self._subject.has_repository:
            return "it has no entry"
        if not entries.still_of(common, name, self._spot.path):
            return "its entry is gone"
        place = os.path.join(common, "worktrees")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            Folder(os.open(place, flags), place) as folder,
            self._home.make_folder(ASIDE) as aside,
        ):
            entry = folder.entry(name)
            if entry is not None:
                done = Remover(aside).remove(folder, entry)
                if not done.gone:
                    raise Stays(f"git still lists it: {done.reason}")
        return "git does not list it any more"

    def _closed(self) -> str:
        self._saving.tidy()
        now = structs.replace(
            self._worktree,
            state="removed",
            kept=False,
            reason=self._left,
            removed_at=self._facts.now(),
        )
        self._facts.record(now, "removed")
        self._worktree = now
        return "removed"
