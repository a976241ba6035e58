"""The route of what agents used."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.spending import GROUPS, UsageReport
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.domain.spending import Group
    from forge_actors.edges.gateway.call import Answer, Call

PARAMETERS = ("by", "since")


async def added_up(call: Call) -> Answer:
    words = call.query.choices("by", GROUPS)
    if len(words) > 1:
        raise InvalidInput("by", "is given more than once")
    by = cast("Group", words[0] if words else "day")
    return json_response(await call.control.usage(by, call.query.one("since")))


ROUTES = (
    Route(
        "GET",
        "/v1/usage",
        added_up,
        PARAMETERS,
        says="What agents used.",
        gives=UsageReport,
    ),
)
