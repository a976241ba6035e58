"""The routes that steer jobs: holds, pauses, edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.requests import JobEdit
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Response


class Nothing(Struct, forbid_unknown_fields=True):
    """The body of a request that says all in its path."""


class Scope(Struct, forbid_unknown_fields=True):
    scope: str
    jobs: bool = False


async def hold(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.hold(call.parts[0]))


async def unhold(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.unhold(call.parts[0]))


async def pause_job(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.pause_job(call.parts[0]))


async def resume_job(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.resume_job(call.parts[0]))


async def edit(call: Call) -> Response:
    wanted = decode(call.request.body, JobEdit)
    return json_response(await call.control.edit(call.parts[0], wanted))


async def pause(call: Call) -> Response:
    wanted = decode(call.request.body, Scope)
    pauses = await call.control.pause(wanted.scope, jobs=wanted.jobs)
    return json_response({"pauses": pauses})


async def resume(call: Call) -> Response:
    wanted = decode(call.request.body, Scope)
    pauses = await call.control.resume(wanted.scope, jobs=wanted.jobs)
    return json_response({"pauses": pauses})
