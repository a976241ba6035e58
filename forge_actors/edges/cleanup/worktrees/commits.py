"""Commits that only a worktree has: refs of ours keep them, or else a bundle."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from forge_actors.domain.removal import Archive, KeptRef
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed, lent
from forge_actors.edges.cleanup.worktrees.packing import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.domain.removal import Receipt
    from forge_actors.edges.cleanup.folders import Folder

#: Where our refs are, below them one folder a worktree.
KEPT = "refs/forge-actors/kept"
BUNDLE = "commits.bundle"
_PIECE = 1 << 20


def existing(git: Git, names: Iterable[str]) -> set[str]:
    """Those of some names that are commits of the repository."""
    text = "".join(f"{name}\n" for name in sorted(names)).encode()
    if not text:
        return set()
    told = git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", text=text)
    lines = (line.split() for line in told.decode().splitlines())
    return {line[0] for line in lines if line[1:] == ["commit"]}


def tips_without_ref(git: Git, commits: Iterable[str], *without: str) -> list[str]:
    """Of some commits those that keep the others, and that no ref holds.

    Refs of ours do not count, nor those named by `without`.
    """
    rows = commits_without_ref(git, commits, *without)
    parents = {parent for row in rows for parent in row[1:]}
    return [row[0] for row in rows if row[0] not in parents]


def commits_without_ref(
    git: Git, commits: Iterable[str], *without: str
) -> list[list[str]]:
    """Everything that some commits reach and such a ref does not, with its parents."""
    wanted = sorted(commits)
    if not wanted:
        return []
    excluded = [f"--exclude={ref}" for ref in (f"{KEPT}/*", *without)]
    told = git.run(
        *("rev-list", "--parents", "--stdin", "--not", *excluded, "--glob=refs/*"),
        text="".join(f"{commit}\n" for commit in wanted).encode(),
    )
    return [line.split() for line in told.decode().splitlines()]


def kept_refs(git: Git, worktree: str) -> dict[str, str]:
    """The refs that we have made for a worktree, and their commits."""
    told = git.run(
        *("for-each-ref", "--format=%(refname) %(objectname)"), f"{KEPT}/{worktree}/"
    )
    return dict(line.rsplit(" ", 1) for line in told.decode().splitlines())


def keep(git: Git, worktree: str, commits: Mapping[str, str]) -> list[KeptRef]:
    """Make a ref for each of some commits, given by the names of these refs.

    What an earlier try has kept under such a name goes on under another one.

    Raises:
        GitFailed: none of them was made.
    """
    found = kept_refs(git, worktree)
    wanted = {f"{KEPT}/{worktree}/{name}": oid for name, oid in commits.items()}
    for ref, oid in found.items():
        if wanted.get(ref, oid) != oid and oid not in wanted.values():
            wanted[f"{KEPT}/{worktree}/{oid}"] = oid
    text = "".join(f"update {ref} {oid}\n" for ref, oid in wanted.items())
    if text:
        git.run("update-ref", "--stdin", text=text.encode())
    now = kept_refs(git, worktree)
    for ref, oid in wanted.items():
        if now.get(ref) != oid:
            raise GitFailed(f"the ref {ref} was not written")
    _sync_refs(git, worktree)
    return [KeptRef(ref, oid) for ref, oid in sorted(now.items())]


def forget(git: Git, receipt: Receipt) -> None:
    """Remove the refs of a worktree that are still what its receipt says.

    Raises:
        GitFailed: all of them are still there.
    """
    now = kept_refs(git, receipt.id)
    gone = [kept for kept in receipt.refs if now.get(kept.ref) == kept.commit]
    text = "".join(f"delete {kept.ref} {kept.commit}\n" for kept in gone)
    if text:
        git.run("update-ref", "--stdin", text=text.encode())


def _sync_refs(git: Git, worktree: str) -> None:
    """See that the names of our refs are on the disk, where they are files."""
    place = os.path.join(git.git_dir, KEPT, worktree)
    paths = []
    with suppress(OSError):
        paths += [entry.path for entry in os.scandir(place)]
    while len(place) >= len(os.path.join(git.git_dir, "refs")):
        paths.append(place)
        place = os.path.dirname(place)
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def bundle(git: Git, folder: Folder, commits: Mapping[str, str]) -> Archive:
    """Write commits that nothing else holds to a bundle in a folder.

    It is for a repository in which no ref can be written.

    Raises:
        GitFailed: it is not whole.
    """
    kind = git.run("rev-parse", "--show-object-format").decode().strip()
    try:
        with tempfile.TemporaryDirectory(prefix="forge-actors-") as scratch:
            git.run("init", "--quiet", "--bare", f"--object-format={kind}", scratch)
            _lend(git, scratch)
            _write_bundle(git, Git(scratch), folder, commits)
    except OSError as error:
        raise GitFailed(f"the bundle cannot be written: {error.strerror}") from None
    made = _hashed(folder, len(commits))
    check_bundle(git, folder, made)
    return made


def _write_bundle(
    git: Git, other: Git, folder: Folder, commits: Mapping[str, str]
) -> None:
    """By another repository, which has the objects of the first one and other refs."""
    text = "".join(f"create refs/heads/{name} {oid}\n" for name, oid in commits.items())
    other.run("update-ref", "--stdin", text=text.encode())
    told = git.run(
        *("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes")
    )
    # What the repository has under a name need not be in it, if it is not to be kept.
    without = [oid for oid in told.decode().split() if oid not in commits.values()]
    text = "".join(f"^{oid}\n" for oid in without)
    with suppress(FileNotFoundError):
        os.unlink(BUNDLE, dir_fd=folder.fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(BUNDLE, flags, 0o600, dir_fd=folder.fd)
    try:
        create = ("bundle", "create", "--quiet", "-", "--all", "--stdin")
        other.run(*create, text=text.encode(), sink=fd)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.fsync(folder.fd)


def check_bundle(git: Git, folder: Folder, made: Archive) -> None:
    """
    Raises:
        GitFailed: the bundle is not what was written, or cannot be used.
    """
    with opened_bundle(git, folder, made) as (reader, path):
        reader.run("bundle", "verify", "--quiet", path)


@contextmanager
def opened_bundle(git: Git, folder: Folder, made: Archive) -> Iterator[tuple[Git, str]]:
    """A git on the same repository, and the path by which it finds a bundle.

    Raises:
        GitFailed: the bundle is not what was written.
    """
    try:
        found = _hashed(folder, made.files)
        fd = open_plain(folder, BUNDLE)
    except OSError as error:
        raise GitFailed(f"{BUNDLE}: {error.strerror}") from None
    try:
        if found != made:
            raise GitFailed(f"{BUNDLE} is not what was written")
        yield Git(git.git_dir, lends=(fd,)), lent(fd)
    finally:
        os.close(fd)


def _hashed(folder: Folder, count: int) -> Archive:
    digest = hashlib.sha256()
    size = 0
    with open(open_plain(folder, BUNDLE), "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return Archive("git", BUNDLE, digest.hexdigest(), size, count)


def _lend(git: Git, scratch: str) -> None:
    info = os.path.join(scratch, "objects", "info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, "alternates"), "w", encoding="utf-8") as file:
        file.write(os.path.join(git.git_dir, "objects") + "\n")
