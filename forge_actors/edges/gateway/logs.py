"""The output of a job as one body of bytes: whole, from an offset, or followed live.

Secrets are taken out of it on the way; with `raw=1` it is sent byte for byte.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.redaction import Redactor
from forge_actors.edges.gateway.messages import Stream

if TYPE_CHECKING:
    from forge_actors.domain.ports import Control
    from forge_actors.domain.requests import LogChunk
    from forge_actors.edges.gateway.messages import Send
    from forge_actors.edges.gateway.query import Query

Choice = Literal["stdout", "stderr", "both"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
PARAMETERS = ("offset", "limit", "tail", "follow", "raw")
PIECE = 256 * 1024
#: Bytes redacted at once: looking for secrets takes time in which nothing else runs.
REDACTED_AT_ONCE = 16 * 1024
MAX_TAIL = 1_000_000


async def log_stream(
    control: Control, selector: str, choice: str, query: Query
) -> Stream:
    """The answer to a request for output.

    Raises:
        NotFound: there is no such job. InvalidInput: a parameter is wrong.
    """
    if choice not in CHOICES:
        raise InvalidInput("stream", f"{choice!r} is unknown", allowed=CHOICES)
    offset = query.number("offset", 0, least=-(2**53))
    limit = query.number("limit", 2**53, least=1)
    lines = query.number("tail", 0, least=0, most=MAX_TAIL)
    follow = query.flag("follow")
    if choice == "both" and offset:
        raise InvalidInput("offset", "belongs to one stream, not to both")
    # The id, so that a shortened selector still means this job an hour later.
    job = (await control.job(selector)).id
    names = ("stdout", "stderr") if choice == "both" else (choice,)
    raw = query.flag("raw")
    copies = [_Copy(control, job, name, offset, raw=raw) for name in names]
    if lines or query.one("tail") is not None:
        for copy in copies:
            await copy.skip_to_last(lines)
    if len(copies) == 1:
        start = await copies[0].start()
        produce = partial(_send_one, copies[0], limit, follow)
        return Stream(produce, headers={"forge-offset": str(start)})
    return Stream(partial(_send_both, control, job, copies, limit, follow))


async def _send_one(copy: _Copy, limit: int, follow: bool, send: Send) -> None:
    await copy.send(send, limit=limit, wait=follow)
    await copy.finish(send)


async def _send_both(
    control: Control,
    job: str,
    copies: list[_Copy],
    limit: int,
    follow: bool,
    send: Send,
) -> None:
    """Both streams by arrival while following, else one after the other."""
    while True:
        for copy in copies:
            # Not all there is: of a job that never stops printing that is no end.
            most = min(limit, PIECE) if follow else limit
            limit -= await copy.send(send, limit=most)
            if not follow or copy.ended:
                await copy.finish(send)
        if not follow or limit <= 0 or all(copy.ended for copy in copies):
            for copy in copies:
                await copy.finish(send)
            return
        await control.wait_output(job, sum(copy.offset for copy in copies))


class _Copy:
    """One stream of one job, and how far it was sent."""

    def __init__(
        self, control: Control, job: str, name: str, offset: int, *, raw: bool
    ) -> None:
        self._control = control
        self._job = job
        self._name = name
        self._last = b"\n"
        self._redactor = None if raw else Redactor()
        self.offset = offset
        self.ended = False

    async def read(self, limit: int = PIECE, *, wait: bool = False) -> LogChunk:
        return await self._control.read_log(
            self._job, self._name, self.offset, limit=min(limit, PIECE), wait=wait
        )

    async def start(self) -> int:
        """Where the answer begins in the stream, a negative offset resolved."""
        chunk = await self.read(1)
        self.offset = chunk.offset - chunk.missing
        return self.offset

    async def skip_to_last(self, lines: int) -> None:
        """Go to where the last `lines` lines begin."""
        last = await self._piece(-1, 1)
        # Without any data, what is missing is told.
        begin = last.next_offset if last.data else last.offset - last.missing
        self.offset = begin
        # The newline that ends the last line begins no further one.
        left = lines + (last.data == b"\n") if lines else 0
        while left and begin > 0:
            end, begin = begin, max(0, begin - PIECE)
            start, data = await self._between(begin, end)
            found = data.count(b"\n")
            if found >= left:
                self.offset = start + _nth_last_newline(data, left) + 1
                return
            left -= found
            self.offset = start
            if start > begin:
                return

    async def _between(self, begin: int, end: int) -> tuple[int, bytes]:
        """What is kept of this part of the stream, and where that begins.

        A chunk is shorter than asked for where the log is divided, and behind a gap
        it holds more than the part: neither may be counted wrong.
        """
        data = b""
        while begin + len(data) < end:
            chunk = await self._piece(begin + len(data), end - begin - len(data))
            if chunk.missing:
                begin, data = chunk.offset, b""
            if not chunk.data:
                break
            data += chunk.data
        return begin, data[: max(0, end - begin)]

    async def _piece(self, offset: int, limit: int) -> LogChunk:
        return await self._control.read_log(self._job, self._name, offset, limit=limit)

    async def send(self, send: Send, *, limit: int, wait: bool = False) -> int:
        """Send what there is, at most `limit` bytes; the number of bytes sent.

        With `wait` what there will be too, until the job has ended.
        """
        sent = 0
        while sent < limit:
            chunk = await self.read(limit - sent, wait=wait)
            if chunk.missing:
                await self.finish(send)
                start = b"" if self._last == b"\n" else b"\n"
                note = b"[forge-actors: %d bytes of output were not kept]\n"
                await send(start + note % chunk.missing)
                self._last = b"\n"
            if chunk.data:
                await self._show(send, chunk.data)
                self._last = chunk.data[-1:]
            sent += len(chunk.data)
            self.offset = chunk.next_offset
            self.ended = chunk.ended
            if chunk.ended or not chunk.data:
                break
        return sent

    async def _show(self, send: Send, data: bytes) -> None:
        if self._redactor is None:
            await send(data)
            return
        for start in range(0, len(data), REDACTED_AT_ONCE):
            shown = self._redactor.feed(data[start : start + REDACTED_AT_ONCE])
            if shown:  # an empty piece would end the body
                await send(shown)
            await trio.lowlevel.checkpoint()

    async def finish(self, send: Send) -> None:
        """Send what was held back because it might have become a secret."""
        rest = b"" if self._redactor is None else self._redactor.flush()
        if rest:
            await send(rest)


def _nth_last_newline(data: bytes, count: int) -> int:
    """Where it is; there must be as many."""
    place = len(data)
    for _ in range(count):
        place = data.rfind(b"\n", 0, place)
    return place
