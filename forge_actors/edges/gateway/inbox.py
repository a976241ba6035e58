"""The routes of the inbox: what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Named(Struct, forbid_unknown_fields=True):
    """An item: its id, or the beginning or the end of one."""

    item: str


async def listed(call: Call) -> Answer:
    return json_response(await call.control.inbox())


async def dismiss(call: Call) -> Answer:
    wanted = decode(call.request.body, Named)
    return json_response(await call.control.dismiss(wanted.item))
