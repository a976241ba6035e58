"""Requests of the HTTP interface on their way to their routes."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from forge_actors.domain.errors import ForgeError, InvalidInput, StoreFailed
from forge_actors.edges.gateway.call import Answer, Call
from forge_actors.edges.gateway.events import streams
from forge_actors.edges.gateway.messages import Request, Response, error_response
from forge_actors.edges.gateway.query import Query
from forge_actors.edges.gateway.routes import ROUTES
from forge_actors.edges.gateway.tags import tagged

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.domain.logins import Logins
    from forge_actors.edges.gateway.event_hub import EventHub
    from forge_actors.edges.gateway.messages import Handler
    from forge_actors.edges.gateway.route import Route

log = logging.getLogger(__name__)

_FIXED = {(route.method, route.path): route for route in ROUTES if not route.places}
_VARIABLE = tuple(route for route in ROUTES if route.places)


def handler(
    control: Control, door: Logins | None = None, hub: EventHub | None = None
) -> Handler:
    """The handler that serves `control` under every route; `hub` has its events."""
    return partial(_handle, control, door, hub)


async def _handle(
    control: Control, door: Logins | None, hub: EventHub | None, request: Request
) -> Answer:
    try:
        return await _route(control, door, hub, request)
    except ForgeError as error:
        # A store that saves nothing says so itself, once and not for each request.
        if error.http_status >= 500 and not isinstance(error, StoreFailed):
            log.warning("%s: %s", request, error)
        return _refused(error)


def _refused(error: ForgeError) -> Response:
    details: dict[str, object] = {}
    if isinstance(error, InvalidInput):
        details["field"] = error.field
        if error.allowed:
            details["allowed"] = error.allowed
    return error_response(error.http_status, error.code, str(error), details=details)


def holds(request: Request) -> bool:
    """Whether its route keeps a request open until something happens elsewhere.

    Asked before the request is checked, so one that will be refused may count as held.
    """
    route = find_route(_method(request), request.path)
    if route is None:
        return False
    if isinstance(route.holds, str):
        # A stream has a place of its own.
        return _names(request.query, route.holds) and not streams(request)
    return route.holds


def _names(query: str, name: str) -> bool:
    """Whether a query has a parameter, however that is written."""
    return f"{name}=" in query or ("%" in query and name in parse_qs(query))


async def _route(
    control: Control, door: Logins | None, hub: EventHub | None, request: Request
) -> Answer:
    route = find_route(_method(request), request.path)
    if route is not None:
        query = Query(request.query, route.parameters)
        parts = route.parts(request)
        answer = await route.verb(Call(control, request, query, parts, door, hub))
        if route.tagged and isinstance(answer, Response) and answer.status == 200:
            return tagged(answer, request)
        return answer
    path = "/" + "/".join(request.path)
    others = [route.method for route in ROUTES if route.leads_to(request.path)]
    if others:
        return error_response(
            405,
            "METHOD_NOT_ALLOWED",
            f"{path} answers {' and '.join(others)}, not {request.method}",
            headers={"allow": ", ".join(others)},
        )
    return error_response(404, "NO_SUCH_ROUTE", f"there is nothing at {path}")


def _method(request: Request) -> str:
    return "GET" if request.method == "HEAD" else request.method


def find_route(method: str, path: tuple[str, ...]) -> Route | None:
    """The route of a method and a path, if there is one."""
    route = _FIXED.get((method, path))
    if route is not None:
        return route
    for route in _VARIABLE:
        if route.method == method and route.leads_to(path):
            return route
    return None
