"""The sender of webhooks: one request after the other, each within its time.

A receiver is not trusted: no redirect is followed, no proxy asked, no compression
offered, and of its answer only the status, one header and a bounded body are read. A
connection is kept for the next request if its answer was read whole.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import h11
import trio

from forge_actors.domain.webhooks import Answered, NotDelivered

if TYPE_CHECKING:
    from forge_actors.domain.webhooks import Delivery, Sender, Target

#: Bytes of the head of an answer, and of a body before the connection is given up.
MAX_HEAD = 16 * 1024
MAX_BODY = 64 * 1024
READ_BYTES = 16 * 1024
LOOPBACK = ("127.0.0.1", "::1")


class HttpSender:
    """Implements `domain.webhooks.Sender`; it keeps one connection at most."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        #: What certificates are checked with; by default those that the system trusts.
        self._context = context
        self._kept: _Line | None = None

    async def send(self, delivery: Delivery) -> Answered:
        """See the port."""
        try:
            with trio.fail_after(delivery.seconds):
                return await self._send(delivery)
        except trio.TooSlowError:
            raise NotDelivered(f"took longer than {delivery.seconds:g} s") from None
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted: {error.verify_message}"
            raise NotDelivered(why) from None
        except h11.ProtocolError:
            raise NotDelivered("its answer is no HTTP") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError, EOFError) as error:
            raise NotDelivered(_broken(error)) from None
        except socket.gaierror as error:
            raise NotDelivered(f"its name is not found: {error.strerror}") from None
        except OSError as error:
            raise NotDelivered(f"it cannot be reached: {_why(error)}") from None

    async def close(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            await trio.aclose_forcefully(kept.stream)

    async def _send(self, delivery: Delivery) -> Answered:
        kept, self._kept = self._kept, None
        if kept is not None and kept.leads_to(delivery.target):
            try:
                return await self._ask(kept, delivery)
            except (trio.BrokenResourceError, EOFError, h11.RemoteProtocolError):
                pass  # it was closed meanwhile, most likely before it came
        elif kept is not None:
            await trio.aclose_forcefully(kept.stream)
        stream = await self._open(delivery.target)
        return await self._ask(_Line(stream, delivery.target), delivery)

    async def _ask(self, line: _Line, delivery: Delivery) -> Answered:
        try:
            answer = await line.ask(delivery)
        except BaseException:
            await trio.aclose_forcefully(line.stream)
            raise
        if line.keeps:
            # Another one may have come back meanwhile: `webhook test` waits for nobody.
            other, self._kept = self._kept, line
            if other is not None:
                await trio.aclose_forcefully(other.stream)
        else:
            await trio.aclose_forcefully(line.stream)
        return answer

    async def _open(self, target: Target) -> trio.abc.Stream:
        if target.scheme == "http":
            return await _open_loopback(target)
        if self._context is None:
            self._context = await trio.to_thread.run_sync(ssl.create_default_context)
        stream = trio.SSLStream(
            await trio.open_tcp_stream(target.host, target.port),
            self._context,
            server_hostname=target.host,
            https_compatible=True,
        )
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError as error:
            await trio.aclose_forcefully(stream)
            if isinstance(error.__cause__, ssl.SSLError):
                raise error.__cause__ from None
            raise
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream


class _Line:
    """One connection to a receiver."""

    def __init__(self, stream: trio.abc.Stream, target: Target) -> None:
        self.stream = stream
        self._target = target
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)

    def leads_to(self, target: Target) -> bool:
        mine = (self._target.scheme, self._target.host, self._target.port)
        return mine == (target.scheme, target.host, target.port)

    @property
    def keeps(self) -> bool:
        """Whether another request may follow."""
        if self._http.our_state is not h11.DONE or self._http.their_state != h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def ask(self, delivery: Delivery) -> Answered:
        head = {
            "host": delivery.target.authority,
            "content-type": "application/json",
            "content-length": str(len(delivery.body)),
            **delivery.headers,
        }
        request = h11.Request(
            method="POST", target=delivery.target.path, headers=list(head.items())
        )
        for event in (request, h11.Data(data=delivery.body), h11.EndOfMessage()):
            data = self._http.send(event)
            if data:
                await self.stream.send_all(data)
        return await self._answer()

    async def _answer(self) -> Answered:
        answer: Answered | None = None
        size = 0
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                data = await self.stream.receive_some(READ_BYTES)
                if not data and answer is None:
                    raise EOFError
                self._http.receive_data(bytes(data))
            elif isinstance(event, h11.Response):
                answer = Answered(event.status_code, _retry_after(event))
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > MAX_BODY and answer is not None:
                    return answer  # the rest of it is nobody's business
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                if answer is None:
                    raise EOFError
                return answer


async def _open_loopback(target: Target) -> trio.SocketStream:
    """To this machine and no other, whatever `localhost` is said to be."""
    hosts = LOOPBACK if target.host.lower() == "localhost" else (target.host,)
    for host in hosts[:-1]:
        try:
            return await trio.open_tcp_stream(host, target.port)
        except OSError:
            continue
    return await trio.open_tcp_stream(hosts[-1], target.port)


def _retry_after(response: h11.Response) -> float | None:
    """Seconds, given as such or as a date."""
    for name, value in response.headers:
        if name != b"retry-after":
            continue
        text = value.decode("ascii", "replace").strip()
        if text.isdecimal() and len(text) <= 9:
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            return None
    return None


def _why(error: OSError) -> str:
    """The reason of the system; trio has one for each address behind its own error."""
    first: BaseException | None = error
    if error.strerror is None:
        first = error.__cause__
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    number = first.errno if isinstance(first, OSError) else None
    return "there is no connection" if number is None else os.strerror(number)


def _broken(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it closed the connection without an answer"
    return "the connection broke off"


if TYPE_CHECKING:
    _is_a_sender: Sender = HttpSender()
