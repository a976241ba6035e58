"""Issues as GitHub tells of them, and the port of whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from forge_actors.domain.github.places import IssueAt, Place

#: Requests that are under way at once.
PARALLEL = 4
#: Pages of one list, and the issues of a page.
MAX_PAGES = 10
PAGE = 100
#: Bytes of one answer, unpacked.
MAX_BODY = 32 * 1024 * 1024
#: Seconds until a connection stands, and until an answer is there.
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 20.0
#: Further tries of one read, and seconds before each of them.
TRIES = (0.5, 1.0)
#: Seconds for which a limit of GitHub is waited out within a read.
PATIENCE = 10.0
#: Characters of a title, and of what an error repeats of an answer.
MAX_TITLE, MAX_TOLD = 1024, 200
MAX_LABELS = 100
#: Characters of the text of an issue; GitHub takes no longer one.
MAX_TEXT = 65_536

FailureKind = Literal[
    "unavailable",
    "rate-limited",
    "inconsistent",
    "denied",
    "not-found",
    "malformed",
    "too-large",
    "unsupported",
]
_TRANSIENT = ("unavailable", "rate-limited", "inconsistent")


class GitHubFailed(ForgeError):
    """GitHub did not tell what was asked."""

    code = "GITHUB_FAILED"
    http_status = 502

    def __init__(
        self, kind: FailureKind, message: str, *, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        #: Seconds until it makes sense to ask again, where GitHub said so.
        self.wait = wait

    @property
    def transient(self) -> bool:
        """Whether it may be over by itself."""
        return self.kind in _TRANSIENT


class RepositoryFacts(Struct, frozen=True):
    """A repository as GitHub knows it."""

    id: int
    node_id: str
    #: Its name now; another one than was asked for, if it was renamed.
    place: Place
    archived: bool = False
    disabled: bool = False
    has_issues: bool = True


class Issue(Struct, frozen=True):
    """One issue. What it says comes from anybody: none of it is to be trusted."""

    id: int
    node_id: str
    at: IssueAt
    #: `open` or `closed`; what is added to these some day stays what it is.
    state: str
    reason: str | None
    pull_request: bool
    title: str
    #: Where people see it.
    url: str
    #: Such as 2026-01-02T03:04:05Z.
    updated: str
    labels: tuple[str, ...] = ()
    parent: IssueAt | None = None
    #: How many sub-issues it has, where the server says so.
    children: int | None = None
    #: How many issues block it, closed ones too, where the server says so.
    blockers: int | None = None

    @property
    def open(self) -> bool:
        return self.state == "open"


class IssueText(Struct, frozen=True):
    """What an issue says, of bounded length. None of it is to be trusted."""

    title: str
    body: str


class ChangedQuery(Struct, frozen=True):
    """Issues of one repository that changed, in the order in which they did."""

    #: Not before this moment, as GitHub writes it.
    since: str | None = None
    #: Those that have all of these.
    labels: tuple[str, ...] = ()
    count: int = PAGE
    #: The last one first.
    backwards: bool = False
    #: What the same question was answered with before.
    etag: str | None = None
    #: The rest of an answer: its `following`.
    link: str | None = None


class ChangedPage(Struct, frozen=True):
    #: In the order of the question; none if nothing is new.
    issues: tuple[Issue, ...]
    #: Nothing has changed since that `etag`.
    same: bool = False
    etag: str | None = None
    #: Where the rest is, for `link`.
    following: str | None = None
    #: Seconds that GitHub asks to leave between two questions.
    pace: float = 0.0


class GitHub(Protocol):
    """Reads issues. It changes nothing, and everything raises GitHubFailed."""

    async def repository(self, place: Place) -> RepositoryFacts:
        """The repository, under whatever name it has now."""

    async def issue(self, at: IssueAt) -> Issue:
        """The issue with this number. One that was moved to another repository is not
        found; one of a repository that was renamed is."""

    async def text(self, at: IssueAt) -> tuple[Issue, IssueText]:
        """That issue, and what it says, which is not remembered."""

    async def sub_issues(self, at: IssueAt) -> tuple[Issue, ...]:
        """All its direct sub-issues, open and closed, in their order."""

    async def blockers(self, at: IssueAt) -> tuple[Issue, ...]:
        """All issues that block it, open and closed."""

    async def parent(self, at: IssueAt) -> Issue | None:
        """The issue that it is a sub-issue of."""

    async def changed(self, place: Place, query: ChangedQuery) -> ChangedPage:
        """Issues and pull requests that changed: one page of them."""

    async def close(self) -> None:
        """Let go of connections, and of tokens. It may be used again."""
