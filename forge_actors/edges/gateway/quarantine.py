"""The routes of claims that are kept for what ended jobs left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Response


class Quarantined(Struct):
    """The oldest first."""

    quarantined: list[dict[str, object]]


async def listed(call: Call) -> Response:
    return json_response(Quarantined(await call.control.quarantined()))


async def release(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.release_quarantine(call.parts[0]))


ROUTES = (
    Route(
        "GET",
        "/v1/quarantine",
        listed,
        says="The claims that are kept for what ended jobs left.",
        gives=Quarantined,
    ),
    Route(
        "POST",
        "/v1/quarantine/{job}/release",
        release,
        says="Free what is kept for one job, though nothing is proven gone.",
        takes=Nothing,
        gives=dict[str, object],
    ),
)
