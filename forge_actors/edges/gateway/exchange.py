"""The bytes of one answer: of a plain request directly, of any other by h11."""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import h11

from forge_actors.edges.gateway.messages import Response

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Stream


class Exchange(Protocol):
    """One request and its answer. With `last` the connection ends after it."""

    #: What the request is called, which the answer repeats.
    request_id: str

    @property
    def keeps(self) -> bool:
        """Whether another request may follow, once the answer is complete."""

    def whole(self, answer: Response, *, last: bool) -> bytes:
        """All of an answer."""

    def begin(self, answer: Response | Stream, *, last: bool) -> bytes:
        """The head of an answer whose pieces follow."""

    def piece(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class PlainExchange:
    """The answer to a request that is no HEAD and of HTTP/1.1."""

    def __init__(self, request_id: str, *, keeps: bool) -> None:
        self.request_id = request_id
        self.keeps = keeps

    def whole(self, answer: Response, *, last: bool) -> bytes:
        body = answer.body
        # Of what the client has its length is not told.
        framing = "" if answer.status == 304 else f"content-length: {len(body)}\r\n"
        return self._head(answer.status, answer, framing, last) + body

    def begin(self, answer: Response | Stream, *, last: bool) -> bytes:
        framing = "Transfer-Encoding: chunked\r\n"
        return self._head(_status(answer), answer, framing, last)

    def piece(self, data: bytes) -> bytes:
        # One without bytes would end the body.
        return b"%x\r\n%b\r\n" % (len(data), data) if data else b""

    def end(self) -> bytes:
        return b"0\r\n\r\n"

    def _head(
        self, status: int, answer: Response | Stream, framing: str, last: bool
    ) -> bytes:
        self.keeps = self.keeps and not last
        more = "".join(f"{name}: {text}\r\n" for name, text in answer.headers.items())
        end = "\r\n" if self.keeps else "Connection: close\r\n\r\n"
        return (
            f"HTTP/1.1 {status} \r\ndate: {_date()}\r\n"
            f"content-type: {answer.content_type}\r\n"
            f"x-request-id: {self.request_id}\r\n{more}{framing}{end}"
        ).encode("latin-1")


class H11Exchange:
    """Any request, while it is read by `http`, and its answer."""

    def __init__(self, head_bytes: int) -> None:
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=head_bytes)
        #: A HEAD is answered without the body that its length is told of.
        self.with_body = True
        self.request_id = ""

    @property
    def keeps(self) -> bool:
        return self.http.our_state is h11.DONE

    @property
    def answerable(self) -> bool:
        """Whether no answer was begun yet."""
        return self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    @property
    def wants_continue(self) -> bool:
        """Whether the client sends its body only once it is told to."""
        return self.http.they_are_waiting_for_100_continue

    @property
    def rest(self) -> bytes:
        """What was read beyond the request, once that is complete."""
        return self.http.trailing_data[0]

    def go_on(self) -> bytes:
        return self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def whole(self, answer: Response, *, last: bool) -> bytes:
        length = None if answer.status == 304 else len(answer.body)
        out = self._send(self._head(answer.status, answer, length, last))
        if answer.body and self.with_body:
            out += self.piece(answer.body)
        return out + self.end()

    def begin(self, answer: Response | Stream, *, last: bool) -> bytes:
        return self._send(self._head(_status(answer), answer, None, last))

    def piece(self, data: bytes) -> bytes:
        return self._send(h11.Data(data=data))

    def end(self) -> bytes:
        return self._send(h11.EndOfMessage())

    def _head(
        self, status: int, answer: Response | Stream, length: int | None, last: bool
    ) -> h11.Response:
        headers = [
            ("date", _date()),
            ("content-type", answer.content_type),
            ("x-request-id", self.request_id),
            *answer.headers.items(),
        ]
        if length is not None:
            headers.append(("content-length", str(length)))
        if last:
            headers.append(("connection", "close"))
        return h11.Response(status_code=status, headers=headers)

    def _send(self, event: h11.Event) -> bytes:
        return self.http.send(event) or b""


def _status(answer: Response | Stream) -> int:
    return answer.status if isinstance(answer, Response) else 200


def _date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_of(second: int) -> str:
    return formatdate(second, usegmt=True)
