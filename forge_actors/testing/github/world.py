"""What there is on a GitHub for tests, and what people do to it.

Its time goes on by a second with everything that is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

#: When it begins: the first second of 2026.
BEGIN = 1_767_225_600
HOUR = 3600


@dataclass
class Repository:
    id: int
    owner: str
    name: str
    private: bool = False
    has_issues: bool = True
    archived: bool = False
    #: Tokens that may see it, if it is private; all of them without any.
    visible_to: set[str] = field(default_factory=set)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


@dataclass
class Issue:
    id: int
    number: int
    repository: int
    title: str = "An issue"
    body: str | None = None
    state: str = "open"
    reason: str | None = None
    pull_request: bool = False
    labels: list[str] = field(default_factory=list)
    created: float = BEGIN
    updated: float = BEGIN
    closed: float | None = None
    parent: int | None = None
    children: list[int] = field(default_factory=list)
    blockers: list[int] = field(default_factory=list)
    deleted: bool = False


@dataclass
class PullRequest:
    """One that somebody has opened over the interface."""

    number: int
    repository: int
    head: str
    base: str
    title: str
    body: str
    draft: bool
    state: str = "open"


@dataclass
class Account:
    """Who a token belongs to, and what is left of its hour."""

    login: str
    id: int
    limit: int = 5000
    used: int = 0


class World:
    """A whole server's worth."""

    def __init__(self) -> None:
        self.now: float = BEGIN
        self.repositories: dict[int, Repository] = {}
        self.issues: dict[int, Issue] = {}
        self.pulls: list[PullRequest] = []
        #: Branches that the repositories have, besides `main`.
        self.branches: set[str] = set()
        self.tokens: dict[str, Account] = {}
        self.anonymous = Account("", 0, limit=60)
        #: A server of a company has none unless somebody sets them.
        self.limits = True
        #: Old names of repositories, and old places of issues.
        self.old_names: dict[str, int] = {}
        self.old_places: dict[tuple[int, int], int] = {}

    # -- what there is ---------------------------------------------------------------

    def repository(self, owner: str, name: str, **more: Any) -> Repository:
        """Make one."""
        number = more.pop("id", 101 + len(self.repositories))
        made = Repository(number, owner, name, **more)
        self.repositories[made.id] = made
        return made

    def issue(self, of: Repository, number: int, **more: Any) -> Issue:
        """Open one; with `parent` and `blockers` as issues."""
        made_id = more.pop("id", 9000 + 1000 * (of.id - 101) + number)
        parent, blockers = more.pop("parent", None), more.pop("blockers", ())
        made = Issue(made_id, number, of.id, **more)
        made.created = made.updated = self.tick()
        self.issues[made.id] = made
        if parent is not None:
            self.adopt(parent, made)
        for blocker in blockers:
            self.block(made, blocker)
        return made

    def token(self, value: str, login: str = "dev", **more: Any) -> Account:
        account = Account(login, 21 + len(self.tokens), **more)
        self.tokens[value] = account
        return account

    def named(self, owner: str, name: str) -> tuple[Repository | None, bool]:
        """A repository, and whether that is an old name of it."""
        wanted = f"{owner}/{name}".lower()
        for found in self.repositories.values():
            if found.full_name.lower() == wanted:
                return found, False
        old = self.old_names.get(wanted)
        return (None, False) if old is None else (self.repositories[old], True)

    def numbered(self, of: Repository, number: int) -> Issue | None:
        for issue in self.issues.values():
            if (issue.repository, issue.number) == (of.id, number):
                return issue
        return None

    def place(self, issue: Issue) -> Repository:
        return self.repositories[issue.repository]

    # -- what people do --------------------------------------------------------------

    def tick(self, seconds: float = 1.0) -> float:
        self.now += seconds
        return self.now

    def touch(self, issue: Issue) -> None:
        """Have something happen to it, such as a comment."""
        issue.updated = self.tick()

    def close(self, issue: Issue, reason: str = "completed") -> None:
        issue.state, issue.reason = "closed", reason
        self.touch(issue)
        issue.closed = issue.updated

    def reopen(self, issue: Issue) -> None:
        issue.state, issue.reason, issue.closed = "open", "reopened", None
        self.touch(issue)

    def rename_issue(self, issue: Issue, title: str) -> None:
        issue.title = title
        self.touch(issue)

    def label(self, issue: Issue, *labels: str) -> None:
        issue.labels = list(labels)
        self.touch(issue)

    def adopt(self, parent: Issue, child: Issue) -> None:
        """Have one parent, and no other."""
        if child.parent is not None:
            self.issues[child.parent].children.remove(child.id)
        child.parent = parent.id
        parent.children.append(child.id)
        self.touch(child)
        parent.updated = child.updated

    def block(self, issue: Issue, blocker: Issue) -> None:
        issue.blockers.append(blocker.id)
        self.touch(issue)

    def delete(self, issue: Issue) -> None:
        issue.deleted = True
        self.touch(issue)

    def transfer(self, issue: Issue, to: Repository, number: int) -> None:
        self.old_places[issue.repository, issue.number] = issue.id
        issue.repository, issue.number = to.id, number
        self.touch(issue)

    def rename(self, repository: Repository, name: str) -> None:
        self.old_names[repository.full_name.lower()] = repository.id
        repository.name = name
        self.tick()


def moment(seconds: float | None) -> str | None:
    """As GitHub writes it."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
