"""The pages: one document for all of them, and the files that it asks for.

Nothing here knows a job. The document is the same for everybody; its scripts ask the
routes below `/v1` like any other client, and what they get goes into it as text.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from forge_actors.edges.gateway.messages import Response, error_response
from forge_actors.edges.gateway.pages.assets import Asset, assets

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Request

DOCUMENT = "index.html"
LOGIN, SPENT, WELCOME = "login.html", "spent.html", "welcome.html"
#: The first parts of the paths of pages, and how many parts may follow.
PAGES = {"": 0, "jobs": 1, "repositories": 1, "schedules": 1, "timeline": 0}
PAGES |= {"workflows": 1, "epics": 1, "usage": 0, "health": 0}
ASSETS = "assets"
#: Every part of the paths that the handler answers.
FIRST = (*PAGES, ASSETS)

#: Scripts and styles of our own files only, from nowhere else, in no frame; and no
#: script may make markup of a text, which the browser itself sees to.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SAFE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
#: A browser keeps the files, and asks each time whether they are still the same: those
#: of another release are there with its first page.
CACHED = {"cache-control": "private, no-cache"}
NEVER = {"cache-control": "no-store"}


def is_page(request: Request) -> bool:
    """Whether it is for a page or a file of them, which hold nothing of anybody."""
    return (*request.path, "")[0] in FIRST


def wants_page(request: Request) -> bool:
    """Whether a person looks at the answer."""
    return "text/html" in request.headers.get("accept", "")


async def handle(request: Request) -> Response:
    """The answer to a request for a page or one of its files."""
    if request.method not in ("GET", "HEAD"):
        return error_response(
            405,
            "METHOD_NOT_ALLOWED",
            "pages are read with GET",
            headers={"allow": "GET, HEAD", **SAFE},
        )
    first, rest = (*request.path, "")[0], request.path[1:]
    if first == ASSETS and len(rest) == 1 and not rest[0].endswith(".html"):
        asset = assets().get(rest[0])
        if asset is not None:
            return _sent(asset, request)
    elif first in PAGES and len(rest) <= PAGES[first]:
        if request.asker.kind == "nobody":
            return not_let_in()
        return _sent(assets()[DOCUMENT], request)
    path = "/" + "/".join(request.path)
    return error_response(
        404, "NO_SUCH_ROUTE", f"there is nothing at {path}", headers=SAFE
    )


def not_let_in(*, spent: bool = False) -> Response:
    """What somebody sees who has no login, or a `spent` link: how to log in."""
    asset = assets()[SPENT if spent else LOGIN]
    return Response(401, asset.body, asset.content_type, {**SAFE, **NEVER})


def let_in(request: Request, place: str, cookie: str) -> Response:
    """Send a browser to a page with the cookie that it is given.

    A browser that was sent here by a file or by another site would not show a strict
    cookie where we send it on to; from a page of ours it does.
    """
    headers = {**SAFE, **NEVER, "set-cookie": cookie}
    if request.headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return Response(303, headers={**headers, "location": place})
    welcome = assets()[WELCOME]
    body = welcome.body.replace(b"PLACE", escape(place, quote=True).encode())
    return Response(200, body, welcome.content_type, headers)


def _sent(asset: Asset, request: Request) -> Response:
    headers = {"etag": asset.tag, **CACHED, **SAFE}
    wanted = request.headers.get("if-none-match", "")
    if wanted.strip() == "*" or asset.tag in _tags(wanted):
        return Response(304, b"", asset.content_type, headers)
    return Response(200, asset.body, asset.content_type, headers)


def _tags(wanted: str) -> list[str]:
    return [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
