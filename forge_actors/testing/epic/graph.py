"""A graph of an EPIC that asks nobody: a script says what is in it, and what changes.

graph = ScriptedGraph()
graph.add(1)
graph.add(2, blocked_by=(1,))
graph.after("snapshot", lambda: graph.finish(1))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import trio
from msgspec import structs

from forge_actors.domain.epic.graph import (
    CLOSED,
    OPEN,
    BlockerNode,
    ChildNode,
    EpicNode,
    IssueText,
    RepositoryNode,
    Reread,
    SnapshotRefused,
    differences,
    node_digest,
    snapshot_of,
    sorted_blockers,
)
from forge_actors.domain.github.places import GITHUB, IssueAt, Place
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.epic.graph import Graph, RefusalReason, Snapshot

T = TypeVar("T")

Read = Literal["repository", "epic", "snapshot", "reread"]
HOME = Place(GITHUB, "octo", "demo")
#: The first second of 2026.
BEGIN = 1_767_225_600.0


@dataclass
class _Hook:
    what: Read
    then: Callable[[], object]
    #: None: each time.
    nth: int | None
    met: int = 0


class ScriptedGraph:
    """The port `Graph`. Ids of issues are 9000 and their number, unless they are told.

    A read takes `seconds`, and waits for the `gate` if there is one.
    """

    def __init__(self, number: int = 7, place: Place = HOME) -> None:
        self.home = RepositoryNode(101, place)
        self.root = EpicNode(9000 + number, IssueAt(place, number), OPEN, "The EPIC")
        #: By number, in the order in which they are told.
        self.issues: dict[int, ChildNode] = {}
        #: Issues elsewhere, or of no EPIC, that block others.
        self.strangers: dict[IssueAt, BlockerNode] = {}
        self.blocked_by: dict[int, list[IssueAt]] = {}
        self.texts: dict[int, IssueText] = {}
        #: What was read, one after the other, such as `reread 2`.
        self.reads: list[str] = []
        self.seconds = 0.0
        self.gate: trio.Event | None = None
        #: Every read is refused with this.
        self.down: SnapshotRefused | None = None
        self.closed = False
        self.wall: Callable[[], float] = lambda: BEGIN + trio.current_time()
        self._failures: dict[Read, list[SnapshotRefused]] = {}
        self._hooks: list[_Hook] = []

    # -- the script ------------------------------------------------------------------

    def add(
        self, number: int, *, blocked_by: Iterable[int] = (), **more: Any
    ) -> ChildNode:
        """A child, behind those that are there; `more` are fields of the node."""
        node = ChildNode(
            more.pop("id", 9000 + number),
            more.pop("at", IssueAt(self.home.place, number)),
            more.pop("state", OPEN),
            parent=self.root.at,
            parent_id=self.root.id,
            title=more.pop("title", f"Issue {number}"),
        )
        self.issues[number] = structs.replace(node, **more)
        self.blocked_by[number] = [self._at(each) for each in blocked_by]
        return self.issues[number]

    def finish(self, number: int, reason: str | None = "completed") -> None:
        """Close it, as a person does."""
        self._change(number, state=CLOSED, reason=reason)

    def reopen(self, number: int) -> None:
        self._change(number, state=OPEN, reason="reopened")

    def block(self, number: int, by: int | BlockerNode) -> None:
        """Have it wait for another child, or for an issue from elsewhere."""
        if isinstance(by, BlockerNode):
            self.strangers[by.at] = by
            self.blocked_by[number].append(by.at)
        else:
            self.blocked_by[number].append(self._at(by))

    def unblock(self, number: int, by: int) -> None:
        self.blocked_by[number].remove(self._at(by))

    def give_away(self, number: int, to: int = 8) -> None:
        """Make it a sub-issue of another issue."""
        self._change(number, parent=self._at(to), parent_id=None)

    def remove(self, number: int) -> None:
        """Have it be there no more."""
        del self.issues[number]

    def change(self, number: int, **fields: Any) -> None:
        """Other fields of the node."""
        self._change(number, **fields)

    def order(self, *numbers: int) -> None:
        """Tell the children in this order from now on."""
        self.issues = {number: self.issues[number] for number in numbers}

    def rename(self, name: str) -> None:
        """Give the repository another name; its id stays."""
        old = self.home.place
        place = structs.replace(old, name=name)
        self.home = structs.replace(self.home, place=place)

        def moved(at: IssueAt) -> IssueAt:
            return IssueAt(place, at.number) if at.place == old else at

        self.root = structs.replace(self.root, at=moved(self.root.at))
        for number, node in self.issues.items():
            parent = None if node.parent is None else moved(node.parent)
            self._change(number, at=moved(node.at), parent=parent)
            blockers = self.blocked_by[number]
            self.blocked_by[number] = [moved(each) for each in blockers]

    def fail(
        self,
        what: Read,
        reason: RefusalReason = "unavailable",
        *,
        wait: float | None = None,
    ) -> None:
        """Refuse the next read of the kind; one call, one failure."""
        error = SnapshotRefused(reason, f"scripted: {reason}", wait=wait)
        self._failures.setdefault(what, []).append(error)

    def after(
        self, what: Read, then: Callable[[], object], nth: int | None = 1
    ) -> None:
        """Have something happen after the nth read of the kind, seen by the next."""
        self._hooks.append(_Hook(what, then, nth))

    def count(self, what: Read) -> int:
        """How often it was read."""
        return sum(each.split()[0] == what for each in self.reads)

    # -- the port --------------------------------------------------------------------

    async def repository(self) -> RepositoryNode:
        """See the port."""
        await self._read("repository")
        return self._then("repository", self.home)

    async def epic(self) -> EpicNode:
        """See the port."""
        await self._read("epic")
        return self._then("epic", self.root)

    async def snapshot(self) -> Snapshot:
        """See the port."""
        observed = timestamp(self.wall())
        await self._read("snapshot")
        children = [
            self._node(number)
            for number, node in self.issues.items()
            if node.parent == self.root.at
        ]
        made = snapshot_of(observed, self.home, self.root, children)
        return self._then("snapshot", made)

    async def reread(self, snapshot: Snapshot, number: int) -> Reread:
        """See the port."""
        await self._read("reread", number)
        old = snapshot.child(number)
        if old is None or number not in self.issues:
            raise SnapshotRefused("not-found", f"there is no #{number}")
        new = self._node(number)
        told = self._text(number)
        found = Reread(new, node_digest(new), differences(old, new), told)
        return self._then("reread", found)

    async def close(self) -> None:
        """See the port."""
        self.closed = True

    # -- how -------------------------------------------------------------------------

    async def _read(self, what: Read, number: int | None = None) -> None:
        self.reads.append(what if number is None else f"{what} {number}")
        if self.gate is not None:
            await self.gate.wait()
        await trio.sleep(self.seconds)
        if self.down is not None:
            raise self.down
        if failures := self._failures.get(what):
            raise failures.pop(0)

    def _then(self, what: Read, answer: T) -> T:
        for hook in self._hooks:
            if hook.what == what:
                hook.met += 1
                if hook.nth in (None, hook.met):
                    hook.then()
        return answer

    def _node(self, number: int) -> ChildNode:
        node = self.issues[number]
        if node.state == CLOSED:
            return structs.replace(node, blockers=())
        found = map(self._blocker, self.blocked_by[number])
        return structs.replace(node, blockers=sorted_blockers(found))

    def _text(self, number: int) -> IssueText:
        plain = IssueText(self.issues[number].title, f"What #{number} is about.")
        return self.texts.get(number, plain)

    def _blocker(self, at: IssueAt) -> BlockerNode:
        if at in self.strangers:
            return self.strangers[at]
        node = self.issues.get(at.number)
        if node is None:
            return BlockerNode(at, 9000 + at.number, OPEN)
        return BlockerNode(at, node.id, node.state, node.reason)

    def _at(self, number: int) -> IssueAt:
        return IssueAt(self.home.place, number)

    def _change(self, number: int, **fields: Any) -> None:
        self.issues[number] = structs.replace(self.issues[number], **fields)


if TYPE_CHECKING:
    _is_a_port: Callable[[], Graph] = ScriptedGraph
