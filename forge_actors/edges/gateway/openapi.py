"""The OpenAPI document of the interface, made from its routes and their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from forge_actors import __version__
from forge_actors.edges.gateway.messages import JSON_LINES, PROBLEM
from forge_actors.edges.gateway.parameters import HEADERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.edges.gateway.parameters import Parameter
    from forge_actors.edges.gateway.route import Route

VERSION = "3.1.1"
#: What can be answered to any request.
COMMON = (400, 401, 403, 413, 429, 500, 503)
_SAYS = {
    304: "It is still the same.",
    400: "The input is not valid.",
    401: "It needs the token, or a browser that was let in.",
    403: "It is not for the one who asks.",
    404: "There is no such thing.",
    409: "The present state does not allow it.",
    412: "It is not as it was any more.",
    413: "The body is too large.",
    429: "There are too many requests; `retry-after` says when to come again.",
    500: "The service failed; its log has the details.",
    503: "There is no room now, or the service ends.",
}


class Problem(Struct):
    """An error, as RFC 9457 has it; `code` is the stable word for programs."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    field: str | None = None
    allowed: list[str] | None = None


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document of these routes."""
    types = [kind for route in routes for kind in (route.takes, route.gives) if kind]
    unique = [*dict.fromkeys(types), Problem]
    schemas, components = msgspec.json.schema_components(
        unique, schema_hook=_anything, ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(unique, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        path = paths.setdefault(route.template.replace("*}", "}"), {})
        path[route.method.lower()] = _operation(route, known)
    return {
        "openapi": VERSION,
        "info": {
            "title": "Forge Actors",
            "version": __version__,
            "description": "Jobs of git repositories, run within the limits of one"
            " machine.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"page": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "page": {"type": "apiKey", "in": "cookie", "name": "forge-actors-PORT"},
            },
        },
    }


def _anything(_: type) -> dict[str, Any]:
    """The schema of what is an `object` for Python; an empty one counts as none."""
    return {"description": "Any value of JSON."}


def _operation(route: Route, known: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _name(route),
        "summary": route.says,
        "tags": [route.path[1]],
        "parameters": [
            *_path_parameters(route),
            *(_parameter(one, "query") for one in route.described),
            *(_parameter(HEADERS[name], "header") for name in route.headers),
        ],
        "responses": _responses(route, known),
    }
    if route.takes is not None:
        schema = known[route.takes]
        if route.takes_media == JSON_LINES:
            # Of a body of lines no schema can be told: this is that of one line.
            content: dict[str, Any] = {"schema": {}, "itemSchema": schema}
        else:
            content = {"schema": schema}
        operation["requestBody"] = {"content": {route.takes_media: content}}
    return operation


def _name(route: Route) -> str:
    words = [part.strip("{}*") for part in route.path[1:]]
    return "_".join([route.method.lower(), *words]).replace("-", "_").replace(".", "_")


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": route.path[place].strip("{}*"),
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
        for place in route.places
    ]


def _parameter(one: Parameter, where: str) -> dict[str, Any]:
    told = {"name": one.name, "in": where, "description": one.says}
    return {**told, "schema": one.schema}


def _responses(route: Route, known: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    good: dict[str, Any]
    if route.gives is None:
        good = {route.media: {"schema": {"type": "string", "format": "binary"}}}
    elif route.media == JSON_LINES:
        good = {route.media: {"schema": {}, "itemSchema": known[route.gives]}}
    else:
        good = {route.media: {"schema": known[route.gives]}}
    found = {str(route.status): {"description": "It is done.", "content": good}}
    if route.tagged:
        found["304"] = {"description": _SAYS[304]}
    problem = {PROBLEM: {"schema": known[Problem]}}
    for status in sorted({*COMMON, *route.errors}):
        found[str(status)] = {"description": _SAYS[status], "content": problem}
    return found
