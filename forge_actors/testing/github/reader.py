"""A reader of GitHub that asks no server: it looks into a world for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.github import issues as values
from forge_actors.domain.github.issues import (
    MAX_TEXT,
    ChangedPage,
    GitHubFailed,
    IssueText,
    RepositoryFacts,
)
from forge_actors.domain.github.places import GITHUB, IssueAt, Place
from forge_actors.domain.redaction import bounded
from forge_actors.testing.github.world import moment

if TYPE_CHECKING:
    from forge_actors.domain.github.issues import ChangedQuery, GitHub
    from forge_actors.testing.github.world import Issue, Repository, World


class FakeGitHub:
    """The port `GitHub`. What is put into `failures` is raised, one a read."""

    def __init__(self, world: World, host: str = GITHUB) -> None:
        self._world = world
        self._host = host
        self.failures: list[GitHubFailed] = []
        #: What was read, one after the other.
        self.reads: list[str] = []
        self.closed = False

    async def repository(self, place: Place) -> RepositoryFacts:
        found = self._repository(place, "repository")
        return RepositoryFacts(
            found.id,
            f"R_fake{found.id}",
            self._place(found),
            found.archived,
            disabled=False,
            has_issues=found.has_issues,
        )

    async def issue(self, at: IssueAt) -> values.Issue:
        return self._told(self._issue(at, "issue"))

    async def text(self, at: IssueAt) -> tuple[values.Issue, IssueText]:
        found = self._issue(at, "text")
        text = IssueText(found.title, bounded(found.body or "", MAX_TEXT))
        return self._told(found), text

    async def sub_issues(self, at: IssueAt) -> tuple[values.Issue, ...]:
        return self._all(self._issue(at, "sub_issues").children)

    async def blockers(self, at: IssueAt) -> tuple[values.Issue, ...]:
        return self._all(self._issue(at, "blockers").blockers)

    async def parent(self, at: IssueAt) -> values.Issue | None:
        parent = self._issue(at, "parent").parent
        return None if parent is None else self._told(self._world.issues[parent])

    async def changed(self, place: Place, query: ChangedQuery) -> ChangedPage:
        repository = self._repository(place, "changed")
        labels = {name.lower() for name in query.labels}
        found = [
            issue
            for issue in self._world.issues.values()
            if issue.repository == repository.id
            and not issue.deleted
            and (moment(issue.updated) or "") >= (query.since or "")
            and labels <= {name.lower() for name in issue.labels}
        ]
        found.sort(key=lambda issue: issue.updated, reverse=query.backwards)
        begin = int(query.link or 0)
        shown = tuple(map(self._told, found[begin : begin + query.count]))
        etag = f'W/"{hash((shown, query.since, query.labels, begin))}"'
        if etag == query.etag:
            return ChangedPage((), same=True, etag=etag)
        more = len(found) > begin + query.count
        following = str(begin + query.count) if more else None
        return ChangedPage(shown, etag=etag, following=following)

    async def close(self) -> None:
        self.closed = True

    def _repository(self, place: Place, what: str) -> Repository:
        self.reads.append(f"{what} {place.repo}")
        if self.failures:
            raise self.failures.pop(0)
        found, _ = self._world.named(place.owner, place.name)
        if found is None:
            raise GitHubFailed("not-found", f"there is no {place}")
        return found

    def _issue(self, at: IssueAt, what: str) -> Issue:
        found = self._world.numbered(self._repository(at.place, what), at.number)
        if found is None or found.deleted:
            raise GitHubFailed("not-found", f"there is no {at}")
        return found

    def _all(self, numbers: list[int]) -> tuple[values.Issue, ...]:
        return tuple(self._told(self._world.issues[number]) for number in numbers)

    def _place(self, repository: Repository) -> Place:
        return Place(self._host, repository.owner.lower(), repository.name.lower())

    def _told(self, issue: Issue) -> values.Issue:
        world = self._world
        of = world.place(issue)
        parent = None if issue.parent is None else world.issues[issue.parent]
        kind = "pull" if issue.pull_request else "issues"
        return values.Issue(
            id=issue.id,
            node_id=f"I_fake{issue.id}",
            at=IssueAt(self._place(of), issue.number),
            state=issue.state,
            reason=issue.reason,
            pull_request=issue.pull_request,
            title=issue.title,
            url=f"https://{self._host}/{of.full_name}/{kind}/{issue.number}",
            updated=moment(issue.updated) or "",
            labels=tuple(issue.labels),
            parent=None
            if parent is None
            else IssueAt(self._place(world.place(parent)), parent.number),
            children=len(issue.children),
            blockers=len(issue.blockers),
        )


if TYPE_CHECKING:
    from collections.abc import Callable

    _is_a_port: Callable[[World], GitHub] = FakeGitHub
