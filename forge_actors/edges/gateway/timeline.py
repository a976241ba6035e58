"""The route of what ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.timeline import (
    DEFAULT_SPANS,
    MAX_SPANS,
    Timeline,
    TimelineQuery,
)
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call
    from forge_actors.edges.gateway.query import Query

PARAMETERS = ("since", "until", "repo", "limit")


async def told(call: Call) -> Answer:
    return json_response(await call.control.timeline(wanted(call.query)))


def wanted(query: Query) -> TimelineQuery:
    """The timeline that the parameters of a request ask for."""
    return TimelineQuery(
        since=query.one("since"),
        until=query.one("until"),
        repo=tuple(query.all("repo")),
        limit=query.number("limit", DEFAULT_SPANS, least=1, most=MAX_SPANS),
    )


ROUTES = (
    Route(
        "GET",
        "/v1/timeline",
        told,
        PARAMETERS,
        says="What ran when, and on which tokens.",
        gives=Timeline,
    ),
)
