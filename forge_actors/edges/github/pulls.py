"""Pull requests on GitHub: the one thing that is written there, by workers alone."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import trio

from forge_actors.domain.github.issues import ANSWER_SECONDS, PARALLEL, GitHubFailed
from forge_actors.domain.github.places import MAX_NUMBER, api_base
from forge_actors.domain.github.pulls import MAX_TITLE
from forge_actors.domain.redaction import bounded
from forge_actors.edges.github.http import Http
from forge_actors.edges.github.server import Server

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from forge_actors.domain.github.places import Place
    from forge_actors.domain.github.pulls import PullRequests
    from forge_actors.edges.github.tokens import Tokens


class GitHubPullRequests:
    """Implements `domain.github.pulls.PullRequests` for one server."""

    def __init__(
        self,
        host: str,
        tokens: Tokens,
        base: str | None = None,
        *,
        context: ssl.SSLContext | None = None,
        seconds: float = ANSWER_SECONDS,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        base = base or api_base(host)
        http = Http(base, context, seconds)
        limiter = trio.CapacityLimiter(PARALLEL)
        self._server = Server(host, base, http, tokens, limiter, wall)

    async def find(self, place: Place, branch: str) -> int | None:
        """See the port."""
        head = f"{place.owner}:{branch}"
        query = urlencode({"head": head, "state": "all", "per_page": 10})
        what = f"GET /repos/{place.repo}/pulls"
        answer = await self._server.ask(f"{self._pulls(place)}?{query}", what)
        found = _json(answer.body, what)
        if not isinstance(found, list):
            raise _malformed(what)
        # A server that does not know the branch may tell of all that there are.
        numbers = [
            _number(each, what) for each in found if _head(each) == (branch, place.repo)
        ]
        return max(numbers, default=None)

    async def open_draft(
        self, place: Place, branch: str, base: str | None, title: str, body: str
    ) -> int:
        """See the port."""
        if base is None:
            base = await self._default_branch(place)
        wanted = {
            "title": bounded(title, MAX_TITLE),
            "head": branch,
            "base": base,
            "body": body,
            "draft": True,
        }
        what = f"POST /repos/{place.repo}/pulls"
        sent = json.dumps(wanted).encode()
        answer = await self._server.tell(self._pulls(place), what, sent)
        return _number(_json(answer.body, what), what)

    async def close(self) -> None:
        """See the port."""
        self._tokens.forget_all()
        await self._server.close()

    async def _default_branch(self, place: Place) -> str:
        what = f"GET /repos/{place.repo}"
        url = f"{self._server.base}/repos/{place.repo}"
        told = _json((await self._server.ask(url, what)).body, what)
        name = told.get("default_branch") if isinstance(told, dict) else None
        if not isinstance(name, str) or not name:
            raise _malformed(what)
        return name

    def _pulls(self, place: Place) -> str:
        return f"{self._server.base}/repos/{place.repo}/pulls"


def _json(body: bytes, what: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _malformed(what) from None


def _head(told: object) -> tuple[str, str] | None:
    """The branch that a pull request is of, and its repository."""
    head = told.get("head") if isinstance(told, dict) else None
    repo = head.get("repo") if isinstance(head, dict) else None
    name = repo.get("full_name") if isinstance(repo, dict) else None
    ref = head.get("ref") if isinstance(head, dict) else None
    if not isinstance(ref, str) or not isinstance(name, str):
        return None
    return ref, name.lower()


def _number(told: object, what: str) -> int:
    number = told.get("number") if isinstance(told, dict) else None
    if type(number) is not int or not 1 <= number <= MAX_NUMBER:
        raise _malformed(what)
    return number


def _malformed(what: str) -> GitHubFailed:
    return GitHubFailed("malformed", f"the answer to {what} is not what it has to be")


if TYPE_CHECKING:
    _is_a_port: Callable[[str, Tokens], PullRequests] = GitHubPullRequests
