"""The routes of the policy: which work is let in and started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from forge_actors.domain.errors import Outdated, Refused
from forge_actors.domain.policies import PolicyRequest, PolicyView
from forge_actors.edges.gateway.callers import named
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route
from forge_actors.edges.gateway.tags import IF_MATCH, matches, tag_of

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Narrowing(Struct, forbid_unknown_fields=True):
    """The work whose jobs alone are started; the rest is as with any policy."""

    work: str
    until: str | None = None
    for_: str | float | None = field(default=None, name="for")
    reason: str = ""
    revision: int | None = None


async def show(call: Call) -> Answer:
    return json_response(await call.control.policy())


async def change(call: Call) -> Answer:
    return await _set(call, decode(call.request.body, PolicyRequest))


async def narrow(call: Call) -> Answer:
    told = decode(call.request.body, Narrowing)
    wanted = PolicyRequest("exclusive", **structs.asdict(told))
    return await _set(call, wanted, narrows=True)


async def end(call: Call) -> Answer:
    return await _set(call, PolicyRequest("normal"))


async def _set(call: Call, wanted: PolicyRequest, *, narrows: bool = False) -> Answer:
    """Have it in force, for a person, and if it was as they have read it.

    Raises:
        Refused: a job asks for it. Outdated: it is another one by now.
    """
    if (job := named(call.request)) is not None:
        raise Refused(f"{job} can change no policy: a person can")
    known = call.request.headers.get(IF_MATCH)
    if known is not None:
        view = await call.control.policy()
        if not matches(known, tag_of(json_response(view))):
            raise Outdated("the policy")
        if wanted.revision is None:
            wanted = structs.replace(wanted, revision=view.revision)
    return json_response(await call.control.set_policy(wanted, narrows=narrows))


_ERRORS = (409, 412)

ROUTES = (
    Route(
        "GET",
        "/v1/policy",
        show,
        says="Which work is let in and started now.",
        gives=PolicyView,
        errors=(),
        tagged=True,
    ),
    Route(
        "POST",
        "/v1/policy",
        change,
        says="Have another policy in force.",
        takes=PolicyRequest,
        gives=PolicyView,
        headers=(IF_MATCH,),
        errors=(404, *_ERRORS),
    ),
    Route(
        "DELETE",
        "/v1/policy",
        end,
        says="End the policy: anything is let in and started again.",
        gives=PolicyView,
        headers=(IF_MATCH,),
        errors=_ERRORS,
    ),
    Route(
        "POST",
        "/v1/policy/narrow",
        narrow,
        says="From convergence to the jobs of one work; refused from anything else.",
        takes=Narrowing,
        gives=PolicyView,
        headers=(IF_MATCH,),
        errors=(404, *_ERRORS),
    ),
)
