"""Resource claims: what a job may touch, and which claims conflict.

A claim is written `mode:family[:rest]`; `rest` is everything after the second colon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

Mode = Literal["read", "write", "exclusive"]
Family = Literal[
    "workspace",
    "path",
    "git-index",
    "git-head",
    "git-ref",
    "git-refs",
    "repo-content",
    "worktree",
    "session",
    "heavy-check",
    "integration",
    "release",
    "build-cache",
    "temp",
]

MODES: tuple[Mode, ...] = get_args(Mode)
FAMILIES: tuple[Family, ...] = get_args(Family)
#: Families whose resources belong to one checkout, so that linked worktrees of one
#: repository do not wait for each other.
CHECKOUT_FAMILIES: frozenset[Family] = frozenset(
    {"workspace", "path", "git-index", "git-head"}
)
_REFS: frozenset[Family] = frozenset({"git-ref", "git-refs"})
_CONTENT: frozenset[Family] = CHECKOUT_FAMILIES | _REFS | {"repo-content"}
_STRENGTH: dict[Mode, int] = {"read": 0, "write": 1, "exclusive": 2}
MAX_CLAIM_LENGTH = 4096


class Claim(Struct, frozen=True, order=True, array_like=True):
    """A resource a job needs, with a mode. `checkout` is empty where it has none."""

    mode: Mode
    family: Family
    rest: str = ""
    checkout: str = ""

    def __str__(self) -> str:
        text = f"{self.mode}:{self.family}"
        return f"{text}:{self.rest}" if self.rest else text


def parse_claim(text: str, *, checkout: str, field: str = "claims") -> Claim:
    """Read one claim of a job that works in `checkout`.

    Raises:
        InvalidInput: the mode or the family is not known, or the text is too long.
    """
    if len(text) > MAX_CLAIM_LENGTH or "\0" in text:
        raise InvalidInput(field, f"a claim has at most {MAX_CLAIM_LENGTH} characters")
    mode, _, tail = text.partition(":")
    family, _, rest = tail.partition(":")
    if mode not in MODES:
        raise InvalidInput(field, f"{text!r} has no known mode", allowed=MODES)
    if family not in FAMILIES:
        raise InvalidInput(
            field, f"{text!r} has no known resource family", allowed=FAMILIES
        )
    if family == "workspace":
        return Claim(mode, family, "", rest or checkout)
    if family == "repo-content":
        return Claim(mode, family, "*")
    if family in CHECKOUT_FAMILIES:
        return Claim(mode, family, rest, checkout)
    return Claim(mode, family, rest)


def strongest(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Drop duplicates of one resource, keeping the strongest mode of each."""
    best: dict[tuple[str, str, str], Claim] = {}
    for claim in claims:
        key = (claim.family, claim.rest, claim.checkout)
        held = best.get(key)
        if held is None or _STRENGTH[claim.mode] > _STRENGTH[held.mode]:
            best[key] = claim
    return tuple(sorted(best.values()))


def conflict(one: Claim, other: Claim) -> bool:
    """Whether the two may not be held at the same time by different jobs."""
    if one.family == "release" or other.family == "release":
        if one.family == other.family:
            return True
        barred = other if one.family == "release" else one
        return barred.mode != "read"
    if one.mode == "read" and other.mode == "read":
        return False
    return overlap(one, other)


def overlap(one: Claim, other: Claim) -> bool:
    """Whether the two name a common resource, whatever their modes."""
    families = {one.family, other.family}
    if "repo-content" in families or _leads_out(one) or _leads_out(other):
        return families <= _CONTENT
    if families <= _REFS:
        return True
    if not families <= CHECKOUT_FAMILIES:
        return one.family == other.family and one.rest == other.rest
    if one.checkout and other.checkout and one.checkout != other.checkout:
        return False
    if "workspace" in families:
        return True
    if families == {"path"}:
        return _paths_overlap(one.rest, other.rest)
    return one.family == other.family


def first_conflict(wanted: Iterable[Claim], held: Iterable[Claim]) -> Claim | None:
    """The first of the `wanted` claims that conflicts with a `held` one."""
    held = tuple(held)
    for claim in wanted:
        if any(conflict(claim, other) for other in held):
            return claim
    return None


def _paths_overlap(one: str, other: str) -> bool:
    left, right = _segments(one), _segments(other)
    if left is None or right is None:
        return True
    shorter = min(len(left), len(right))
    return left[:shorter] == right[:shorter]


def _leads_out(claim: Claim) -> bool:
    """A path that may lead out of its checkout, so that nobody knows what it is."""
    path = claim.rest
    return claim.family == "path" and (
        path.startswith(("/", "~")) or ".." in path.split("/")
    )


def _segments(path: str) -> list[str] | None:
    """The parts of a path that stays inside, or None if it may be any of them."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts and parts[-1] in ("*", "**"):
        parts.pop()
    if not parts or any(mark in part for part in parts for mark in "*?["):
        return None
    return parts
