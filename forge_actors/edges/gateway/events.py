"""The events: a page of them, or followed, as JSON lines or as server-sent events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec
import trio
from msgspec import structs

from forge_actors.domain.errors import ForgeError, InvalidInput, Unavailable
from forge_actors.domain.events import GATHER_SECONDS, EventQuery
from forge_actors.domain.redaction import bounded
from forge_actors.edges.gateway.messages import (
    JSON_LINES,
    RETRY_AFTER,
    Response,
    Stream,
    error_response,
)
from forge_actors.edges.gateway.sse import (
    EVENT_STREAM,
    HEADERS,
    HELLO,
    end_frame,
    entry_of,
    gap_frame,
)

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Request, Send
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
    "format",
)
FORMS = ("jsonl", "sse")
#: What is answered as a stream, of all that can be followed.
PATH = ("v1", "events")
#: Events of one piece for a follower, and of one answer.
EVENT_PAGE = 1000
MAX_EVENTS = 10_000

#: A browser that comes again says with it what it had last.
LAST_ID = "last-event-id"
_ID = re.compile(r"[0-9]{1,16}")
_encoder = msgspec.json.Encoder()


async def read(call: Call) -> Response | Stream:
    """The answer to a request for events.

    Raises:
        NotFound, Refused: no such repository or job, or several. InvalidInput.
    """
    form = call.query.one("format") or _accepted(call.request)
    if form not in FORMS:
        raise InvalidInput("format", f"{form!r} is none", allowed=FORMS)
    if form == "sse":
        return await _event_stream(call)
    return await _event_lines(call.control, call.query)


def streams(request: Request) -> bool:
    """Whether its answer is to be a stream; asked before it is checked."""
    if request.path != PATH:
        return False
    told = parse_qs(request.query).get("format", ())
    return (told[0] if told else _accepted(request)) == "sse"


def _accepted(request: Request) -> str:
    """The form that the client asks for by its headers."""
    accepted = request.headers.get("accept", "")
    kinds = [part.partition(";")[0].strip().lower() for part in accepted.split(",")]
    return "sse" if EVENT_STREAM in kinds else "jsonl"


def _wanted(query: Query) -> EventQuery:
    return EventQuery(
        after=query.number("after", 0, least=0) if query.one("after") else None,
        since=query.one("since"),
        repo=tuple(query.all("repo")),
        job=tuple(query.all("job")),
        kind=tuple(query.all("kind")),
        limit=query.number("limit", 100, least=1, most=MAX_EVENTS),
        newest=query.flag("newest"),
    )


async def _event_stream(call: Call) -> Response | Stream:
    """What comes, as server-sent events, for as long as the client listens.

    Where it begins is told by `Last-Event-ID`, which a browser sends when it comes
    again to the same address; else by the query.
    """
    hub = call.hub
    if hub is None:
        raise Unavailable("this service tells no events as they come")
    if hub.full:
        return error_response(
            503,
            "BUSY",
            f"{hub.limit} readers of events are here already",
            headers={"retry-after": str(RETRY_AFTER)},
        )
    _ = call.query.flag("follow")  # it always does
    wanted = _wanted(call.query)
    if seen := call.request.headers.get(LAST_ID):
        wanted = structs.replace(wanted, after=_number(seen), since=None, newest=False)
    _, last = await call.control.event_range()
    begin = b""
    if wanted.newest or wanted.since is not None:
        # At most `limit` at first; the others follow.
        page = await call.control.events(wanted, wait=False)
        begin = b"".join(entry_of(view).frame for view in page.events)
        following = page.next
    else:
        # Asked before the answer begins: what is wrong with the query is its error.
        asked = structs.replace(wanted, after=last, limit=1)
        following = (await call.control.events(asked, wait=False)).next
        after = last if wanted.after is None else wanted.after
        if after > last:
            begin, after = gap_frame(after, last + 1, last), last
        following = structs.replace(following, after=after)

    async def produce(send: Send) -> None:
        with hub.reader(following) as reader:
            await send(HELLO + begin)
            try:
                while data := await reader.next():
                    await send(data)
            except ForgeError as error:
                await send(end_frame(str(error)))

    return Stream(produce, EVENT_STREAM, HEADERS, lasting=True)


def _number(text: str) -> int:
    if not _ID.fullmatch(text):
        raise InvalidInput("Last-Event-ID", f"{bounded(text, 40)!r} is no event's id")
    return int(text)


async def _event_lines(control: Control, query: Query) -> Response | Stream:
    """A page of events as JSON lines, or followed."""
    follow, wanted = query.flag("follow"), _wanted(query)
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
