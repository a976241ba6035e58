"""The output of jobs for agents: a piece of a stream, as text, and where it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.harmless import clean_lines
from forge_actors.edges.gateway.log_copy import Copy
from forge_actors.edges.gateway.mcp.rows import job_uri

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.mcp.answers import Json
    from forge_actors.edges.gateway.mcp.arguments import ReadLog
    from forge_actors.edges.gateway.mcp.calls import Call


class Part(Struct, frozen=True):
    """A piece of a stream; `ended` says that nothing follows it."""

    job: str
    attempt: int
    state: str
    #: The first byte of it, and the one behind it.
    offset: int
    next_offset: int
    ended: bool
    text: str


async def read_part(
    control: Control,
    selector: str,
    stream: str,
    *,
    offset: int,
    limit: int,
    attempt: int | None = None,
) -> Part:
    """Read at most `limit` bytes, secrets taken out; a negative offset is from the end.

    Raises:
        NotFound: there is no such job. InvalidInput: it has no such attempt.
    """
    job = await control.job(selector)
    number = attempt or max(1, job.attempt)
    if number > max(1, job.attempt):
        raise InvalidInput("attempt", f"{attempt} is not among the {job.attempt}")
    copy = Copy(control, job.id, stream, attempt=number, offset=offset)
    begin = await copy.start()
    pieces: list[bytes] = []

    async def keep(data: bytes) -> None:
        pieces.append(data)

    await copy.send(keep, limit=limit)
    await copy.finish(keep)
    # A piece that fills the limit does not say whether it is the last one.
    behind = None if copy.ended else await copy.read(1)
    text = clean_lines(b"".join(pieces).decode("utf-8", "replace"))
    return Part(
        job=job.id,
        attempt=number,
        state=job.state,
        offset=begin,
        next_offset=copy.offset,
        ended=behind is None or (behind.ended and behind.next_offset == copy.offset),
        text=text,
    )


async def logs(call: Call, wanted: ReadLog) -> Json:
    offset = -wanted.limit if wanted.offset is None else wanted.offset
    part = await read_part(
        call.control,
        wanted.job,
        wanted.stream,
        offset=offset,
        limit=wanted.limit,
        attempt=wanted.attempt,
    )
    answer: Json = {
        "job": part.job,
        "state": part.state,
        "stream": wanted.stream,
        "attempt": part.attempt,
        "offset": part.offset,
        "next_offset": part.next_offset,
        "ended": part.ended,
        "text": part.text,
        "uri": job_uri(part.job, "logs", wanted.stream),
    }
    if not part.ended:
        answer["next_step"] = (
            f"Read on with offset={part.next_offset}; if nothing comes, the job has"
            " printed no more so far."
        )
    if part.offset:
        answer["earlier"] = f"{part.offset} bytes come before this: offset=0"
    return answer
