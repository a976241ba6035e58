"""The routes of results: what a job changed, and bringing that into a checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.requests import unknown_word
from forge_actors.domain.results import APPLY_MODES, DIFF_FORMS, Applied
from forge_actors.edges.gateway.callers import caller
from forge_actors.edges.gateway.messages import BYTES, Response, json_response
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Applying(Struct, forbid_unknown_fields=True):
    mode: str = "auto"
    commit_first: bool = False


async def diff(call: Call) -> Answer:
    wanted = call.query.one("form") or "patch"
    for form in DIFF_FORMS:
        if form == wanted:
            return Response(200, await call.control.diff(call.parts[0], form), BYTES)
    raise unknown_word("form", wanted, DIFF_FORMS)


async def apply(call: Call) -> Answer:
    wanted = decode(call.request.body, Applying)
    if (job := caller(call.request)) is not None:
        await call.control.check_effect(job, "merge")
    for mode in APPLY_MODES:
        if mode == wanted.mode:
            return json_response(
                await call.control.apply(
                    call.parts[0], mode, commit_first=wanted.commit_first
                )
            )
    raise unknown_word("mode", wanted.mode, APPLY_MODES)


ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{job}/diff",
        diff,
        ("form",),
        says="What a job changed in its worktree.",
        media=BYTES,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/apply",
        apply,
        says="Bring the branch of a job into the checkout it was submitted for.",
        takes=Applying,
        gives=Applied,
        holds=True,
    ),
)
