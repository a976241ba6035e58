"""The output of jobs as a body of bytes: whole, a part of it, or followed live.

Secrets are taken out of it on the way; with `raw=1` it is sent byte for byte. A job
that is followed is followed through its attempts, until it has ended.

The output of several jobs comes in frames, a line of JSON and then as many bytes as its
`bytes` says: `{"job", "name", "stream", "attempt", "bytes", "ended"}`. The first, one a
job and without bytes, say which jobs there will be; one that is `ended` says that
nothing of its job follows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import msgspec
import trio
from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.selection import MAX_SELECTED
from forge_actors.edges.gateway.log_copy import Copy
from forge_actors.edges.gateway.messages import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.jobs import JobView
    from forge_actors.edges.gateway.log_copy import LogSource
    from forge_actors.edges.gateway.messages import Send
    from forge_actors.edges.gateway.query import Query

Choice = Literal["stdout", "stderr", "both"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
PARAMETERS = ("offset", "limit", "tail", "since", "attempt", "follow", "raw")
#: For several jobs: an offset belongs to one stream.
MANY_PARAMETERS = ("stream", "tail", "since", "follow", "raw")
MAX_TAIL = 1_000_000
#: Jobs that one request follows at once.
MAX_FOLLOWED = 256

_encoder = msgspec.json.Encoder()


class Wanted(Struct, frozen=True):
    """Which part of a job's output is meant."""

    names: tuple[str, ...]
    offset: int = 0
    limit: int = 2**53
    tail: int | None = None
    since: str | None = None
    attempt: int | None = None
    follow: bool = False
    raw: bool = False


class Frame(Struct, frozen=True):
    """What comes before the bytes of one of several jobs."""

    job: str
    name: str | None
    stream: str | None
    attempt: int
    bytes: int
    ended: bool


async def log_stream(
    control: LogSource, selector: str, choice: str, query: Query
) -> Stream:
    """The answer to a request for the output of one job.

    Raises:
        NotFound: there is no such job. InvalidInput: a parameter is wrong.
    """
    wanted = Wanted(
        _names(choice),
        offset=query.number("offset", 0, least=-(2**53)),
        limit=query.number("limit", 2**53, least=1),
        tail=_tail(query),
        since=query.one("since"),
        attempt=query.number("attempt", 0, least=1) or None,
        follow=query.flag("follow"),
        raw=query.flag("raw"),
    )
    if len(wanted.names) > 1 and wanted.offset:
        raise InvalidInput("offset", "belongs to one stream, not to both")
    # The id, so that a shortened selector still means this job an hour later.
    output = _Output(control, await control.job(selector), wanted)
    headers = await output.begin()
    return Stream(output.send, headers=headers)


async def log_streams(
    control: LogSource, selectors: Sequence[str], query: Query
) -> Stream:
    """The answer to a request for the output of several jobs, in frames."""
    if not selectors:
        raise InvalidInput("jobs", "names no job")
    follow = query.flag("follow")
    most = MAX_FOLLOWED if follow else MAX_SELECTED
    if len(selectors) > most:
        verb = "followed" if follow else "read"
        raise InvalidInput("jobs", f"at most {most} can be {verb} at once")
    wanted = Wanted(
        _names(query.one("stream") or "both"),
        tail=_tail(query),
        since=query.one("since"),
        follow=follow,
        raw=query.flag("raw"),
    )
    views = {view.id: view for view in [await control.job(one) for one in selectors]}
    outputs = [_Output(control, view, wanted) for view in views.values()]
    # The first in any case: what is wrong with a parameter is to be told now.
    for output in outputs if follow else outputs[:1]:
        await output.begin()
    return Stream(partial(_send_frames, outputs, follow))


def _names(choice: str) -> tuple[str, ...]:
    if choice not in CHOICES:
        raise InvalidInput("stream", f"{choice!r} is unknown", allowed=CHOICES)
    return ("stdout", "stderr") if choice == "both" else (choice,)


def _tail(query: Query) -> int | None:
    lines = query.number("tail", 0, least=0, most=MAX_TAIL)
    return None if query.one("tail") is None else lines


async def _send_frames(outputs: Sequence[_Output], follow: bool, send: Send) -> None:
    for output in outputs:
        await send(output.frame())
    if not follow:
        for output in outputs:
            await output.begin()
            await output.send_frames(send)
        return
    turn = trio.Lock()

    async def in_turn(data: bytes) -> None:
        async with turn:
            await send(data)

    async with trio.open_nursery() as nursery:
        for output in outputs:
            nursery.start_soon(output.send_frames, in_turn)


