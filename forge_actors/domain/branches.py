"""Branches: what the branch of a job's worktree is called."""

from __future__ import annotations

import re

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput

DEFAULT_PATTERN = "forge/{job}"
MAX_BRANCH = 200

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
#: What git takes in no name of a ref.
_NEVER = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+|\.{2,}")


class BranchNames(Struct, frozen=True):
    """What the placeholders of a pattern stand for."""

    job: str
    repo: str
    name: str
    date: str


_SAMPLE = BranchNames("0" * 19, "repo", "name", "2026-01-31")


def check_pattern(pattern: str, *, field: str) -> str:
    """The same pattern, if every name that it makes is one of a branch.

    Raises:
        InvalidInput: it is not.
    """
    known = tuple(f"{{{name}}}" for name in BranchNames.__struct_fields__)
    for name in _PLACEHOLDER.findall(pattern):
        if name not in BranchNames.__struct_fields__:
            raise InvalidInput(field, f"{{{name}}} stands for nothing", allowed=known)
    problem = branch_problem(branch_for(pattern, _SAMPLE))
    if problem is not None:
        raise InvalidInput(field, f"{pattern!r} makes no name of a branch: {problem}")
    return pattern


def branch_for(pattern: str, names: BranchNames) -> str:
    """The name that a pattern makes of these."""
    return _PLACEHOLDER.sub(lambda found: str(getattr(names, found[1])), pattern)


def fit(name: str | None) -> str:
    """The name of a job as a part of that of a branch."""
    fitting = _UNFIT.sub("-", name or "").strip("-.")[:100].strip("-.")
    return fitting.removesuffix(".lock") or "job"


def branch_problem(name: str) -> str | None:
    """Why git does not take this as the name of a branch, or None."""
    if not name or len(name) > MAX_BRANCH:
        return f"it has 1 to {MAX_BRANCH} characters"
    found = _NEVER.search(name)
    if found is not None:
        return f"it has {found[0]!r} in it"
    if name.startswith(("-", "/")) or name.endswith(("/", ".")) or name == "HEAD":
        return "it begins with - or /, ends with / or ., or is HEAD"
    for part in name.split("/"):
        if part.startswith(".") or part.endswith(".lock"):
            return f"{part!r} begins with a dot or ends with .lock"
    return None


def base_problem(base: str) -> str | None:
    """Why something is surely no commit's name for git, or None."""
    if not base or len(base) > MAX_BRANCH:
        return f"it has 1 to {MAX_BRANCH} characters"
    if base.startswith("-") or any(ord(mark) < 32 or mark == "\x7f" for mark in base):
        return "it begins with - or has a control character in it"
    return None
