"""The commit of what was not committed: as `git stash` makes it, untracked files too.

It is made beside the user's index, which nobody touches, and beside the branch, which
goes on to it only when the folder is gone. What was staged and is something else than
what lies in the tree becomes its second parent.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.removal import Checkpoint
from forge_actors.edges.cleanup.worktrees.census import Tree
from forge_actors.edges.cleanup.worktrees.objects import (
    AT_ONCE,
    BlobWriter,
    in_memory,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.edges.cleanup.folders import Folder
    from forge_actors.edges.cleanup.worktrees.contents import Contents, Staged
    from forge_actors.edges.cleanup.worktrees.git import Git

#: The line by which a checkpoint is known, before the id of the worktree.
TRAILER = "Forge-Actors-Checkpoint"
#: Where the sides of a conflict lie in the commit of what was staged.
CONFLICTS = ".forge-actors-conflict"
_STAGED = "Staged content of the worktree {}\n"
#: The name of a blob without content.
_EMPTY = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


class Maker:
    """Makes the checkpoint of one worktree."""

    def __init__(self, git: Git, root: Folder, scratch: str, now: float) -> None:
        self._git = git
        self._tree = Tree(root)
        #: A path for an index of our own.
        self._scratch = scratch
        self._date = f"@{int(now)} +0000"

    def make(
        self, contents: Contents, head: str | None, worktree: str, known: Iterable[str]
    ) -> Checkpoint | None:
        """The checkpoint of everything that differs from `head`; None if nothing does.

        One of `known`, which earlier tries have made, is taken if it is the same.

        Raises:
            GitFailed, Unreadable: a commit cannot hold it, or cannot be written.
        """
        blobs = self._blobs(contents)
        tree = self._write_tree(self._entries(contents, blobs))
        base = None if head is None else self._git.tree_of(head)
        empty = self._write_tree([]) if base is None else base
        staged = self._write_tree(_staged_entries(contents.staged))
        differs = staged not in (tree, empty)
        if tree == empty and not differs:
            return None
        parents = [] if head is None else [head]
        index: str | None = None
        for each in known:
            found = self._same(each, tree, head, staged if differs else None)
            if found is not None:
                return Checkpoint(each, tree, found or None, len(blobs))
        if differs:
            index = self._commit(staged, parents, _STAGED.format(worktree))
        text = (
            f"Checkpoint of the worktree {worktree}\n\n"
            "What was not committed when the worktree was removed, untracked files"
            f" included.\n\n{TRAILER}: {worktree}\n"
        )
        commit = self._commit(tree, [*parents, *([index] if index else [])], text)
        return Checkpoint(commit, tree, index, len(blobs))

    def staged(
        self, index: tuple[Staged, ...], head: str | None, worktree: str
    ) -> str | None:
        """The commit of an index alone; None if it is that of `head`.

        Raises:
            GitFailed: it cannot be written.
        """
        tree = self._write_tree(_staged_entries(index))
        base = self._write_tree([]) if head is None else self._git.tree_of(head)
        if tree == base:
            return None
        return self._commit(tree, [head] if head else [], _STAGED.format(worktree))

    def _blobs(self, contents: Contents) -> dict[str, str]:
        blobs: dict[str, str] = {}
        with BlobWriter(self._git) as writer:
            for start in range(0, len(contents.changed), AT_ONCE):
                paths = contents.changed[start : start + AT_ONCE]
                blobs |= self._written(writer, contents, paths)
            # A file that was only announced to git is there as one without content.
            if any(entry.oid in _EMPTY for entry in contents.staged):
                fd = in_memory(b"")
                try:
                    writer.write([fd])
                finally:
                    os.close(fd)
        return blobs

    def _written(
        self, writer: BlobWriter, contents: Contents, paths: tuple[str, ...]
    ) -> dict[str, str]:
        fds: list[int] = []
        try:
            for path in paths:
                if contents.census.files[path].is_link:
                    fds.append(in_memory(self._tree.target(path)))
                else:
                    fds.append(self._tree.open(path))
            return dict(zip(paths, writer.write(fds), strict=True))
        finally:
            for fd in fds:
                os.close(fd)

    def _entries(self, contents: Contents, blobs: dict[str, str]) -> list[str]:
        """The lines of the index of the checkpoint."""
        heads = {each.path: each.head for each in contents.nested if each.module}
        found = {}
        for entry in contents.staged:
            if entry.stage or entry.path in contents.deleted or entry.path in blobs:
                continue
            oid = entry.oid
            if entry.mode == "160000":
                oid = heads.get(entry.path) or oid
            found[entry.path] = f"{entry.mode} {oid} 0\t{entry.path}"
        for path, blob in blobs.items():
            mode = contents.census.files[path].git_mode
            found[path] = f"{mode} {blob} 0\t{path}"
        return list(found.values())

    def _write_tree(self, entries: list[str]) -> str:
        environment = {"GIT_INDEX_FILE": self._scratch}
        with suppress(FileNotFoundError):
            os.unlink(self._scratch)
        text = os.fsencode("".join(f"{entry}\0" for entry in entries))
        if entries:
            self._git.run(
                *("update-index", "-z", "--add", "--index-info"),
                text=text,
                environment=environment,
            )
        return self._git.run("write-tree", environment=environment).decode().strip()

    def _commit(self, tree: str, parents: list[str], message: str) -> str:
        dates = {"GIT_AUTHOR_DATE": self._date, "GIT_COMMITTER_DATE": self._date}
        options = [word for parent in parents for word in ("-p", parent)]
        made = self._git.run(
            *("commit-tree", "--no-gpg-sign", tree, *options, "-F", "-"),
            text=message.encode("utf-8", "replace"),
            environment={**self._git.identity(), **dates},
        )
        return made.decode().strip()

    def _same(
        self, commit: str, tree: str, head: str | None, staged: str | None
    ) -> str | None:
        """The second parent of a commit that is such a checkpoint, empty without one;
        None if it is another commit."""
        told = self._git.run("rev-list", "--parents", "--max-count=1", commit, "--")
        _, *parents = told.decode().split()
        if self._git.tree_of(commit) != tree:
            return None
        index = parents[-1] if len(parents) == (1 if head is None else 2) else None
        first = [] if head is None else [head]
        if staged is None:
            return "" if parents == first else None
        if index is None or parents[:-1] != first:
            return None
        return index if self._git.tree_of(index) == staged else None


def _staged_entries(index: tuple[Staged, ...]) -> list[str]:
    """The index itself; the sides of a conflict, which no tree can hold, apart."""
    return [
        f"{entry.mode} {entry.oid} 0\t{entry.path}"
        if not entry.stage
        else f"{entry.mode} {entry.oid} 0\t{CONFLICTS}/{entry.stage}/{entry.path}"
        for entry in index
    ]
