"""The events as JSON lines: a page of them, or followed for as long as one listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import structs

from forge_actors.domain.events import GATHER_SECONDS, EventQuery
from forge_actors.edges.gateway.messages import JSON_LINES, Response, Stream

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.messages import Send
    from forge_actors.edges.gateway.query import Query

PARAMETERS = (
    "after",
    "since",
    "repo",
    "job",
    "kind",
    "limit",
    "newest",
    "follow",
)
#: Events of one piece for a follower, and of one answer.
EVENT_PAGE = 1000
MAX_EVENTS = 10_000

_encoder = msgspec.json.Encoder()


async def event_lines(control: Control, query: Query) -> Response | Stream:
    """The answer to a request for events.

    Raises:
        NotFound, Refused: no such repository or job, or several. InvalidInput.
    """
    follow = query.flag("follow")
    wanted = EventQuery(
        after=query.number("after", 0, least=0) if query.one("after") else None,
        since=query.one("since"),
        repo=tuple(query.all("repo")),
        job=tuple(query.all("job")),
        kind=tuple(query.all("kind")),
        limit=query.number("limit", 100, least=1, most=MAX_EVENTS),
        newest=query.flag("newest"),
    )
    if not follow:
        page = await control.events(wanted, wait=False)
        return Response(200, _encoder.encode_lines(page.events), JSON_LINES)
    if not wanted.newest and wanted.after is None and wanted.since is None:
        # From now on, and not from when somebody reads the answer.
        newest = structs.replace(wanted, repo=(), job=(), kind=(), newest=True, limit=1)
        last = (await control.events(newest, wait=False)).next.after
        wanted = structs.replace(wanted, after=last)
    # Asked before the answer begins: what is wrong with the query is an error of it.
    first = await control.events(wanted, wait=False)

    async def produce(send: Send) -> None:
        page = first
        while True:
            if page.events:
                await send(_encoder.encode_lines(page.events))
                if len(page.events) < EVENT_PAGE:
                    await trio.sleep(GATHER_SECONDS)
            page = await control.events(
                structs.replace(page.next, limit=EVENT_PAGE), wait=True
            )
            if not page.events:
                return  # the runtime ends

    return Stream(produce, JSON_LINES)