class _Output:
    """The output of one job, attempt by attempt."""

    def __init__(self, control: LogSource, job: JobView, wanted: Wanted) -> None:
        self._control = control
        self._job = job
        self._wanted = wanted
        self._left = wanted.limit
        self._attempt = wanted.attempt or max(1, job.attempt)
        if wanted.attempt is not None and wanted.attempt > max(1, job.attempt):
            raise InvalidInput(
                "attempt", f"{wanted.attempt} is not among the {job.attempt} there were"
            )
        self._copies = self._of_attempt(wanted.offset)
        self._headers: dict[str, str] = {}

    def _of_attempt(self, offset: int = 0) -> list[Copy]:
        return [
            Copy(
                self._control,
                self._job.id,
                name,
                attempt=self._attempt,
                offset=offset,
                raw=self._wanted.raw,
            )
            for name in self._wanted.names
        ]

    async def begin(self) -> dict[str, str]:
        """Go to where it is to begin, once; the headers that say where that is."""
        if self._headers:
            return self._headers
        for copy in self._copies:
            if self._wanted.since is not None:
                await copy.skip_to_moment(self._wanted.since)
            if self._wanted.tail is not None:
                await copy.skip_to_last(self._wanted.tail)
        self._headers["forge-attempt"] = str(self._attempt)
        if len(self._copies) == 1:
            self._headers["forge-offset"] = str(await self._copies[0].start())
        return self._headers

    def frame(
        self, stream: str | None = None, size: int = 0, *, ended: bool = False
    ) -> bytes:
        job = self._job
        frame = Frame(job.id, job.name, stream, self._attempt, size, ended)
        return _encoder.encode(frame) + b"\n"

    async def send_frames(self, send: Send) -> None:
        await self.send(send, framed=True)
        await send(self.frame(ended=True))

    async def send(self, send: Send, *, framed: bool = False) -> None:
        """Send it, and if it is followed, what comes until the job has ended."""
        while True:
            await self._send_attempt(send, framed)
            if self._wanted.attempt or not self._wanted.follow or self._left <= 0:
                return
            if (view := await self._next_attempt()) is None:
                return
            self._copies = self._of_attempt()
            note = _mark_of(view, self._attempt)
            await self._sender(send, self._wanted.names[0], framed)(note)

    async def _next_attempt(self) -> JobView | None:
        """Wait for the attempt behind this one; the job then, None if it ended without
        one."""
        job, after = self._job.id, self._attempt + 1
        await self._control.wait_output(job, -1, attempt=after)
        view = await self._control.job(job)
        if view.attempt < after and view.state in TERMINAL:
            return None
        self._attempt = after
        return view

    async def _send_attempt(self, send: Send, framed: bool) -> None:
        """Both streams by arrival while following, else one after the other."""
        follow, single = self._wanted.follow, len(self._copies) == 1
        senders = [self._sender(send, copy.name, framed) for copy in self._copies]
        pairs = list(zip(self._copies, senders, strict=True))
        while True:
            for copy, out in pairs:
                wait = follow and single
                # Of a job that never stops printing, all there is would be no end.
                once = follow and not single
                self._left -= await copy.send(
                    out, limit=self._left, wait=wait, once=once
                )
                if not follow or copy.ended:
                    await copy.finish(out)
            ended = all(copy.ended for copy in self._copies)
            if not follow or self._left <= 0 or ended:
                for copy, out in pairs:
                    await copy.finish(out)
                return
            known = sum(copy.offset for copy in self._copies)
            await self._control.wait_output(self._job.id, known, attempt=self._attempt)

    def _sender(self, send: Send, stream: str, framed: bool) -> Send:
        if not framed:
            return send

        async def in_frame(data: bytes) -> None:
            await send(self.frame(stream, len(data)) + data)

        return in_frame


def _mark_of(view: JobView, attempt: int) -> bytes:
    """What is told before the output of an attempt that follows another one."""
    checks = () if view.verify is None else view.verify["checks"]
    is_check = isinstance(checks, list | tuple) and attempt in checks
    what = b", the check" if is_check else b""
    return b"[forge-actors: attempt %d%s]\n" % (attempt, what)
