"""One output stream of one attempt, on its way to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

from forge_actors.domain.redaction import Redactor

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import LogChunk
    from forge_actors.edges.gateway.messages import Send

PIECE = 256 * 1024
#: Bytes redacted at once: looking for secrets takes time in which nothing else runs.
REDACTED_AT_ONCE = 16 * 1024
#: Bytes of a character that begin none.
_CONTINUATION = bytes(range(0x80, 0xC0))
MAX_CONTINUATION = 3
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


class LogSource(Protocol):
    """The part of the port `Control` that output comes from."""

    async def job(self, selector: str) -> JobView: ...

    async def read_log(
        self,
        selector: str,
        stream: str,
        offset: int,
        *,
        limit: int,
        wait: bool = False,
        attempt: int | None = None,
    ) -> LogChunk: ...

    async def wait_output(
        self, selector: str, known: int, *, attempt: int | None = None
    ) -> None: ...

    async def log_start(
        self, selector: str, stream: str, since: str, *, attempt: int | None = None
    ) -> int: ...


class Copy:
    """A stream, and how far it was sent. Unless it is `raw`, without its secrets."""

    def __init__(
        self,
        control: LogSource,
        job: str,
        name: str,
        *,
        attempt: int,
        offset: int = 0,
        raw: bool = False,
    ) -> None:
        self._control = control
        self._job = job
        self._attempt = attempt
        self._last = b"\n"
        self._begun = False
        self._redactor = None if raw else Redactor()
        self.name = name
        self.offset = offset
        self.ended = False

    async def read(self, limit: int = PIECE, *, wait: bool = False) -> LogChunk:
        return await self._control.read_log(
            self._job,
            self.name,
            self.offset,
            limit=min(limit, PIECE),
            wait=wait,
            attempt=self._attempt,
        )

    async def start(self) -> int:
        """Where the answer begins in the stream, a negative offset resolved."""
        chunk = await self.read(1)
        self.offset = chunk.offset - chunk.missing
        return self.offset

    async def skip_to_moment(self, since: str) -> None:
        """Go to what came at a time, or a span ago."""
        begin = await self._control.log_start(
            self._job, self.name, since, attempt=self._attempt
        )
        self.offset = max(self.offset, begin)

    async def skip_to_last(self, lines: int) -> None:
        """Go to where the last `lines` lines begin, or stay if that is behind us."""
        least = self.offset
        last = await self._piece(-1, 1)
        # Without any data, what is missing is told.
        begin = last.next_offset if last.data else last.offset - last.missing
        self.offset = max(least, begin)
        # The newline that ends the last line begins no further one.
        left = lines + (last.data == b"\n") if lines else 0
        while left and begin > least:
            end, begin = begin, max(least, begin - PIECE)
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
        return await self._control.read_log(
            self._job, self.name, offset, limit=limit, attempt=self._attempt
        )

    async def send(
        self, send: Send, *, limit: int, wait: bool = False, once: bool = False
    ) -> int:
        """Send the next `limit` bytes, as far as there are any; how far it came.

        With `wait` what there will be too, until the attempt is over. With `once` only
        the next piece.
        """
        begin, stop = self.offset, self.offset + limit
        while self.offset < stop:
            chunk = await self.read(stop - self.offset, wait=wait)
            missing = min(chunk.missing, stop - self.offset)
            if missing:
                await self._note(send, missing)
            data = chunk.data[: max(0, stop - chunk.offset)]
            if data:
                cut = missing > 0 or (not self._begun and self.offset > 0)
                await self._show(send, data, cut=cut)
                self._last = data[-1:]
                self._begun = True
            self.offset = min(stop, chunk.next_offset)
            self.ended = chunk.ended and self.offset == chunk.next_offset
            if once or chunk.ended or not chunk.data:
                break
        return self.offset - begin

    async def _note(self, send: Send, missing: int) -> None:
        """Name what was not kept, on a line of its own."""
        await self.finish(send)
        start = b"" if self._last == b"\n" else b"\n"
        await send(
            start + b"[forge-actors: %d bytes of output were not kept]\n" % missing
        )
        self._last = b"\n"

    async def _show(self, send: Send, data: bytes, *, cut: bool) -> None:
        if self._redactor is None:
            await send(data)
            return
        if cut:
            data = _without_half_a_character(data)
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


def _without_half_a_character(data: bytes) -> bytes:
    """Behind a cut inside of a character, one mark in place of what is left of it."""
    rest = data.lstrip(_CONTINUATION)
    half = 0 < len(data) - len(rest) <= MAX_CONTINUATION
    return _REPLACEMENT + rest if half else data


def _nth_last_newline(data: bytes, count: int) -> int:
    """Where it is; there must be as many."""
    place = len(data)
    for _ in range(count):
        place = data.rfind(b"\n", 0, place)
    return place
