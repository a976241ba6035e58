"""Who may use a service over TCP: programs with its token, and pages that were let in.

Any user and any web page of this machine can reach a port of it, so that being here
says nothing. A program shows the token of the home. A browser is let in by a link: it
holds a ticket that counts once and soon is worthless, and is exchanged for a cookie.

Tickets and sessions are in memory only, and only their digests are; there are so many
of them, and when another one comes the oldest goes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import trio
from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway.messages import (
    NOBODY,
    Asker,
    error_response,
)
from forge_actors.edges.gateway.pages.handler import (
    is_page,
    let_in,
    not_let_in,
    wants_page,
)
from forge_actors.edges.gateway.rates import Bucket
from forge_actors.edges.gateway.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.gateway.messages import Request, Response

#: Seconds that a link can be used, and how many there may be at once.
TICKET_SECONDS = 60
MAX_TICKETS = 16
#: Seconds that a page may be silent, how long it is let in at most, and how many are.
IDLE_SECONDS = 12 * 3600.0
SESSION_SECONDS = 7 * 24 * 3600.0
MAX_SESSIONS = 64

LOGIN = "login"
READY = "ready"
#: What is answered to anybody.
_OPEN = frozenset({(LOGIN,), (READY,)})
_SAFE = ("GET", "HEAD")
#: Where only programs with the token come: no page of ours has anything to do there.
_FOR_PROGRAMS = frozenset({"mcp"})
#: A place of ours: not one of another host, as `//host` and `/\\host` would be.
_PLACE = re.compile(r"/(?![/\\])[!-\[\]-~]*")


class _Ticket(Struct, frozen=True):
    until: float
    place: str


class _Session(Struct):
    id: str
    began: float
    seen: float


class Gate:
    """Admits to one service over TCP; made anew with each start of it.

    `cookie` is the name of the cookie: a browser has those of all ports together.
    `rate` is how many requests a second programs, pages and strangers may send each.
    `ended` is told of a page, by its id, that is let in no more.
    """

    def __init__(
        self,
        token: str,
        cookie: str,
        *,
        rate: float,
        now: Callable[[], float] = trio.current_time,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._token = token.encode()
        self._program = Asker("token", f"bearer-{_digest(token)[:16]}")
        self._cookie = cookie
        self._now = now
        self._ended = ended
        self._rates = {kind: Bucket(rate, now) for kind in ("token", "page", "nobody")}
        self._tickets: dict[str, _Ticket] = {}
        self._sessions: dict[str, _Session] = {}

    def admit(self, request: Request) -> Asker:
        """Who sends a request, whose body is not read yet.

        Raises:
            Refusal: nobody who may, or too many of them.
        """
        try:
            asker = self._asker(request)
        except Refusal:
            # Who guesses is counted too, or could guess for ever.
            self._rates["nobody"].take()
            raise
        # A stranger must not be able to use up what lets a browser in.
        if request.path != (LOGIN,):
            self._rates[asker.kind].take()
        return asker

    def _asker(self, request: Request) -> Asker:
        headers = request.headers
        if request.path in _OPEN and request.method in _SAFE:
            return NOBODY
        if is_page(request) and request.method in _SAFE:
            # They are the same for everybody, and say how to log in.
            session = self._session(headers.get("cookie"))
            return NOBODY if session is None else _page(session)
        given = headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            if scheme.lower() == "bearer" and self._is_token(token.strip()):
                return self._program
            raise _unauthorized("the token is not that of this home", "invalid_token")
        session = self._session(headers.get("cookie"))
        if session is None:
            raise _unauthorized(
                "this needs the token of the home, or a browser that was let in:"
                " forge-actors open"
            )
        if not _is_of_our_page(request):
            raise Refusal(403, "this is no request of a page of this service")
        if not _FOR_PROGRAMS.isdisjoint(request.path[:1]):
            raise Refusal(403, "agents come with the token of the home")
        return _page(session)

    def ticket(self, place: str) -> str:
        """What lets one browser in, once, and brings it to a place such as `/`.

        Raises:
            InvalidInput: that is no place here.
        """
        if not _PLACE.fullmatch(place):
            raise InvalidInput("place", f"{place!r} is no path of this service")
        now = self._now()
        self._tickets = {d: t for d, t in self._tickets.items() if t.until > now}
        if len(self._tickets) >= MAX_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        ticket = secrets.token_urlsafe(32)
        self._tickets[_digest(ticket)] = _Ticket(now + TICKET_SECONDS, place)
        return ticket

    async def login(self, request: Request) -> Response:
        """The answer to a browser that comes with a ticket."""
        if request.method != "GET" or len(request.path) > 1:
            return error_response(
                405,
                "METHOD_NOT_ALLOWED",
                "a browser comes here with GET /login?ticket=...",
                headers={"allow": "GET"},
            )
        [given, *more] = parse_qs(request.query).get("ticket", [""])
        ticket = None if more else self._tickets.pop(_digest(given), None)
        if ticket is None or ticket.until <= self._now():
            if wants_page(request):
                return not_let_in(spent=True)
            return error_response(
                401,
                "LOGIN_LINK_SPENT",
                f"this link was used already, or is older than {TICKET_SECONDS} s;"
                " forge-actors open makes another one",
                headers={"www-authenticate": _CHALLENGE},
            )
        cookie = f"{self._cookie}={self._begin_session()}"
        cookie = f"{cookie}; Path=/; HttpOnly; SameSite=Strict"
        return let_in(request, ticket.place, cookie)

    def log_out(self, page: str) -> bool:
        """End the session with this id; whether there was one."""
        for digest, session in self._sessions.items():
            if session.id == page:
                self._end(digest)
                return True
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token)

    def _begin_session(self) -> str:
        now = self._now()
        if len(self._sessions) >= MAX_SESSIONS:
            self._end(next(iter(self._sessions)))
        secret = secrets.token_urlsafe(32)
        session = _Session(f"page-{secrets.token_hex(8)}", now, now)
        self._sessions[_digest(secret)] = session
        return secret

    def _session(self, cookies: str | None) -> _Session | None:
        pairs = [pair.strip().partition("=") for pair in (cookies or "").split(";")]
        given = [value for name, _, value in pairs if name == self._cookie]
        if len(given) != 1:
            return None
        digest = _digest(given[0])
        session, now = self._sessions.get(digest), self._now()
        if session is None:
            return None
        if now - session.seen > IDLE_SECONDS or now > _until(session):
            self._end(digest)
            return None
        session.seen = now
        # Those that were seen last are last.
        self._sessions[digest] = self._sessions.pop(digest)
        return session

    def _end(self, digest: str) -> None:
        self._ended(self._sessions.pop(digest).id)


def _until(session: _Session) -> float:
    return session.began + SESSION_SECONDS


def _page(session: _Session) -> Asker:
    return Asker("page", session.id, _until(session))


_CHALLENGE = 'Bearer realm="forge-actors"'


def _unauthorized(message: str, error: str | None = None) -> Refusal:
    more = "" if error is None else f', error="{error}"'
    return Refusal(401, message, {"www-authenticate": f"{_CHALLENGE}{more}"})


def _is_of_our_page(request: Request) -> bool:
    """Whether a request with our cookie was made by a page of ours, or by a person.

    A page of another port of this machine is of the same site for a browser, so that
    its requests have the cookie.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site")
    if request.method not in _SAFE:
        # An Origin that is here was compared with ours already.
        return "origin" in headers or site == "same-origin"
    if site in (None, "same-origin", "none"):
        return True
    mode, target = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return (mode, target) == ("navigate", "document")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
