"""The graph of an EPIC: its direct sub-issues and what blocks them, read as a whole.

GitHub tells of such a graph, and so does a file of a plan. What an issue says comes
from anybody: titles and texts are in no digest and no command line, and whoever shows
one cleans it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from msgspec import Struct

from forge_actors.domain.epic.records import EpicRef, digest_of
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.github.issues import IssueText as IssueText
from forge_actors.domain.github.places import IssueAt, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Children of one EPIC, as many as GitHub allows, and issues that block one of them.
MAX_CHILDREN, MAX_BLOCKERS = 100, 100
#: Differences of one issue that are told.
MAX_DIFFERENCES = 20
OPEN, CLOSED = "open", "closed"
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")

RefusalReason = Literal[
    "unavailable",
    "rate-limited",
    "inconsistent",
    "denied",
    "not-found",
    "malformed",
    "repository-changed",
    "epic-not-an-issue",
    "too-large",
    "unsupported",
]
REFUSAL_REASONS: tuple[RefusalReason, ...] = get_args(RefusalReason)
_TRANSIENT = ("unavailable", "rate-limited", "inconsistent")


class SnapshotRefused(ForgeError):
    """The graph of the EPIC cannot be read as a whole, so nothing of it is used."""

    code = "SNAPSHOT_REFUSED"
    http_status = 502

    def __init__(
        self, reason: RefusalReason, message: str, *, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        #: Seconds until it makes sense to ask again, where that is known.
        self.wait = wait

    @property
    def transient(self) -> bool:
        """Whether it may be over by itself."""
        return self.reason in _TRANSIENT


class RepositoryNode(Struct, frozen=True):
    """The repository of an EPIC; its id stays when it is renamed."""

    id: int
    place: Place
    #: Below the folder of the project, where what is kept of its issues is apart from
    #: that of others: a plan counts its issues from one, as GitHub does.
    folder: tuple[str, ...] = ()


class EpicNode(Struct, frozen=True):
    """The issue whose sub-issues are to be worked through."""

    id: int
    at: IssueAt
    #: A closed one is worked through like an open one, and people are told.
    state: str
    title: str = ""
    #: How many sub-issues it has, where that is said apart from them.
    children: int | None = None

    @property
    def number(self) -> int:
        return self.at.number

    @property
    def ref(self) -> EpicRef:
        return EpicRef(self.number, self.id)

    @property
    def open(self) -> bool:
        return self.state == OPEN


class BlockerNode(Struct, frozen=True, order=True):
    """An issue that another one waits for, wherever it is."""

    at: IssueAt
    id: int
    state: str
    reason: str | None = None


class ChildNode(Struct, frozen=True):
    """A direct sub-issue, with all that decides about it."""

    id: int
    at: IssueAt
    state: str
    reason: str | None = None
    pull_request: bool = False
    #: Its parent, and the id of that where it is the EPIC.
    parent: IssueAt | None = None
    parent_id: int | None = None
    #: In the order of their places. Those of a closed issue are not looked at.
    blockers: tuple[BlockerNode, ...] = ()
    #: How many sub-issues of its own it has.
    children: int = 0
    title: str = ""

    @property
    def number(self) -> int:
        return self.at.number

    @property
    def place(self) -> Place:
        return self.at.place


class Snapshot(Struct, frozen=True):
    """The graph as it was at one moment; made by `snapshot_of`."""

    digest: str
    #: When the reading of it began.
    observed_at: str
    repository: RepositoryNode
    epic: EpicNode
    #: In the order that people gave them: the first that is ready is the next.
    children: tuple[ChildNode, ...]

    @property
    def place(self) -> Place:
        return self.repository.place

    @property
    def home_children(self) -> Iterator[ChildNode]:
        """Those of the repository itself: numbers of others mean nothing here."""
        return (child for child in self.children if child.place == self.place)

    @property
    def ids(self) -> dict[int, int]:
        """The id of each child of the repository itself, by its number."""
        return {child.number: child.id for child in self.home_children}

    def child(self, number: int) -> ChildNode | None:
        """The child of the repository itself with this number."""
        for child in self.home_children:
            if child.number == number:
                return child
        return None


class Reread(Struct, frozen=True):
    """One child as it is now, beside what a snapshot says of it."""

    node: ChildNode
    node_digest: str
    differences: tuple[str, ...]
    #: What it says, in no digest, for the one who is to work on it.
    text: IssueText

    @property
    def unchanged(self) -> bool:
        return not self.differences


class Graph(Protocol):
    """Reads the graph of one EPIC. It changes nothing; all raise SnapshotRefused."""

    async def repository(self) -> RepositoryNode:
        """The repository. The first answer says which one it is from then on."""

    async def epic(self) -> EpicNode:
        """The issue of the EPIC. The first answer says which one it is."""

    async def snapshot(self) -> Snapshot:
        """All of it, or nothing."""

    async def reread(self, snapshot: Snapshot, number: int) -> Reread:
        """One child of a snapshot, and its blockers, read again, with what it says."""

    async def close(self) -> None:
        """Let go of what is open."""


def snapshot_of(
    observed_at: str,
    repository: RepositoryNode,
    epic: EpicNode,
    children: Iterable[ChildNode],
) -> Snapshot:
    """A snapshot with its digest."""
    nodes = tuple(children)
    digest = _digest(
        {
            "repository": repository.id,
            "epic": {"id": epic.id, "number": epic.number},
            "children": [node_digest(node) for node in nodes],
        }
    )
    return Snapshot(digest, observed_at, repository, epic, nodes)


def node_digest(node: ChildNode) -> str:
    """Of what decides about a child: no title, no label and no time is in it."""
    parent: int | str | None = node.parent_id
    if parent is None and node.parent is not None:
        parent = str(node.parent)  # of one that is not the EPIC no id is told
    return _digest(
        {
            "id": node.id,
            "number": node.number,
            "repository": str(node.place),
            "pull_request": node.pull_request,
            "state": node.state,
            "state_reason": node.reason,
            "parent": parent,
            "blockers": [
                [str(each.at.place), each.at.number, each.id, each.state, each.reason]
                for each in sorted_blockers(node.blockers)
            ],
        }
    )


def sorted_blockers(blockers: Iterable[BlockerNode]) -> tuple[BlockerNode, ...]:
    """In the order of their places, whichever way they were told."""
    return tuple(sorted(blockers, key=lambda each: (each.at, each.id)))


def differences(old: ChildNode, new: ChildNode) -> tuple[str, ...]:
    """What is not any more as it was, in words for people."""
    found = [*_own(old, new), *_of_blockers(old, new)]
    if len(found) > MAX_DIFFERENCES:
        more = len(found) - MAX_DIFFERENCES + 1
        found[MAX_DIFFERENCES - 1 :] = [f"and {more} more differences"]
    return tuple(found)


def _own(old: ChildNode, new: ChildNode) -> Iterator[str]:
    if old.at != new.at:
        yield f"place: {old.at} -> {new.at}"
    if old.id != new.id:
        yield f"{new.at} is another issue now (id {old.id} -> {new.id})"
    if (old.state, old.reason) != (new.state, new.reason):
        yield f"state: {_state(old)} -> {_state(new)}"
    if old.pull_request != new.pull_request:
        kinds = {True: "pull request", False: "issue"}
        yield f"kind: {kinds[old.pull_request]} -> {kinds[new.pull_request]}"
    if (old.parent, old.parent_id) != (new.parent, new.parent_id):
        yield f"parent: {_parent(old, new.place)} -> {_parent(new, new.place)}"
    if bool(old.children) != bool(new.children):
        yield f"sub-issues: {old.children} -> {new.children}"


def _of_blockers(old: ChildNode, new: ChildNode) -> Iterator[str]:
    before = {each.at: each for each in old.blockers}
    after = {each.at: each for each in new.blockers}
    for at in sorted(before.keys() | after.keys()):
        one, other = before.get(at), after.get(at)
        name = issue_name(at, new.place)
        if one is None:
            yield f"blocker added: {name}"
        elif other is None:
            yield f"blocker removed: {name}"
        elif one.id != other.id:
            yield f"blocker {name} is another issue now"
        elif one != other:
            yield f"blocker {name}: {_state(one)} -> {_state(other)}"


def issue_name(at: IssueAt, home: Place) -> str:
    """`#12`, or with its repository where that is another one."""
    return f"#{at.number}" if at.place == home else str(at)


def word(text: str | None) -> str | None:
    """A state or a reason as it is shown: `not-planned`. None: not one that is known
    to be harmless."""
    if text is None or not _WORD.fullmatch(text):
        return None
    return text.replace("_", "-")


def _state(node: ChildNode | BlockerNode) -> str:
    state = word(node.state) or "unknown"
    reason = word(node.reason)
    return state if reason is None else f"{state} ({reason})"


def _parent(node: ChildNode, home: Place) -> str:
    return "none" if node.parent is None else issue_name(node.parent, home)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return digest_of(text.encode())
