"""Git status: what one look at a checkout found, read from what git prints.

The output is that of `git status --porcelain=v2 --branch -z`. Names of files are only
counted, never kept, so what they are called does not matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection

#: What git is in the middle of in a checkout.
Operation = Literal["rebase", "am", "merge", "cherry-pick", "revert", "bisect"]

#: The names in a git directory that say so, the more telling ones first: a rebase that
#: stopped at a conflict may have a CHERRY_PICK_HEAD too.
OPERATIONS: tuple[tuple[str, Operation], ...] = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
#: Characters kept of the name of a branch; git allows about 240 bytes.
MAX_NAME = 256

_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_AHEAD_BEHIND = re.compile(rb"\+(\d{1,18}) -(\d{1,18})")
#: The state of a tracked file in the index and in the work tree.
_STATES = re.compile(rb"[.MTADRCU]{2}")
_UNBORN, _DETACHED = b"(initial)", b"(detached)"


class GitStatus(Struct, frozen=True, omit_defaults=True):
    """The state of one checkout at one moment."""

    #: None: no branch is checked out.
    branch: str | None = None
    #: The commit that is checked out; None: there is none yet.
    head: str | None = None
    upstream: str | None = None
    #: Commits that only the branch has, and only its upstream. None: there is no
    #: upstream, or its branch is gone.
    ahead: int | None = None
    behind: int | None = None
    staged: int = 0
    unstaged: int = 0
    untracked: int = 0
    conflicts: int = 0
    #: The output was longer than is read: there is at least so much of each.
    at_least: bool = False
    operation: Operation | None = None

    @property
    def detached(self) -> bool:
        return self.branch is None

    @property
    def unborn(self) -> bool:
        """Whether its branch has no commit yet."""
        return self.head is None

    @property
    def clean(self) -> bool:
        """Nothing is changed, staged, untracked or in conflict."""
        changed = self.staged or self.unstaged or self.untracked or self.conflicts
        return not changed and not self.at_least

    def differs(self, other: GitStatus) -> bool:
        """Whether people who watch a repository want to be told."""
        return self._told() != other._told()

    def _told(self) -> tuple[object, ...]:
        return self.branch, self.head, self.clean, self.operation


class Sample(Struct, frozen=True):
    """What became of one look: the status, or why there is none."""

    #: CPU seconds it took, those of git included.
    cost: float
    status: GitStatus | None = None
    problem: str | None = None


def read_operation(found: Collection[str]) -> Operation | None:
    """What git is in the middle of, from the names of `OPERATIONS` that are there."""
    for name, operation in OPERATIONS:
        if name in found:
            return operation
    return None


def parse_status(
    output: bytes, *, whole: bool, operation: Operation | None = None
) -> GitStatus:
    """What the output says. One that is not `whole` was cut off somewhere.

    Raises:
        ValueError: it is not what git prints.
    """
    tokens = output.split(b"\0")
    if tokens.pop() and whole:
        raise ValueError("git status ended in the middle of a line")
    headers: dict[bytes, bytes] = {}
    staged = unstaged = untracked = conflicts = 0
    rest = iter(tokens)
    for token in rest:
        kind = token[:2]
        if kind == b"1 " or kind == b"2 ":
            states = token[2:4]
            if not _STATES.fullmatch(states):
                raise ValueError(f"git status has an unknown state {states!r}")
            staged += states[:1] != b"."
            unstaged += states[1:] != b"."
            if kind == b"2 ":  # the name it had before comes by itself
                next(rest, None)
        elif kind == b"? ":
            untracked += 1
        elif kind == b"u ":
            conflicts += 1
        elif kind == b"# ":
            name, _, value = token[2:].partition(b" ")
            headers[name] = value
        elif kind != b"! ":
            raise ValueError(f"git status has an unknown line {token[:40]!r}")
    branch = headers.get(b"branch.head")
    if branch is None:
        raise ValueError("git status names no branch")
    ahead, behind = _ahead_behind(headers.get(b"branch.ab"))
    return GitStatus(
        branch=None if branch == _DETACHED else _name(branch),
        head=_head(headers.get(b"branch.oid", b"")),
        upstream=_name(headers.get(b"branch.upstream")),
        ahead=ahead,
        behind=behind,
        staged=staged,
        unstaged=unstaged,
        untracked=untracked,
        conflicts=conflicts,
        at_least=not whole,
        operation=operation,
    )


def _head(value: bytes) -> str | None:
    if value == _UNBORN:
        return None
    if not _HASH.fullmatch(value):
        raise ValueError(f"git status names no commit: {value[:80]!r}")
    return value.decode("ascii")


def _ahead_behind(value: bytes | None) -> tuple[int | None, int | None]:
    found = None if value is None else _AHEAD_BEHIND.fullmatch(value)
    if found is None:
        return None, None
    return int(found[1]), int(found[2])


def _name(value: bytes | None) -> str | None:
    if value is None:
        return None
    return value.decode("utf-8", "replace")[:MAX_NAME]
