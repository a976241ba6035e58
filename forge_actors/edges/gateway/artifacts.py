"""The routes of artifacts: which there are of a job, and the bytes of one."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.artifacts import Artifacts
from forge_actors.domain.errors import StoreFailed
from forge_actors.edges.gateway.messages import BYTES, Stream, json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.domain.control import ArtifactContent
    from forge_actors.edges.gateway.call import Answer, Call
    from forge_actors.edges.gateway.messages import Send

#: Bytes that are in memory at once.
PIECE = 256 * 1024


class ArtifactPage(Artifacts, frozen=True):
    """The same, its files in the order of their paths. `next` is the value of `after`
    for those behind them, or null."""

    next: str | None = None


async def listed(call: Call) -> Answer:
    [job] = call.parts
    found = await call.control.artifacts(job, attempt=_attempt(call))
    files, behind = page(found.files, attrgetter("path"), call.query)
    fields = {**structs.asdict(found), "files": files, "next": behind}
    return json_response(ArtifactPage(**fields))


async def content(call: Call) -> Answer:
    job, path = call.parts
    found = await call.control.artifact(job, path, attempt=_attempt(call))
    headers = {"forge-bytes": str(found.file.bytes), "forge-sha256": found.file.sha256}
    return Stream(partial(_send, found), headers=headers)


def _attempt(call: Call) -> int | None:
    return call.query.number("attempt", 0, least=1) or None


async def _send(found: ArtifactContent, send: Send) -> None:
    left = found.file.bytes
    with found.opened() as read:
        while piece := read(PIECE):
            left -= len(piece)
            await send(piece)
            await trio.lowlevel.checkpoint()
    if left:
        raise StoreFailed(f"{found.file.path} changed while it was sent")


ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{job}/artifacts",
        listed,
        ("attempt", *PAGED),
        says="The files that were collected of a job.",
        gives=ArtifactPage,
    ),
    Route(
        "GET",
        "/v1/jobs/{job}/artifacts/{path*}",
        content,
        ("attempt",),
        says="One of these files.",
        media=BYTES,
    ),
)
