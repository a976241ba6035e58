"""What in a worktree would be lost with its folder: everything that no commit has."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.removal import Content, is_disposable
from forge_actors.edges.cleanup.worktrees.census import Census, Tree, Unreadable, take
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed
from forge_actors.edges.cleanup.worktrees.nested import (
    Nested,
    in_place_of_its_own,
    nested_in,
    outermost,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.domain.removal import Limits
    from forge_actors.edges.cleanup.folders import Folder

#: What git writes in place of a file that Git LFS keeps.
_LFS = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_LFS_BYTES = 1024
_PIECE = 1 << 20
#: A copy of the index of the user, and one of ours, beside the receipt.
SCRATCH = (".index", ".index.new")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Staged(NamedTuple):
    """An entry of an index: what git knows of one path."""

    mode: str
    oid: str
    stage: int
    path: str


class Contents(NamedTuple):
    """A worktree, sorted by what has to be done about it."""

    census: Census
    staged: tuple[Staged, ...]
    #: Tracked paths that are not looked for in the tree (sparse checkouts).
    skipped: frozenset[str]
    #: Tracked files that differ, and files that git does not know.
    changed: tuple[str, ...]
    #: Tracked paths of which nothing is left.
    deleted: frozenset[str]
    ignored: tuple[str, ...]
    #: Tracked files of which git stores another form, from which they cannot be made.
    filtered: tuple[str, ...]
    nested: tuple[Nested, ...]

    @property
    def unsaved_nested(self) -> tuple[Nested, ...]:
        return tuple(each for each in self.nested if each.problem is not None)

    def measured(self) -> Content:
        def size(paths: Iterable[str]) -> int:
            return sum(self.census.files[path].size for path in paths)

        return Content(
            uncommitted_files=len(self.changed) + len(self.deleted),
            uncommitted_bytes=size(self.changed),
            ignored_bytes=size(self.ignored) + size(self.filtered),
            nested_bytes=sum(each.size for each in self.unsaved_nested),
        )


def look(git: Git, root: Folder, index: str, limits: Limits) -> Contents:
    """Sort what is in the worktree of `git`; `index` is a copy of its index.

    Raises:
        Unreadable: what cannot be read cannot be saved.
        GitFailed: git cannot tell what it knows.
    """
    environment = {"GIT_INDEX_FILE": index}
    staged, skipped = _staged(git, environment)
    tracked = {entry.path for entry in staged}
    folders = {
        path[:place]
        for path in tracked
        for place, letter in enumerate(path)
        if letter == "/"
    }

    def is_ignored(folder: str) -> bool:
        return folder not in folders and bool(_ignored(git, [folder]))

    census = take(root, limits.disposable, is_ignored)
    nested = nested_in(git, root, census)
    inside = tuple(f"{each.path}/" for each in nested)
    present = {path for path in census.files if not path.startswith(inside)}
    modified = _modified(git, environment) | {
        entry.path for entry in staged if entry.stage
    }
    unknown = sorted(present - tracked)
    ignored = _ignored(git, unknown)
    disposed = {path for path in ignored if _may_be_made_again(path, limits)}
    gone = {
        entry.path
        for entry in staged
        if entry.mode != "160000"
        and entry.path not in present
        and entry.path not in skipped
    }
    known = present & tracked
    changed = (known & modified) | (set(unknown) - ignored)
    filtered = _filtered(git, Tree(root), census, staged, known - changed)
    return Contents(
        census=census,
        staged=staged,
        skipped=skipped - present,
        changed=tuple(sorted(changed)),
        deleted=frozenset(gone),
        ignored=tuple(sorted(ignored - disposed)),
        filtered=filtered,
        nested=nested,
    )


def everything(root: Folder, limits: Limits) -> Contents:
    """The same where no git can tell anything: all of it has to be saved.

    Raises:
        Unreadable: as `look`.
    """
    census = take(root, limits.disposable, lambda _: True)
    # A repository in it is a folder like any other, with its `.git`.
    inner = (whole(root, path) for path in outermost(census.nested))
    nested = (*in_place_of_its_own(root), *inner)
    inside = tuple(f"{each.path}/" for each in nested)
    files = (path for path in census.files if not path.startswith(inside))
    changed = tuple(path for path in files if not _may_be_made_again(path, limits))
    none: frozenset[str] = frozenset()
    return Contents(census, (), none, changed, none, (), (), nested)


def copy_index(admin: str, to: Folder) -> None:
    """Copy the index of a worktree, with its time: git trusts what is older than it."""
    for name in SCRATCH:
        for left in (name, f"{name}.lock"):
            with suppress(FileNotFoundError):
                os.unlink(left, dir_fd=to.fd)
    try:
        source = os.open(os.path.join(admin, "index"), _READ)
    except FileNotFoundError:
        return
    with open(source, "rb") as index:
        status = os.fstat(source)
        fd = os.open(SCRATCH[0], _NEW, 0o600, dir_fd=to.fd)
        with open(fd, "wb") as copy:
            shutil.copyfileobj(index, copy, _PIECE)
            copy.flush()
            os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))


def staged_in(git: Git, index: str) -> tuple[Staged, ...]:
    """The entries of the copy of an index.

    Raises:
        GitFailed: it cannot be read.
    """
    return _listed(git, {"GIT_INDEX_FILE": index})


def staged_bytes(
    git: Git, staged: Iterable[Staged], head: str | None, limits: Limits
) -> Iterator[tuple[str, bytes]]:
    """What is staged and is not in a commit, by its path.

    Raises:
        GitFailed: it cannot be read.
        Unreadable: it is too much.
    """
    listed = "" if head is None else git.run("ls-tree", "-r", "-z", head)
    known = {line.split()[2] for line in os.fsdecode(listed).split("\0") if line}
    size = 0
    for entry in staged:
        if entry.oid not in known and entry.mode != "160000":
            content = git.run("cat-file", "blob", entry.oid)
            size += len(content)
            if size > limits.archive_bytes:
                raise Unreadable("what is staged in it is too much for an archive")
            path = f"{entry.stage}/{entry.path}" if entry.stage else entry.path
            yield path, content


def _staged(
    git: Git, environment: dict[str, str]
) -> tuple[tuple[Staged, ...], frozenset[str]]:
    """The entries of the index, after what hides changes is taken off of them."""
    flags = git.run("ls-files", "-v", "-z", environment=environment)
    hidden, sparse = [], []
    for line in os.fsdecode(flags).split("\0"):
        if line and line[0].upper() == "S":
            sparse.append(line[2:])
        if line and line[0].islower():
            hidden.append(line[2:])
    for option, paths in (
        ("--no-assume-unchanged", hidden),
        ("--no-skip-worktree", sparse),
    ):
        if paths:
            text = os.fsencode("\0".join(paths) + "\0")
            git.run(
                *("update-index", option, "-z", "--stdin"),
                text=text,
                environment=environment,
            )
    return _listed(git, environment), frozenset(sparse)


def _listed(git: Git, environment: dict[str, str]) -> tuple[Staged, ...]:
    listed = git.run("ls-files", "--stage", "-z", environment=environment)
    entries = []
    for line in os.fsdecode(listed).split("\0"):
        if line:
            head, _, path = line.partition("\t")
            mode, oid, stage = head.split(" ")
            entries.append(Staged(mode, oid, int(stage), path))
    return tuple(entries)


def _modified(git: Git, environment: dict[str, str]) -> set[str]:
    told = git.run(
        *("diff-files", "--name-only", "--no-renames", "-z"),
        *("--no-ext-diff", "--ignore-submodules=all"),
        environment=environment,
    )
    return {path for path in os.fsdecode(told).split("\0") if path}


def _ignored(git: Git, paths: list[str]) -> set[str]:
    """Those of some paths, which are not tracked, that git was told to ignore."""
    if not paths:
        return set()
    # A name that begins with a colon would mean something else.
    text = os.fsencode("".join(f"./{path}\0" for path in paths))
    told = git.run(
        *("check-ignore", "--no-index", "-z", "--stdin"), text=text, allowed=(0, 1)
    )
    return {path.removeprefix("./") for path in os.fsdecode(told).split("\0") if path}


def _may_be_made_again(path: str, limits: Limits) -> bool:
    return is_disposable(path, limits.disposable)


def _filtered(
    git: Git,
    tree: Tree,
    census: Census,
    staged: tuple[Staged, ...],
    clean: set[str],
) -> tuple[str, ...]:
    """Files whose bytes are in no object, since a filter made others of them."""
    if not git.filters or not clean:
        return ()
    text = os.fsencode("\0".join(sorted(clean)) + "\0")
    told = git.run("check-attr", "-z", "--stdin", "filter", text=text)
    words = os.fsdecode(told).split("\0")
    through = {
        path
        for path, value in zip(words[0::3], words[2::3], strict=False)
        if value in git.filters
    }
    oids = {entry.path: entry.oid for entry in staged if entry.path in through}
    kept = []
    for path in sorted(through):
        if census.files[path].is_link:
            continue
        digest, sha256 = _hashes(tree, path, census.files[path].size, oids[path])
        if digest != oids[path] and not _in_lfs(git, oids[path], sha256):
            kept.append(path)
    return tuple(kept)


def _hashes(tree: Tree, path: str, size: int, oid: str) -> tuple[str, str]:
    """The name that a file would have as a blob, and its SHA-256."""
    blob = hashlib.new("sha256" if len(oid) == 64 else "sha1", usedforsecurity=False)
    blob.update(f"blob {size}\0".encode())
    plain = hashlib.sha256()
    with open(tree.open(path), "rb") as file:
        while piece := file.read(_PIECE):
            blob.update(piece)
            plain.update(piece)
    return blob.hexdigest(), plain.hexdigest()


def _in_lfs(git: Git, oid: str, sha256: str) -> bool:
    """Whether a blob is the pointer to content that Git LFS has here."""
    try:
        pointer = git.run("cat-file", "blob", oid)
    except GitFailed:
        return False
    found = _LFS.search(pointer[:_LFS_BYTES])
    if found is None or found[1].decode() != sha256:
        return False
    common = git.run("rev-parse", "--path-format=absolute", "--git-common-dir")
    place = os.fsdecode(common.removesuffix(b"\n"))
    return os.path.isfile(
        os.path.join(place, "lfs", "objects", sha256[:2], sha256[2:4], sha256)
    )
