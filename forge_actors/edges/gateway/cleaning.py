"""The route of the clean-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.cleaning import CLASSES, CleanClass, CleanRequest
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Response


class Cleaning(Struct, forbid_unknown_fields=True):
    """Without `classes` all of them. In a dry run nothing is removed."""

    dry_run: bool = False
    classes: tuple[str, ...] = ()


async def clean(call: Call) -> Response:
    wanted = decode(call.request.body, Cleaning)
    names: dict[CleanClass, None] = {}
    for name in wanted.classes:
        if name not in CLASSES:
            problem = f"{name!r} is no class of the clean-up"
            raise InvalidInput("classes", problem, allowed=CLASSES)
        names[name] = None
    request = CleanRequest("", 0.0, dry_run=wanted.dry_run, classes=tuple(names))
    return json_response((await call.control.clean(request)).view())


ROUTES = (
    Route(
        "POST",
        "/v1/clean",
        clean,
        says="Remove what is of no use any more, after the run that goes on.",
        takes=Cleaning,
        gives=dict[str, object],
        errors=(409, 503),
        holds=True,
    ),
)
