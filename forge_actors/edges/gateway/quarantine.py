"""The routes of claims that are kept for what ended jobs left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Response


async def listed(call: Call) -> Response:
    return json_response({"quarantined": await call.control.quarantined()})


async def release(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.release_quarantine(call.parts[0]))
