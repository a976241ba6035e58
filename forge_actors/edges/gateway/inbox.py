"""The routes of the inbox: what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.edges.gateway.callers import caller
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Named(Struct, forbid_unknown_fields=True):
    """An item: its id, or the beginning or the end of one."""

    item: str


class Words(Struct, forbid_unknown_fields=True):
    text: str


class Approving(Struct, forbid_unknown_fields=True):
    #: By what the person does it.
    how: str = "http"


class Denial(Struct, forbid_unknown_fields=True):
    reason: str | None = None


async def listed(call: Call) -> Answer:
    return json_response(await call.control.inbox())


async def dismiss(call: Call) -> Answer:
    wanted = decode(call.request.body, Named)
    return json_response(await call.control.dismiss(wanted.item))


async def answer(call: Call) -> Answer:
    wanted = decode(call.request.body, Words)
    return json_response(await call.control.answer(call.parts[0], wanted.text))


async def approve(call: Call) -> Answer:
    wanted = decode(call.request.body, Approving)
    view = await call.control.approve(
        call.parts[0], how=wanted.how, caller=caller(call.request)
    )
    return json_response(view)


async def deny(call: Call) -> Answer:
    wanted = decode(call.request.body, Denial)
    view = await call.control.deny(
        call.parts[0], wanted.reason, caller=caller(call.request)
    )
    return json_response(view)
