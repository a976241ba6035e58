"""The routes that make jobs of jobs: retries and follow-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import Continued, Retried
from forge_actors.edges.gateway.callers import origin_of
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class RetryingOne(Struct, forbid_unknown_fields=True):
    origin: str = "cli"
    resume: bool = False
    #: What a person allows them to do to the outside, and by what it is said.
    authorise: list[str] = []
    how: str = "http"


class Retrying(RetryingOne, forbid_unknown_fields=True, kw_only=True):
    jobs: list[str]


class Continuing(Struct, forbid_unknown_fields=True):
    prompt: str
    origin: str = "cli"


class Remade(Struct):
    """In the order in which they were named."""

    jobs: list[Retried]


async def retry(call: Call) -> Answer:
    wanted = decode(call.request.body, Retrying)
    if not wanted.jobs:
        raise InvalidInput("jobs", "names no job to retry")
    made = await call.control.retry(
        wanted.jobs,
        origin=origin_of(call.request, wanted.origin),
        resume=wanted.resume,
        authorise=wanted.authorise,
        how=wanted.how,
    )
    return json_response(Remade(made), status=201)


async def retry_one(call: Call) -> Answer:
    wanted = decode(call.request.body, RetryingOne)
    [made] = await call.control.retry(
        [call.parts[0]],
        origin=origin_of(call.request, wanted.origin),
        resume=wanted.resume,
        authorise=wanted.authorise,
        how=wanted.how,
    )
    return json_response(made, status=201)


async def go_on(call: Call) -> Answer:
    wanted = decode(call.request.body, Continuing)
    made = await call.control.continue_job(
        call.parts[0], wanted.prompt, origin=origin_of(call.request, wanted.origin)
    )
    return json_response(made, status=201)


ROUTES = (
    Route(
        "POST",
        "/v1/retry",
        retry,
        says="Make new jobs of some that have ended: all of them or none.",
        takes=Retrying,
        gives=Remade,
        status=201,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/retry",
        retry_one,
        says="Make a new job of one that has ended.",
        takes=RetryingOne,
        gives=Retried,
        status=201,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/continue",
        go_on,
        says="Ask the agent of a job that has ended for more, in the same session.",
        takes=Continuing,
        gives=Continued,
        status=201,
    ),
)
