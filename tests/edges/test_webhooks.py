"""The sender of webhooks: against a real server, and against bad ones."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.webhooks import NotDelivered, parse_target
from forge_actors.edges.webhooks import MAX_BODY, HttpSender
from forge_actors.testing.sender_contract import CHECKS, Came, Ground, delivery
from forge_actors.testing.webhooks import FakeSender
from tests.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from forge_actors.domain.webhooks import Answered
    from forge_actors.testing.sender_contract import Check, Told


@asynccontextmanager
async def real(answers: Sequence[Told]) -> AsyncIterator[Ground]:
    with receiving(*answers) as receiver:
        sender = HttpSender()
        target = parse_target(receiver.url, field="url")
        try:
            yield Ground(sender, target, lambda: receiver.came)
        finally:
            await sender.close()


@asynccontextmanager
async def fake(answers: Sequence[Told]) -> AsyncIterator[Ground]:
    sender = FakeSender.telling(answers)
    target = parse_target("https://host/secret-path", field="url")

    def came() -> list[Came]:
        return [Came(d.target.path, d.headers, d.body) for d in sender.sent]

    yield Ground(sender, target, came)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("open_", [real, fake])
async def test_every_sender_keeps_the_contract(
    check: Check, open_: Callable[..., Ground]
) -> None:
    await check(open_)  # type: ignore[arg-type]


async def test_a_connection_is_used_again_and_made_anew_when_it_was_closed() -> None:
    with receiving(200, 200, None, 200, 200) as receiver:
        sender = HttpSender()
        target = parse_target(receiver.url, field="url")
        for _ in range(2):
            await sender.send(delivery(target))
        assert receiver.connections == 1
        # It came, but nobody knows that: it is sent again on a connection of its own.
        assert (await sender.send(delivery(target))).status == 200
        assert (receiver.connections, len(receiver.came)) == (2, 4)
        await sender.close()


async def test_of_two_deliveries_at_once_one_connection_is_kept() -> None:
    came, both, one_closed = 0, trio.Event(), trio.Event()

    async def answer(stream: trio.SocketStream) -> None:
        nonlocal came
        await stream.receive_some()
        came += 1
        if came == 2:
            both.set()
        await both.wait()
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        while await stream.receive_some():
            pass
        one_closed.set()

    sender = HttpSender()
    with trio.fail_after(30):
        async with trio.open_nursery() as serving:
            [listener] = await serving.start(
                partial(trio.serve_tcp, answer, 0, host="127.0.0.1")
            )
            port = listener.socket.getsockname()[1]
            target = parse_target(f"http://127.0.0.1:{port}/", field="url")
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(sender.send, delivery(target))
            await one_closed.wait()
            assert sender._kept is not None
            await sender.close()
            serving.cancel_scope.cancel()


# -- bad receivers -----------------------------------------------------------------


@asynccontextmanager
async def said(
    behave: Callable[[trio.SocketStream], Awaitable[None]],
) -> AsyncIterator[Callable[[float], Awaitable[Answered]]]:
    """What is answered to a delivery there within so many seconds."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, behave, 0, host="127.0.0.1")
        )
        port = listeners[0].socket.getsockname()[1]
        target = parse_target(f"http://127.0.0.1:{port}/secret", field="url")
        sender = HttpSender()
        yield lambda seconds: sender.send(delivery(target, seconds=seconds))
        await sender.close()
        nursery.cancel_scope.cancel()


async def test_one_that_says_nothing_is_given_up_in_time() -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with said(silent) as send:
        with pytest.raises(NotDelivered, match=r"took longer than 0\.2 s"):
            await send(0.2)


async def test_one_that_trickles_is_given_up_in_time() -> None:
    async def trickle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send_all(b"x: y\r\n")
            await trio.sleep(0.01)

    async with said(trickle) as send:
        with pytest.raises(NotDelivered):
            await send(0.5)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000,
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
        b"\0" * 1000,
        b"",
    ],
)
async def test_what_is_no_answer_is_none(answer: bytes) -> None:
    async def behave(stream: trio.SocketStream) -> None:
        # The sender may have had enough before it has all of it.
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(65536)
            await stream.send_all(answer)
            await stream.send_eof()
            async for _ in stream:
                pass

    async with said(behave) as send:
        with pytest.raises(NotDelivered) as caught:
            await send(20.0)
        assert "secret" not in str(caught.value)


async def test_a_body_without_end_is_not_read_to_it() -> None:
    sent = 0

    async def flood(stream: trio.SocketStream) -> None:
        nonlocal sent
        await stream.receive_some(65536)
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        try:
            while True:
                await stream.send_all(b"x" * 65536)
                sent += 65536
        except trio.BrokenResourceError:
            pass

    async with said(flood) as send:
        assert (await send(20.0)).status == 200
        assert sent < MAX_BODY + (64 << 20)


async def test_one_that_is_not_there_is_told_so() -> None:
    sender = HttpSender()
    with receiving(200) as receiver:
        target = parse_target(receiver.url, field="url")
    with pytest.raises(NotDelivered, match="cannot be reached: Connection refused"):
        await sender.send(delivery(target))


async def test_plain_http_is_no_https() -> None:
    with receiving(200) as receiver:
        target = parse_target(f"https://127.0.0.1:{receiver.port}/secret", field="url")
        with pytest.raises(NotDelivered) as caught:
            await HttpSender().send(delivery(target))
    assert "secret" not in str(caught.value)
    assert receiver.came == []
