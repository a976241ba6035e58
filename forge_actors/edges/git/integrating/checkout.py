"""The checkout that a branch is brought into: whether it may be, and doing it.

Git writes the files first, then the index, and moves the branch last. What it is about
to do is written down before, so that after a kill the files that it had begun with are
put back before anything else is done.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from forge_actors.edges.git.integrating.git import Git, Refusal

#: What is there in a git directory while an operation waits to be gone on with.
_OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "BISECT_LOG": "a bisection",
    "sequencer": "a cherry-pick or revert",
}
#: Our folder in the common directory of a repository.
_OUR_FOLDER = "forge-actors"
#: Paths that a refusal names.
_NAMED = 5


class Checkout:
    """One checkout on a branch, with nothing uncommitted in it."""

    def __init__(self, folder: str, *, mine: bool) -> None:
        """Look at it. Only if it is `mine` something that was begun is put back.

        Raises:
            Refusal: it is none, or not in the state for it.
        """
        if not os.path.isdir(folder):
            raise Refusal(f"the checkout {folder} does not exist any more")
        self.git = Git(folder)
        places = ("rev-parse", "--show-toplevel", "--absolute-git-dir")
        lines = self.git.run(*places, "--git-common-dir").split("\n")
        root, self._own, common = (os.path.join(folder, line) for line in lines)
        if not os.path.samefile(root, folder):
            raise Refusal(f"{folder} is not the root of a checkout any more")
        name = os.path.basename(os.path.realpath(self._own))
        self._journal = os.path.join(common, _OUR_FOLDER, f"applying-{name}.json")
        self.put_back = mine and self._recover()
        #: Another program has begun, or was killed: nobody can tell from outside.
        self.is_half_done = os.path.lexists(self._journal)
        if self.is_half_done:
            return
        ref = self.git.finish("symbolic-ref", "--quiet", "HEAD")[1].decode()
        self.branch = ref.removeprefix("refs/heads/")
        if not ref.startswith("refs/heads/"):
            raise Refusal(f"{folder} is on no branch (its HEAD is detached)")
        head = self.git.commit_of("HEAD")
        if head is None:
            raise Refusal(f"the branch {self.branch} has no commit yet")
        self.head = head
        self._check()

    def _check(self) -> None:
        for name, what in _OPERATIONS.items():
            if os.path.lexists(os.path.join(self._own, name)):
                raise Refusal(f"{what} is going on in {self.git.folder}")
        if os.path.lexists(os.path.join(self._own, "index.lock")):
            raise Refusal(f"a git program is at work in {self.git.folder} (index.lock)")
        changed = self.git.run(
            *("status", "--porcelain", "-z", "--no-renames"),
            *("--untracked-files=no", "--ignore-submodules=none"),
        )
        paths = [entry[3:] for entry in changed.split("\0") if entry]
        if paths:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            raise Refusal(
                f"{self.git.folder} is not clean: {', '.join(paths[:_NAMED])}{more};"
                " commit or stash that first"
            )

    def move(self, commit: str, why: str) -> None:
        """Have branch, index and files at a commit that goes on from its head.

        Raises:
            Refusal: a file that git does not know is in the way; all is as it was.
        """
        self._write_journal({"head": self.head, "commit": commit})
        status, _, words = self.git.finish(
            *("merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash"),
            *("--no-stat", "--quiet", commit),
            environment={"GIT_REFLOG_ACTION": why},
        )
        # Whatever it said, the branch tells whether it was done.
        if self.git.commit_of("HEAD") != commit:
            self._recover()
            raise Refusal(f"git merge: {words or f'it ended with {status}'}")
        self._forget_journal()

    def _recover(self) -> bool:
        """Put the files back that a killed program of ours had begun with.

        Raises:
            Refusal: somebody has changed them since.
        """
        try:
            with open(self._journal, encoding="utf-8") as file:
                told: dict[str, Any] = json.load(file)
            before, after = str(told["head"]), str(told["commit"])
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise Refusal(
                f"{self._journal} cannot be read: an earlier apply was killed; look at"
                f" git status in {self.git.folder} and delete that file"
            ) from None
        head = self.git.commit_of("HEAD")
        if head == before:
            self._put_back(before, after)
        # At any other commit it was done, or a person has gone on since.
        self._forget_journal()
        return head == before

    def _put_back(self, before: str, after: str) -> None:
        listed = self.git.run(
            *("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)
        )
        paths = [path for path in listed.split("\0") if path]
        mine = [path for path in paths if self._is_half_done(path, before, after)]
        text = os.fsencode("".join(f"{path}\0" for path in paths))
        given = ("--pathspec-from-file=-", "--pathspec-file-nul")
        literal = {"GIT_LITERAL_PATHSPECS": "1"}
        if paths:
            self.git.run(
                *("reset", "--quiet", *given, before), text=text, environment=literal
            )
        known = [path for path in mine if self._blob(before, path) is not None]
        if known:
            text = os.fsencode("".join(f"{path}\0" for path in known))
            self.git.run("checkout", *given, text=text, environment=literal)
        for path in set(mine) - set(known):
            self._delete(path)

    def _is_half_done(self, path: str, before: str, after: str) -> bool:
        """Whether a file is not as it was before, but as git was writing it.

        Raises:
            Refusal: it is something else.
        """
        old, new = self._blob(before, path), self._blob(after, path)
        full = os.path.join(self.git.folder, path)
        if not os.path.lexists(full):
            return old is not None
        if os.path.isdir(full) and not os.path.islink(full):
            return old is not None
        now = self._content(full)
        if old is not None and now == self._checked_out(before, path):
            return False
        if new is not None and self._checked_out(after, path).startswith(now):
            return True
        raise Refusal(
            f"{full} was changed after an earlier apply had been killed: look at git"
            f" status there, then delete {self._journal}"
        )

    def _blob(self, commit: str, path: str) -> str | None:
        status, out, _ = self.git.finish(
            "rev-parse", "--verify", "--quiet", f"{commit}:{path}"
        )
        return out.decode() if status == 0 else None

    def _checked_out(self, commit: str, path: str) -> bytes:
        """A file as git writes it into a checkout."""
        name = f"{commit}:{path}"
        status, out, _ = self.git.finish("cat-file", "--filters", name, raw=True)
        return out if status == 0 else b""

    def _content(self, full: str) -> bytes:
        if os.path.islink(full):
            return os.fsencode(os.readlink(full))
        with open(full, "rb") as file:
            return file.read()

    def _delete(self, path: str) -> None:
        full = os.path.join(self.git.folder, path)
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            os.unlink(full)
        folder = os.path.dirname(path)
        with suppress(OSError):  # something else is in it
            while folder:
                os.rmdir(os.path.join(self.git.folder, folder))
                folder = os.path.dirname(folder)

    def _write_journal(self, told: dict[str, str]) -> None:
        folder = os.path.dirname(self._journal)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        draft = f"{self._journal}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(told, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._journal)
        _sync(folder)

    def _forget_journal(self) -> None:
        os.unlink(self._journal)


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
