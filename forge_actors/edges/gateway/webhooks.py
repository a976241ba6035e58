"""The routes of webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.webhooks import Answered, HookView
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Hooks(Struct):
    webhooks: list[HookView]


async def listed(call: Call) -> Answer:
    return json_response(Hooks(await call.control.webhooks()))


async def test(call: Call) -> Answer:
    decode(call.request.body, Nothing)
    return json_response(await call.control.test_webhook(call.parts[0]))


async def open_(call: Call) -> Answer:
    decode(call.request.body, Nothing)
    return json_response(await call.control.open_webhook(call.parts[0]))


ROUTES = (
    Route(
        "GET",
        "/v1/webhooks",
        listed,
        says="The webhooks, and how far each is.",
        gives=Hooks,
    ),
    Route(
        "POST",
        "/v1/webhooks/{name}/test",
        test,
        says="Tell a webhook something that is no event, once.",
        takes=Nothing,
        gives=Answered,
        holds=True,
    ),
    Route(
        "POST",
        "/v1/webhooks/{name}/open",
        open_,
        says="Tell a webhook that was closed again what comes.",
        takes=Nothing,
        gives=HookView,
    ),
)
