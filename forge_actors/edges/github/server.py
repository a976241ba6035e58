"""One server of GitHub: what it is asked with, and when it wants to be left alone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import trio

from forge_actors.domain.github.answers import refusal, spent
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.github.places import within
from forge_actors.edges.github.known import Answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.github.answers import Answer
    from forge_actors.edges.github.http import Http
    from forge_actors.edges.github.tokens import Tokens

API_VERSION = "2022-11-28"
USER_AGENT = "forge-actors"
MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 307, 308)


class Server:
    """All that read from one server share its limits, and four connections."""

    def __init__(
        self,
        host: str,
        base: str,
        http: Http,
        tokens: Tokens,
        limiter: trio.CapacityLimiter,
        wall: Callable[[], float],
    ) -> None:
        self.host = host
        self.base = base
        self._http = http
        self._tokens = tokens
        self._limiter = limiter
        self._wall = wall
        self._again = 0.0
        #: Limits since the last answer.
        self._limits = 0
        self._asked_as: bytes | None = None
        #: What the token that is used was told.
        self.answers: Answers[Any] = Answers()

    async def ask(self, url: str, what: str, etag: str | None = None) -> Answer:
        """A good answer, or 304 if the one with that mark still is.

        Raises:
            GitHubFailed: there is none.
        """
        for _ in range(MAX_REDIRECTS + 1):
            async with self._limiter:
                self._check_limit(what)
                before = self._asked_as
                headers = await self._headers()
                if before not in (None, self._asked_as):
                    etag = None  # another one was told what that marks
                if etag is not None:
                    headers["if-none-match"] = etag
                answer = await self._http.get(url, headers, what)
            if answer.status not in _REDIRECTS:
                return self._judged(answer, what, etag)
            url = urljoin(url, answer.headers.get("location", ""))
            if not within(self.base, url):
                raise GitHubFailed(
                    "malformed", f"GitHub sends {what} to another server: refused"
                )
        raise GitHubFailed("malformed", f"GitHub sends {what} around in circles")

    async def tell(self, url: str, what: str, body: bytes) -> Answer:
        """The answer to something that is told, which is told once: no redirect is
        followed.

        Raises:
            GitHubFailed: it was not taken, or nobody knows.
        """
        async with self._limiter:
            self._check_limit(what)
            headers = {**await self._headers(), "content-type": "application/json"}
            answer = await self._http.post(url, headers, what, body)
        if answer.status in _REDIRECTS:
            raise GitHubFailed("not-found", f"{what}: the repository was moved")
        return self._judged(answer, what, None)

    async def close(self) -> None:
        self.answers.clear()
        self._asked_as = None
        await self._http.close()

    def _judged(self, answer: Answer, what: str, etag: str | None) -> Answer:
        if answer.status == 304 and etag is None:
            why = f"GitHub says of {what} that it has not changed, and was not asked"
            raise GitHubFailed("malformed", why)
        error = refusal(answer, what, self._wall(), before=self._limits)
        if error is None:
            self._limits = 0
            self._hold(spent(answer, self._wall()))
            return answer
        if error.kind == "rate-limited":
            self._limits += 1
            self._hold(error.wait)
        elif answer.status == 401:
            self._tokens.forget(self.host)
        raise error

    def _hold(self, wait: float | None) -> None:
        if wait is not None:
            self._again = max(self._again, trio.current_time() + wait)

    def _check_limit(self, what: str) -> None:
        wait = self._again - trio.current_time()
        if wait > 0:
            raise GitHubFailed(
                "rate-limited",
                f"GitHub takes questions again in {wait:.0f} s; not asked: {what}",
                wait=wait,
            )

    async def _headers(self) -> dict[str, str]:
        token = await self._tokens.find(self.host)
        value = "" if token is None else token.value
        # What one may see another may not.
        asked_as = hashlib.sha256(value.encode()).digest()
        if asked_as != self._asked_as:
            self._asked_as = asked_as
            self.answers.clear()
        headers = {
            "accept": "application/vnd.github+json",
            "accept-encoding": "gzip",
            "user-agent": USER_AGENT,
            "x-github-api-version": API_VERSION,
        }
        if value:
            headers["authorization"] = f"Bearer {value}"
        return headers
