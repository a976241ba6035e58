"""The routes of the HTTP interface: each asks the runtime one thing."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from forge_actors.edges.gateway import (
    artifacts,
    cleaning,
    controllers,
    epics,
    following,
    inbox,
    jobs,
    logins,
    output,
    policies,
    quarantine,
    repositories,
    results,
    schedules,
    state,
    steering,
    timeline,
    trust,
    usage,
    webhooks,
    workflows,
    worktrees,
)
from forge_actors.edges.gateway.messages import Response
from forge_actors.edges.gateway.openapi import document
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


async def show_document(_: Call) -> Answer:
    return Response(200, _document())


@lru_cache(maxsize=1)
def _document() -> bytes:
    return msgspec.json.encode(document(ROUTES)) + b"\n"


ROUTES: tuple[Route, ...] = (
    *state.ROUTES,
    *logins.ROUTES,
    *jobs.ROUTES,
    *output.ROUTES,
    *artifacts.ROUTES,
    *results.ROUTES,
    *steering.ROUTES,
    *policies.ROUTES,
    *inbox.ROUTES,
    *following.ROUTES,
    *quarantine.ROUTES,
    *repositories.ROUTES,
    *worktrees.ROUTES,
    *schedules.ROUTES,
    *trust.ROUTES,
    *workflows.ROUTES,
    *controllers.ROUTES,
    *epics.ROUTES,
    *usage.ROUTES,
    *webhooks.ROUTES,
    *timeline.ROUTES,
    *cleaning.ROUTES,
    Route(
        "GET",
        "/v1/openapi.json",
        show_document,
        says="This interface, as an OpenAPI document.",
        gives=dict[str, object],
        errors=(),
        tagged=True,
    ),
)
