"""The route of login links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import Forbidden, Unavailable
from forge_actors.domain.logins import LoginLink
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class LinkRequest(Struct, forbid_unknown_fields=True):
    """Where the browser is to end."""

    place: str = "/"


async def make(call: Call) -> Answer:
    if call.request.asker.kind not in ("socket", "token"):
        # Whoever takes over one page is not to open others for later.
        raise Forbidden("a page can let no other one in: forge-actors open")
    wanted = decode(call.request.body, LinkRequest)
    if call.logins is None:
        raise Unavailable("this service has no pages: it answers on its socket only")
    return json_response(await call.logins.login_link(wanted.place), status=201)


class LoggedOut(Struct):
    """Whether there was a session that ended now."""

    ended: bool


async def leave(call: Call) -> Answer:
    decode(call.request.body, Nothing)
    asker = call.request.asker
    ended = (
        asker.kind == "page"
        and call.logins is not None
        and call.logins.log_out(asker.id)
    )
    return json_response(LoggedOut(ended))


ROUTES = (
    Route(
        "POST",
        "/v1/logout",
        leave,
        says="End the session of the page that asks.",
        takes=Nothing,
        gives=LoggedOut,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/login-links",
        make,
        says="A link that lets one browser in, once; it opens TCP where that is off.",
        takes=LinkRequest,
        gives=LoginLink,
        status=201,
        errors=(409, 503),
    ),
)
