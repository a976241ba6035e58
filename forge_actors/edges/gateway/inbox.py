"""The routes of the inbox: what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.inbox import Inbox, Item
from forge_actors.domain.jobs import JobView
from forge_actors.edges.gateway.callers import named
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Dismissal(Struct, forbid_unknown_fields=True):
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
    wanted = decode(call.request.body, Dismissal)
    return json_response(await call.control.dismiss(wanted.item))


async def answer(call: Call) -> Answer:
    wanted = decode(call.request.body, Words)
    return json_response(await call.control.answer(call.parts[0], wanted.text))


async def approve(call: Call) -> Answer:
    wanted = decode(call.request.body, Approving)
    view = await call.control.approve(
        call.parts[0], how=wanted.how, caller=named(call.request)
    )
    return json_response(view)


async def deny(call: Call) -> Answer:
    wanted = decode(call.request.body, Denial)
    view = await call.control.deny(
        call.parts[0], wanted.reason, caller=named(call.request)
    )
    return json_response(view)


ROUTES = (
    Route(
        "GET",
        "/v1/inbox",
        listed,
        says="Everything that needs a person, what is urgent first.",
        gives=Inbox,
    ),
    Route(
        "POST",
        "/v1/inbox/dismiss",
        dismiss,
        says="Show an item of the inbox no more.",
        takes=Dismissal,
        gives=Item,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/answer",
        answer,
        says="Let a job go on that asks something, with this as its input.",
        takes=Words,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/approve",
        approve,
        says="The same without words; or allow what a job would do to the outside.",
        takes=Approving,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/deny",
        deny,
        says="End a job that asks something: it has failed.",
        takes=Denial,
        gives=JobView,
    ),
)
