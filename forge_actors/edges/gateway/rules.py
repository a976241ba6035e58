"""What the connections of one server follow, and what a request may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.edges.gateway.messages import OWNER
from forge_actors.edges.gateway.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11
    import trio

    from forge_actors.edges.gateway.lookout import Lookout
    from forge_actors.edges.gateway.messages import Asker, Handler, Limits, Request

#: The path whose bodies have a limit of their own.
BATCH = ("v1", "batch")
#: Headers that say who asks: of two, nobody could tell which one counts.
_ONCE = (b"origin", b"authorization", b"sec-fetch-site")


class Gate(Protocol):
    """Decides who a client is that does not come through the owner's socket."""

    def admit(self, request: Request) -> Asker:
        """Who sends a request, whose body is not read yet.

        Raises:
            Refusal: nobody who may.
        """


class Rules(Struct, frozen=True):
    """What every connection of one server follows."""

    handler: Handler
    holds: Callable[[Request], bool]
    limits: Limits
    hosts: frozenset[str]
    #: The pages of browsers whose requests are accepted; those of others are not.
    origins: frozenset[str]
    gate: Gate | None
    stopping: trio.Event
    lookout: Lookout

    def asker(self, request: Request) -> Asker:
        return OWNER if self.gate is None else self.gate.admit(request)

    def check_head(self, head: h11.Request, headers: dict[str, str]) -> None:
        """Refuse what nobody may send, whoever it is.

        Raises:
            Refusal: as it says.
        """
        # h11 counts only what is incomplete, so a head that came at once passes it.
        size = len(head.target) + sum(
            len(name) + len(value) for name, value in head.headers
        )
        if size > self.limits.head_bytes:
            raise Refusal(431, "the head of the request is too large")
        if head.method == b"CONNECT":
            raise Refusal(501, "this is no proxy")
        # A page of a browser must not reach us, by whatever name it resolved us.
        if headers.get("host") not in self.hosts:
            raise Refusal(403, "the Host header names no host of this service")
        if "origin" in headers and headers["origin"] not in self.origins:
            raise Refusal(403, "requests of web pages are not accepted")
        names = [name for name, _ in head.headers]
        if any(names.count(name) > 1 for name in _ONCE):
            raise Refusal(400, "a header that says who asks is given twice")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refusal(400, "a body has one length, not two")

    def target(self, head: h11.Request) -> str:
        """What is asked for, without the name of us that it may begin with.

        Raises:
            Refusal: it begins with the name of somebody else.
        """
        text = head.target.decode("ascii")
        scheme, named, rest = text.partition("://")
        if not named or scheme.lower() != "http":
            return text
        host, _, path = rest.partition("/")
        if host not in self.hosts:
            raise Refusal(403, "the request is for no host of this service")
        return f"/{path}"

    def body_limit(self, request: Request) -> int:
        """Bytes that the body of a request may have.

        Raises:
            Refusal: it says that it has more.
        """
        limits = self.limits
        most = limits.batch_bytes if request.path == BATCH else limits.body_bytes
        if int(request.headers.get("content-length", "0")) > most:
            raise too_large(most)
        return most


def too_large(most: int) -> Refusal:
    return Refusal(413, f"the body of the request has more than {most} bytes")
