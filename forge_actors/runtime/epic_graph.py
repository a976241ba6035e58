"""The graph of an EPIC, read from GitHub.

A snapshot takes two questions, the pages of the sub-issues, and one question for each
open child that has blockers, four at a time. What has not changed is not sent again.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.epic.graph import (
    MAX_BLOCKERS,
    MAX_CHILDREN,
    BlockerNode,
    ChildNode,
    EpicNode,
    RepositoryNode,
    Reread,
    SnapshotRefused,
    differences,
    node_digest,
    snapshot_of,
    sorted_blockers,
)
from forge_actors.domain.github.issues import PARALLEL, GitHubFailed
from forge_actors.domain.github.places import IssueAt
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forge_actors.domain.epic.graph import Graph, IssueText, Snapshot
    from forge_actors.domain.github.issues import GitHub, Issue

DOCTOR = "`forge-actors doctor` says which token is used"


class GitHubGraph:
    """Implements `domain.epic.graph.Graph`.

    The repository and the EPIC are what the first answers said, by their ids. A
    repository that is renamed is followed; another one in its place is refused.
    """

    def __init__(
        self,
        github: GitHub,
        at: IssueAt,
        *,
        wall: Callable[[], float] = time.time,
        shared: bool = False,
    ) -> None:
        self._github = github
        self._at = at
        self._wall = wall
        #: Others read by the same reader, so it is not closed with the graph.
        self._shared = shared
        self._repository_id: int | None = None
        self._epic_id: int | None = None

    async def repository(self) -> RepositoryNode:
        """See the port."""
        with _refusals():
            facts = await self._github.repository(self._at.place)
        if self._repository_id not in (None, facts.id):
            raise SnapshotRefused(
                "repository-changed",
                f"{facts.place} is another repository now: its id was"
                f" {self._repository_id} and is {facts.id}",
            )
        self._repository_id = facts.id
        self._at = IssueAt(facts.place, self._at.number)
        return RepositoryNode(facts.id, facts.place)

    async def epic(self) -> EpicNode:
        """See the port."""
        with _refusals():
            issue = await self._github.issue(self._at)
        if issue.pull_request:
            raise SnapshotRefused(
                "epic-not-an-issue", f"{issue.at} is a pull request, which is no EPIC"
            )
        if self._epic_id not in (None, issue.id):
            raise SnapshotRefused(
                "not-found",
                f"{issue.at} is another issue now: its id was {self._epic_id} and is"
                f" {issue.id}",
            )
        self._epic_id = issue.id
        return EpicNode(issue.id, issue.at, issue.state, issue.title, issue.children)

    async def snapshot(self) -> Snapshot:
        """See the port."""
        try:
            return await self._whole()
        except SnapshotRefused as error:
            if error.reason != "inconsistent":
                raise
        return await self._whole()  # it changed while it was read

    async def reread(self, snapshot: Snapshot, number: int) -> Reread:
        """See the port."""
        old = snapshot.child(number)
        if old is None:
            raise SnapshotRefused("not-found", f"{self._at} has no sub-issue #{number}")
        try:
            new, text = await self._again(snapshot, number)
        except SnapshotRefused as error:
            if error.reason != "inconsistent":
                raise
            new, text = await self._again(snapshot, number)
        return Reread(new, node_digest(new), differences(old, new), text)

    async def close(self) -> None:
        """See the port."""
        if not self._shared:
            await self._github.close()

    # -- all of it -------------------------------------------------------------------

    async def _whole(self) -> Snapshot:
        observed = timestamp(self._wall())
        repository = await self.repository()
        epic = await self.epic()
        if epic.at.place != repository.place:
            raise _shifted(f"the name of {repository.place} changed")
        _check_count(epic.children or 0, epic.at)
        with _refusals():
            issues = await self._github.sub_issues(epic.at)
        _check_count(len(issues), epic.at)
        if epic.children not in (None, len(issues)):
            raise _uneven(epic.at, "sub-issues", epic.children, len(issues))
        for issue in issues:
            if issue.parent not in (None, epic.at):
                told = f"{issue.at} is a sub-issue of {epic.at}"
                raise _shifted(f"{told} and says that its parent is {issue.parent}")
        children = await self._with_blockers(issues, epic)
        return snapshot_of(observed, repository, epic, children)

    async def _with_blockers(
        self, issues: Sequence[Issue], epic: EpicNode
    ) -> list[ChildNode]:
        """The children in their order. Nobody waits for what blocks a closed one, or
        one that cannot be worked on here."""
        nodes = [_child(issue, epic) for issue in issues]
        limiter = trio.CapacityLimiter(PARALLEL)
        failures: list[SnapshotRefused] = []

        async def look(place: int, issue: Issue) -> None:
            async with limiter:
                try:
                    blockers = await self._blockers(issue)
                except SnapshotRefused as error:
                    failures.append(error)
                    nursery.cancel_scope.cancel()
                else:
                    node = nodes[place]
                    nodes[place] = structs.replace(node, blockers=blockers)

        async with trio.open_nursery() as nursery:
            for place, issue in enumerate(issues):
                here = issue.at.place == epic.at.place and not issue.pull_request
                if here and issue.open and issue.blockers != 0:
                    nursery.start_soon(look, place, issue)
        if failures:
            raise failures[0]
        return nodes

    async def _blockers(self, issue: Issue) -> tuple[BlockerNode, ...]:
        with _refusals():
            found = await self._github.blockers(issue.at)
        if len(found) > MAX_BLOCKERS:
            raise SnapshotRefused(
                "too-large", f"{issue.at} has more than {MAX_BLOCKERS} blockers"
            )
        if issue.blockers not in (None, len(found)):
            raise _uneven(issue.at, "blockers", issue.blockers, len(found))
        return sorted_blockers(
            BlockerNode(each.at, each.id, each.state, each.reason) for each in found
        )

    # -- one of it -------------------------------------------------------------------

    async def _again(
        self, snapshot: Snapshot, number: int
    ) -> tuple[ChildNode, IssueText]:
        at = IssueAt(self._at.place, number)
        with _refusals():
            issue, text = await self._github.text(at)
            parent = issue.parent
            if parent is None:
                # Not each server tells it with the issue.
                found = await self._github.parent(issue.at)
                parent = None if found is None else found.at
        node = _child(issue, snapshot.epic)
        mine = parent == snapshot.epic.at
        node = structs.replace(
            node, parent=parent, parent_id=snapshot.epic.id if mine else None
        )
        if issue.open:
            node = structs.replace(node, blockers=await self._blockers(issue))
        return node, text


def _child(issue: Issue, epic: EpicNode) -> ChildNode:
    """A sub-issue of the EPIC, without its blockers."""
    return ChildNode(
        issue.id,
        issue.at,
        issue.state,
        issue.reason,
        issue.pull_request,
        parent=epic.at,
        parent_id=epic.id,
        children=issue.children or 0,
        title=issue.title,
    )


def _check_count(count: int, at: IssueAt) -> None:
    if count > MAX_CHILDREN:
        raise SnapshotRefused(
            "too-large", f"{at} has more than {MAX_CHILDREN} sub-issues"
        )


def _uneven(at: IssueAt, what: str, said: int | None, seen: int) -> SnapshotRefused:
    told = f"{at} says that it has {said} {what}, and {seen} are told"
    return _shifted(f"{told} (perhaps the token may not see them all)")


def _shifted(what: str) -> SnapshotRefused:
    return SnapshotRefused("inconsistent", f"{what}, while it was read")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except GitHubFailed as error:
        hint = f"; {DOCTOR}" if error.kind in ("denied", "not-found") else ""
        raise SnapshotRefused(error.kind, f"{error}{hint}", wait=error.wait) from None


if TYPE_CHECKING:
    _is_a_port: Callable[[GitHub, IssueAt], Graph] = GitHubGraph
