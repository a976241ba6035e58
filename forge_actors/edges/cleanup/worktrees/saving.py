"""Saving what is in a worktree: commits, refs and archives, and their proof."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.removal import Content
from forge_actors.edges.cleanup.folders import Folder
from forge_actors.edges.cleanup.worktrees import commits, entries, packing
from forge_actors.edges.cleanup.worktrees.census import (
    Census,
    Unreadable,
    take,
    take_whole,
)
from forge_actors.edges.cleanup.worktrees.checkpoint import Maker
from forge_actors.edges.cleanup.worktrees.contents import (
    SCRATCH,
    Contents,
    copy_index,
    everything,
    look,
    staged_bytes,
    staged_in,
)
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed, lent
from forge_actors.edges.cleanup.worktrees.nested import MODULES, modules_in
from forge_actors.edges.cleanup.worktrees.objects import read_back
from forge_actors.edges.cleanup.worktrees.packing import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.domain.removal import Archive, Limits, Receipt
    from forge_actors.edges.cleanup.worktrees.nested import Nested
    from forge_actors.edges.cleanup.worktrees.place import Spot
    from forge_actors.edges.cleanup.worktrees.removal import Subject

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Moment(NamedTuple):
    """What git had of a worktree when that was looked at."""

    head_ref: str | None
    head: str | None
    stamp: tuple[int, int, int] | None


class Saving:
    """What is saved of one worktree, by one try to remove it."""

    def __init__(
        self,
        store: Folder,
        spot: Spot,
        subject: Subject,
        receipt: Receipt,
        limits: Limits,
    ) -> None:
        self._store = store
        #: The copy of an index, and one of ours, by paths that lead nowhere else.
        self._index, self._scratch = (lent(store.fd, name) for name in SCRATCH)
        self._subject = subject
        self._receipt = receipt
        self._limits = limits
        self._common: Git | None = None
        self._admin: str | None = None
        if subject.has_repository:
            self._common = Git(subject.common_dir)
            name = receipt.entry or entries.entry_of(subject.common_dir, spot.path)
            if name is not None:
                receipt.entry = name
                self._admin = entries.entry_path(subject.common_dir, name)
        self._path = spot.path
        self._git: Git | None = None
        self._contents: Contents | None = None
        self._moment: Moment | None = None
        #: The commit of what was staged where there is no checkpoint.
        self._staged: str | None = None
        #: What was staged where no commit could be made of it.
        self._staged_bytes: dict[str, bytes] = {}
        #: Why no commit could hold what was not committed.
        self._uncommittable: str | None = None

    @property
    def is_locked(self) -> bool:
        """Whether a person has told git to leave the worktree alone."""
        # Git itself locks one that it makes, and a crash leaves that.
        why = None if self._admin is None else entries.lock_of(self._admin)
        return why not in (None, "initializing")

    def look(self, root: Folder) -> Content:
        """How much would be lost, and what of it cannot be saved."""
        try:
            self._look(root)
        except Unreadable as problem:
            return Content(unreadable=str(problem))
        assert self._contents is not None
        return self._contents.measured()

    def _look(self, root: Folder) -> None:
        self._moment = self._now()
        if self._admin is not None and os.path.isdir(self._admin):
            try:
                fds = (self._store.fd,)
                self._git = Git(self._admin, self._path, lends=fds)
                self._contents = self._looked_at(self._git, root)
            except GitFailed as problem:
                self._uncommittable = str(problem)
            else:
                self._receipt.head_ref = self._moment.head_ref
                self._receipt.head = self._moment.head
                return
        self._git = None
        self._contents = everything(root, self._limits)

    def _looked_at(self, git: Git, root: Folder) -> Contents:
        copy = self._index
        copy_index(git.git_dir, self._store)
        try:
            return look(git, root, copy, self._limits)
        except GitFailed:
            # An index that is damaged is made anew, as if nothing had been staged.
            head = git.commit_of("HEAD")
            if head is None:
                raise
            os.unlink(copy)
            git.run("read-tree", head, environment={"GIT_INDEX_FILE": copy})
            return look(git, root, copy, self._limits)

    def _now(self) -> Moment:
        """What git has of it now. What no git can read is as nothing."""
        if self._common is None or self._admin is None:
            return Moment(None, None, None)
        name = os.path.basename(self._admin)
        head = self._common.commit_of(f"worktrees/{name}/HEAD")
        try:
            status = os.stat(os.path.join(self._admin, "index"))
            stamp = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        except OSError:
            return Moment(entries.head_ref(self._admin), head, None)
        return Moment(entries.head_ref(self._admin), head, stamp)

    def save(self, root: Folder, now: float) -> str:
        """Make the checkpoint of what is there by now."""
        if self._contents is None or not self.is_unchanged(root):
            self._look(root)
        if self._git is None or self._common is None:
            why = self._uncommittable or "its repository is gone"
            return f"there is no checkpoint: {why}"
        assert self._contents is not None
        maker = Maker(self._git, root, self._scratch, now)
        worktree = self._receipt.id
        try:
            known = commits.kept_refs(self._common, worktree).values()
            head = self._receipt.head
            made = maker.make(self._contents, head, worktree, known)
        except GitFailed as problem:
            self._uncommittable = str(problem)
            self._keep_staged(self._git, maker)
            return f"there is no checkpoint: {problem}"
        self._receipt.checkpoint = made
        return "nothing was uncommitted" if made is None else f"commit {made.commit}"

    def _keep_staged(self, git: Git, maker: Maker) -> None:
        """Keep what was staged by itself: as a commit, or else for an archive."""
        assert self._contents is not None
        staged, head = self._contents.staged, self._receipt.head
        try:
            self._staged = maker.staged(staged, head, self._receipt.id)
        except GitFailed:
            self._staged_bytes = dict(staged_bytes(git, staged, head, self._limits))

    def archive(self, root: Folder, *, force: bool) -> str:
        """Put into archives what no commit holds."""
        contents = self._contents
        assert contents is not None
        files = [Part(root, path, f"tree/{path}") for path in self._uncommitted()]
        files += [
            Part(root, path, f"staged/{path}", content)
            for path, content in self._staged_bytes.items()
        ]
        for nested in contents.unsaved_nested:
            files += [Part(root, path, f"tree/{path}") for path in nested.files]
        ignored = sorted((*contents.ignored, *contents.filtered))
        if force:
            kept = self._that_fit(contents.census, ignored)
            self._receipt.given_up = len(ignored) - len(kept)
            ignored = kept
        archives = []
        with self._entry() as entry:
            if entry is not None:
                files += self._modules(entry, contents.nested)
            if files:
                archives.append(packing.pack(self._store, "files", files))
            if ignored:
                parts = [Part(root, path, f"tree/{path}") for path in ignored]
                archives.append(packing.pack(self._store, "ignored", parts))
            if entry is not None:
                archives.append(self._pack_state(entry))
        self._receipt.archives = archives
        return self._told()

    def archive_entry(self, now: float) -> str:
        """The same of a worktree whose folder is gone: what git has of it."""
        self._moment = self._now()
        self._receipt.head_ref = self._moment.head_ref
        self._receipt.head = self._moment.head
        with self._entry() as entry:
            if entry is None or self._admin is None:
                return "there is nothing left of it"
            self._staged = self._commit_staged(self._admin, entry, now)
            files = self._modules(entry, modules_in(self._admin))
            archives = [packing.pack(self._store, "files", files)] if files else []
            archives.append(self._pack_state(entry))
        self._receipt.archives = archives
        return self._told()

    def _commit_staged(self, admin: str, entry: Folder, now: float) -> str | None:
        """The commit of what was staged in a worktree that has no folder any more."""
        copy_index(admin, self._store)
        try:
            git = Git(admin, lends=(self._store.fd,))
            maker = Maker(git, entry, self._scratch, now)
            head = self._receipt.head
            return maker.staged(staged_in(git, self._index), head, self._receipt.id)
        except GitFailed:
            return None  # its bytes are in the archive

    def _uncommitted(self) -> tuple[str, ...]:
        """The files of which a commit should have been made, and was not."""
        contents = self._contents
        assert contents is not None
        made = self._git is not None and self._uncommittable is None
        return () if made else contents.changed

    def _that_fit(self, census: Census, paths: list[str]) -> list[str]:
        """As many of some files as may be archived, the smallest ones first."""
        left = self._limits.archive_bytes
        found = []
        for path in sorted(paths, key=lambda path: census.files[path].size):
            left -= census.files[path].size
            if left < 0:
                break
            found.append(path)
        return sorted(found)

    @contextmanager
    def _entry(self) -> Iterator[Folder | None]:
        """The entry of the worktree in its repository, open."""
        if self._admin is None:
            yield None
            return
        try:
            fd = os.open(self._admin, _FOLDER)
        except OSError:
            yield None
            return
        with Folder(fd, self._admin) as folder:
            yield folder

    def _modules(self, entry: Folder, nested: Iterable[Nested]) -> list[Part]:
        """The repositories of submodules that have something of their own."""
        parts = {}
        for each in nested:
            if each.module and each.problem is not None:
                path = f"{MODULES}/{each.module}"
                for file in take_whole(entry, path):
                    parts[file] = Part(entry, file, f"git/{file}")
        return list(parts.values())

    def _pack_state(self, entry: Folder) -> Archive:
        files = entries.state_files(entry.path)
        parts = [Part(entry, path, f"git/{path}") for path in files]
        return packing.pack(self._store, "git", parts)

    def _told(self) -> str:
        return ", ".join(
            f"{archive.name}: {archive.files} files, sha256 {archive.sha256}"
            for archive in self._receipt.archives
        )

    def keep(self) -> str:
        """Have refs, or a bundle, hold every commit that only the worktree has."""
        git = self._common
        if git is None:
            return "its repository is gone"
        wanted = self._commits(git)
        branch = f"refs/heads/{self._receipt.branch}"
        tips = commits.tips_without_ref(git, wanted.values(), branch)
        names = {oid: name for name, oid in reversed(wanted.items())}
        named = {names[tip]: tip for tip in tips}
        try:
            self._receipt.refs = commits.keep(git, self._receipt.id, named)
            self._receipt.bundle = None
        except GitFailed:
            self._receipt.refs = []
            self._receipt.bundle = commits.bundle(git, self._store, named)
            return f"{len(named)} commits are in {self._receipt.bundle.name}"
        return f"{len(named)} commits have a ref of ours"

    def _commits(self, git: Git) -> dict[str, str]:
        """Every commit that the worktree knows of, by the name that its ref gets."""
        receipt = self._receipt
        named: dict[str, str | None] = {}
        if receipt.checkpoint is not None:
            named["checkpoint"] = receipt.checkpoint.commit
        named["staged"] = self._staged
        named["head"] = receipt.head
        named["branch"] = git.commit_of(f"refs/heads/{receipt.branch}")
        found = {name: oid for name, oid in named.items() if oid is not None}
        common = self._subject.common_dir
        inner = entries.entries_below(common, self._path)
        places = [entries.entry_path(common, name) for name in inner]
        if self._admin is not None:
            places.append(self._admin)
        mentioned = {oid for place in places for oid in entries.mentioned(place)}
        others = commits.existing(git, mentioned) - set(found.values())
        return {**found, **{oid: oid for oid in sorted(others)}}

    def prove(self) -> str:
        """Read everything that was saved, as if there was nothing else any more.

        Raises:
            GitFailed, ArchiveDamaged: something of it is not what it should be.
        """
        receipt = self._receipt
        archives = list(receipt.archives)
        for archive in archives:
            packing.check(self._store, archive)
        proof = f"{len(archives)} archives have their hashes"
        git = self._common
        if git is None:
            if receipt.refs or receipt.bundle is not None:
                raise GitFailed("its repository is gone, and with it what it has kept")
            return proof
        if receipt.bundle is not None:
            commits.check_bundle(git, self._store, receipt.bundle)
            return f"{proof}, the bundle is whole"
        now = commits.kept_refs(git, receipt.id)
        for kept in receipt.refs:
            if now.get(kept.ref) != kept.commit:
                raise GitFailed(f"the ref {kept.ref} is gone")
        branch = f"refs/heads/{receipt.branch}"
        tips = [kept.commit for kept in receipt.refs]
        needed = commits.tips_without_ref(git, self._commits(git).values(), branch)
        if lost := set(needed) - set(tips):
            raise GitFailed(f"no ref holds the commit {min(lost)}")
        excluded = (f"--exclude={commits.KEPT}/*", f"--exclude={branch}")
        count = read_back(git, tips, (*excluded, "--glob=refs/*"))
        return f"{proof}, {count} objects were read back"

    def tidy(self) -> None:
        """Remove what was needed only to save."""
        for name in SCRATCH:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._store.fd)

    def is_unchanged(self, root: Folder) -> bool:
        """Whether the worktree is what it was when it was looked at."""
        before = self._contents
        assert before is not None
        disposable = self._limits.disposable
        census = take(root, disposable, lambda path: path in before.census.left_out)
        if census != before.census:
            return False
        for nested in before.nested:
            if nested.files and take_whole(root, nested.path) != nested.files:
                return False
        return self._moment is None or self._now() == self._moment
