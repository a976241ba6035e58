"""The commit that a checkout's branch is to be at, made where nobody sees it yet."""

from __future__ import annotations

import os
import re
import tempfile
from typing import NamedTuple

from forge_actors.edges.git.integrating.git import Git, Refusal

#: Commits that are picked one by one; of more a merge is asked for.
MAX_PICKS = 500
#: Paths that a refusal names.
_NAMED = 5


class Made(NamedTuple):
    """The commit, and how it came about."""

    commit: str
    how: str


class Maker:
    """Makes it in the objects of a repository; no ref, index or file is touched."""

    def __init__(self, git: Git, date: str, message: str) -> None:
        self._git = git
        self._date = date
        self._message = message
        version = re.search(r"(\d+)\.(\d+)", git.run("version"))
        found = (0, 0) if version is None else (int(version[1]), int(version[2]))
        #: Before that no command merges trees without files.
        self.merges_trees = found >= (2, 38)

    def make(self, head: str, tip: str, mode: str) -> Made:
        """The commit for a branch at `head` that is to have all of `tip`.

        Raises:
            Refusal: there is a conflict, or it cannot be made in this way.
        """
        git = self._git
        if git.holds("merge-base", "--is-ancestor", tip, head):
            return Made(head, "nothing")
        forward = git.holds("merge-base", "--is-ancestor", head, tip)
        if forward and mode != "merge":
            return Made(tip, "fast-forward")
        if mode == "ff-only":
            raise Refusal(
                "the branch of the checkout has gone on since, so it cannot be moved"
                " forward: --merge or --cherry-pick"
            )
        if mode == "cherry-pick":
            return Made(self._picked(head, tip), "cherry-pick")
        base = git.finish("merge-base", head, tip)[1].decode()
        if not base:
            raise Refusal("the two branches have no commit in common")
        tree = self._merged(base, head, tip, head if self.merges_trees else None)
        return Made(self._commit(tree, [head, tip], self._message), "merge")

    def plain(self, commit: str, message: str) -> str:
        """The same content on the first parent alone."""
        parent = self._git.run("rev-parse", "--verify", f"{commit}^1")
        tree = self._git.run("rev-parse", "--verify", f"{commit}^{{tree}}")
        return self._commit(tree, [parent], message)

    def _picked(self, head: str, tip: str) -> str:
        git = self._git
        told = git.run(
            "rev-list", "--reverse", "--topo-order", "--parents", f"{head}..{tip}"
        )
        rows = [line.split() for line in told.splitlines()]
        if len(rows) > MAX_PICKS:
            raise Refusal(f"{len(rows)} commits are too many to pick: --merge")
        if any(len(row) != 2 for row in rows):
            raise Refusal("there are merges among its commits, or no parent: --merge")
        made = head
        for commit, parent in rows:
            tree = self._merged(parent, made, commit, None)
            if tree == git.run("rev-parse", "--verify", f"{made}^{{tree}}"):
                continue  # it is there already
            made = self._again(commit, tree, made)
        return made

    def _merged(self, base: str, ours: str, theirs: str, whole: str | None) -> str:
        """The tree of what both sides changed since `base`. With `whole` git looks for
        the base by itself, of which there may be several.

        Raises:
            Refusal: both changed the same.
        """
        git = self._git
        if not self.merges_trees:
            return self._merged_with_files(base, ours, theirs)
        sides = (ours, theirs)
        if whole is None:
            # Two commits that have nothing in common but this base.
            trees = [
                git.run("rev-parse", f"{c}^{{tree}}") for c in (base, ours, theirs)
            ]
            root = self._commit(trees[0], [], "base")
            sides = (
                self._commit(trees[1], [root], "ours"),
                self._commit(trees[2], [root], "theirs"),
            )
        status, out, words = git.finish(
            "merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", *sides
        )
        if status not in (0, 1):
            raise Refusal(f"git merge-tree: {words}")
        tree, *paths = os.fsdecode(out).split("\0")
        if status == 1:
            raise _conflict([path for path in paths if path])
        return tree.strip()

    def _merged_with_files(self, base: str, ours: str, theirs: str) -> str:
        """The same with an index and files that are thrown away."""
        with tempfile.TemporaryDirectory(prefix="forge-actors-") as folder:
            files = os.path.join(folder, "files")
            os.mkdir(files)
            own = self._git.run("rev-parse", "--absolute-git-dir")
            beside = {
                "GIT_DIR": own,
                "GIT_INDEX_FILE": os.path.join(folder, "index"),
                "GIT_WORK_TREE": files,
            }
            git = Git(files)
            trees = ("read-tree", "-i", "-m", "--aggressive", base, ours, theirs)
            git.run(*trees, environment=beside)
            merge = ("merge-index", "-q", "git-merge-one-file", "-a")
            status, _, _ = git.finish(*merge, environment=beside)
            left = git.run("ls-files", "-u", "-z", environment=beside)
            if status != 0 or left:
                names = {line.partition("\t")[2] for line in left.split("\0") if line}
                raise _conflict(sorted(names))
            return git.run("write-tree", environment=beside)

    def _again(self, commit: str, tree: str, parent: str) -> str:
        """A commit with the author and the message of another one."""
        git = self._git
        form = "--format=%an%x00%ae%x00%ad%x00%B"
        told = git.run("show", "-s", "--date=raw", "--no-show-signature", form, commit)
        name, email, date, message = told.split("\0", 3)
        author = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": email,
            "GIT_AUTHOR_DATE": f"@{date}",
        }
        return self._commit(tree, [parent], message, author)

    def _commit(
        self,
        tree: str,
        parents: list[str],
        message: str,
        author: dict[str, str] | None = None,
    ) -> str:
        dates = {"GIT_AUTHOR_DATE": self._date, "GIT_COMMITTER_DATE": self._date}
        options = [word for parent in parents for word in ("-p", parent)]
        return self._git.run(
            *("commit-tree", "--no-gpg-sign", tree, *options, "-F", "-"),
            text=os.fsencode(message),
            environment={**self._git.identity(), **dates, **(author or {})},
        )


def _conflict(paths: list[str]) -> Refusal:
    shown = ", ".join(paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return Refusal(f"both sides changed the same in {shown or 'some files'}{more}")
