"""A call: one request, read as far as its route needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from forge_actors.edges.gateway.messages import Request, Response, Stream
from forge_actors.edges.gateway.query import Query

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.domain.logins import Logins
    from forge_actors.edges.gateway.event_hub import EventHub


class Call(Struct, frozen=True):
    """One request on its way to its route."""

    control: Control
    request: Request
    query: Query
    #: The variable parts of the path.
    parts: tuple[str, ...]
    #: None where there is only a socket.
    logins: Logins | None = None
    #: Where those who follow the events join.
    hub: EventHub | None = None


Answer: TypeAlias = Response | Stream
Verb: TypeAlias = Callable[[Call], Awaitable[Answer]]
