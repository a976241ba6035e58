"""The route that tells an attempt whether it still holds its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway.messages import json_response

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


async def check(call: Call) -> Answer:
    # 0 is none of either, so what is left out is told as that.
    attempt, fence = (
        call.query.number(name, 0, least=1) for name in ("attempt", "fence")
    )
    if not (attempt and fence):
        raise InvalidInput("fence", "needs attempt=N and fence=N")
    job = call.parts[0]
    return json_response(await call.control.check_fence(job, attempt, fence))
