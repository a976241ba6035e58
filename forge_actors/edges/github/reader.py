"""The reader of GitHub: whole lists, the right issue, and again where that helps."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import trio

from forge_actors.domain.github.answers import following, pace
from forge_actors.domain.github.issues import (
    ANSWER_SECONDS,
    MAX_PAGES,
    PAGE,
    PARALLEL,
    PATIENCE,
    TRIES,
    ChangedPage,
    GitHubFailed,
)
from forge_actors.domain.github.places import api_base, within
from forge_actors.domain.github.wire import (
    read_issue,
    read_issues,
    read_repository,
    read_text,
)
from forge_actors.edges.github.http import Http
from forge_actors.edges.github.known import Known
from forge_actors.edges.github.server import Server

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.github.issues import (
        ChangedQuery,
        GitHub,
        Issue,
        IssueText,
        RepositoryFacts,
    )
    from forge_actors.domain.github.places import IssueAt, Place
    from forge_actors.edges.github.tokens import Tokens

T = TypeVar("T")


class GitHubReader:
    """Implements `domain.github.issues.GitHub`.

    `base` stands for the interface of every server, where somebody gave one.
    """

    def __init__(
        self,
        tokens: Tokens,
        base: str | None = None,
        *,
        context: ssl.SSLContext | None = None,
        seconds: float = ANSWER_SECONDS,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = trio.sleep,
    ) -> None:
        self._tokens = tokens
        self._base = base
        self._context = context
        self._seconds = seconds
        self._wall = wall
        self._sleep = sleep
        self._limiter = trio.CapacityLimiter(PARALLEL)
        self._servers: dict[str, Server] = {}
        self._chance = random.Random()  # noqa: S311 - it spreads tries

    async def repository(self, place: Place) -> RepositoryFacts:
        """See the port."""
        server = self._server(place.host)
        read = partial(read_repository, host=place.host)
        return (await self._read(server, _repository_url(server, place), read)).value

    async def issue(self, at: IssueAt) -> Issue:
        """See the port."""
        server = self._server(at.place.host)
        read = partial(read_issue, host=at.place.host)
        found: Issue = (await self._read(server, _issue_url(server, at), read)).value
        return await self._checked(at, found)

    async def text(self, at: IssueAt) -> tuple[Issue, IssueText]:
        """See the port."""
        server = self._server(at.place.host)
        url, read = _issue_url(server, at), partial(read_text, host=at.place.host)
        _, told = await self._asked(server, url, _named(server, url), read, None)
        assert told is not None, "it was asked without a mark"
        return await self._checked(at, told[0]), told[1]

    async def sub_issues(self, at: IssueAt) -> tuple[Issue, ...]:
        """See the port."""
        return await self._list(at, "sub_issues")

    async def blockers(self, at: IssueAt) -> tuple[Issue, ...]:
        """See the port."""
        return await self._list(at, "dependencies/blocked_by")

    async def parent(self, at: IssueAt) -> Issue | None:
        """See the port."""
        server = self._server(at.place.host)
        url = f"{_issue_url(server, at)}/parent"
        read = partial(read_issue, host=at.place.host)
        try:
            return (await self._read(server, url, read)).value
        except GitHubFailed as error:
            if error.kind != "not-found":
                raise
        await self.issue(at)  # it may be the issue itself that is not there
        return None

    async def changed(self, place: Place, query: ChangedQuery) -> ChangedPage:
        """See the port."""
        server = self._server(place.host)
        url = query.link or _changed_url(server, place, query)
        if not within(server.base, url):
            raise GitHubFailed("malformed", "the rest of a list is on another server")
        what = _named(server, url)
        read = partial(read_issues, host=place.host)
        answer, issues = await self._asked(server, url, what, read, query.etag)
        if issues is None:
            etag = answer.headers.get("etag", query.etag)
            return ChangedPage((), same=True, etag=etag, pace=pace(answer.headers))
        for odd in {issue.at.place: issue for issue in issues}.values():
            await self._check_place(place, odd)
        return ChangedPage(
            issues,
            etag=answer.headers.get("etag"),
            following=self._following(server, answer.headers.get("link")),
            pace=pace(answer.headers),
        )

    async def close(self) -> None:
        """See the port."""
        servers, self._servers = self._servers, {}
        self._tokens.forget_all()
        for server in servers.values():
            await server.close()

    # -- lists -----------------------------------------------------------------------

    async def _list(self, at: IssueAt, path: str) -> tuple[Issue, ...]:
        try:
            try:
                return await self._pages(at, path)
            except GitHubFailed as error:
                if error.kind != "inconsistent":
                    raise
            return await self._pages(at, path)  # it changed while it was read
        except GitHubFailed as error:
            if error.kind != "not-found":
                raise
        await self.issue(at)
        raise GitHubFailed(
            "unsupported", f"{at.place.host} does not tell {path} of issues"
        )

    async def _pages(self, at: IssueAt, path: str) -> tuple[Issue, ...]:
        server = self._server(at.place.host)
        url: str | None = f"{_issue_url(server, at)}/{path}?per_page={PAGE}"
        read = partial(read_issues, host=at.place.host)
        issues: dict[int, Issue] = {}
        for _ in range(MAX_PAGES):
            if url is None:
                return tuple(issues.values())
            page = await self._read(server, url, read)
            for issue in page.value:
                if issue.id in issues:
                    raise GitHubFailed(
                        "inconsistent", f"{path} of {at} changed while it was read"
                    )
                issues[issue.id] = issue
            url = page.following
        if url is None:
            return tuple(issues.values())
        most = MAX_PAGES * PAGE
        raise GitHubFailed("too-large", f"{path} of {at} are more than {most} issues")

    def _following(self, server: Server, link: str | None) -> str | None:
        url = following(link)
        if url is not None and not within(server.base, url):
            raise GitHubFailed("malformed", "the rest of a list is on another server")
        return url

    # -- one answer ------------------------------------------------------------------

    async def _read(
        self, server: Server, url: str, read: Callable[[bytes], T]
    ) -> Known[T]:
        """What is at a URL, sent again only if it has changed."""
        known: Known[T] | None = server.answers.get(url)
        what = _named(server, url)
        etag = None if known is None else known.etag
        answer, value = await self._asked(server, url, what, read, etag)
        if value is None:
            # The token may have changed meanwhile, and with it what is known.
            assert known is not None, "nothing else is asked with a mark"
            return known
        link = self._following(server, answer.headers.get("link"))
        size = len(value) if isinstance(value, tuple) else 1
        fresh = Known(answer.headers.get("etag", ""), value, link, size + 1)
        if fresh.etag:
            server.answers.put(url, fresh)
        return fresh

    async def _asked(
        self,
        server: Server,
        url: str,
        what: str,
        read: Callable[[bytes], T],
        etag: str | None,
    ) -> tuple[Answer, T | None]:
        """An answer and what it says; None: the same as before.

        What may be over in a moment is asked again.
        """
        failed, waited = 0, 0.0
        while True:
            tries = 0
            try:
                answer = await server.ask(url, what, etag)
                if answer.status == 304:
                    return answer, None
                tries = 1  # one that is garbled may have broken off
                return answer, read(answer.body)
            except GitHubFailed as error:
                if error.kind == "rate-limited":
                    waited += error.wait or PATIENCE
                    if waited > PATIENCE:
                        raise
                    await self._sleep(error.wait or PATIENCE)
                    continue
                if error.kind == "unavailable":
                    tries = len(TRIES)
                if failed >= tries:
                    raise
            await self._sleep(TRIES[failed] * self._chance.uniform(0.75, 1.25))
            failed += 1

    async def _checked(self, at: IssueAt, found: Issue) -> Issue:
        """The issue that was asked for, and no other."""
        await self._check_place(at.place, found)
        if found.at.number != at.number:
            raise GitHubFailed("not-found", f"{at} is {found.at} now")
        return found

    async def _check_place(self, place: Place, found: Issue) -> None:
        """Refuse an issue of another repository, unless that is its name now."""
        if found.at.place == place:
            return
        facts = await self.repository(place)
        if facts.place != found.at.place:
            raise GitHubFailed("not-found", f"{found.at} is not in {place} any more")

    def _server(self, host: str) -> Server:
        server = self._servers.get(host)
        if server is None:
            base = self._base or api_base(host)
            server = Server(
                *(host, base, Http(base, self._context, self._seconds)),
                *(self._tokens, self._limiter, self._wall),
            )
            self._servers[host] = server
        return server


def _repository_url(server: Server, place: Place) -> str:
    return f"{server.base}/repos/{place.owner}/{place.name}"


def _issue_url(server: Server, at: IssueAt) -> str:
    return f"{_repository_url(server, at.place)}/issues/{at.number}"


def _changed_url(server: Server, place: Place, query: ChangedQuery) -> str:
    wanted: dict[str, str | int] = {
        "state": "all",
        "sort": "updated",
        "direction": "desc" if query.backwards else "asc",
        "per_page": query.count,
    }
    if query.since is not None:
        wanted["since"] = query.since
    if query.labels:
        wanted["labels"] = ",".join(query.labels)
    return f"{_repository_url(server, place)}/issues?{urlencode(wanted)}"


def _named(server: Server, url: str) -> str:
    return f"GET {url.removeprefix(server.base).partition('?')[0]}"


if TYPE_CHECKING:
    from forge_actors.domain.github.answers import Answer

    _is_a_port: Callable[[Tokens], GitHub] = GitHubReader
