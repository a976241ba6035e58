"""Messages between actors: our mailbox, a bare trio channel and Pykka."""

from __future__ import annotations

import json
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from benchmarks.report import median
from benchmarks.rows import Bench, Sample
from forge_actors.actors.mailbox import Reply, open_mailbox, serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from benchmarks.peer_venv import PeerPython
    from forge_actors.actors.mailbox import Inbox, Mailbox

#: Short turns, so that all meet the same moments of the machine: in each block our
#: tells and those of a bare channel are measured `TURNS` times, then asks, then Pykka.
BLOCKS = 5
TURNS = 5
#: Messages that are sent before the reader gets its turn.
BURST = 64


class Question(Struct, frozen=True):
    number: int
    reply: Reply[int]


def measure(bench: Bench) -> Iterable[Sample]:
    """Tells of both kinds in the same loop, asks, and Pykka's."""
    count = bench.messages
    missing = bench.peers.lacks("pykka")
    rates: dict[str, list[float]] = {}

    def add(name: str, *found: float) -> None:
        rates.setdefault(name, []).extend(found)

    version = None
    for _ in range(BLOCKS):
        for _ in range(TURNS):
            add("tell", trio.run(tell_ours, count))
            add("tell-trio", trio.run(tell_bare, count))
            add("tell-called", trio.run(tell_called, count))
            add("ask", trio.run(ask_ours, count))
            add("ask-trio", trio.run(ask_bare, count))
        if missing is None:
            found = pykka(bench.peers, count)
            add("tell-pykka", *found["tells"])
            add("ask-pykka", *found["asks"])
            version = found["version"]
    loop = f"{BURST} sent at a time, one task sends and one reads"
    peer = missing or f"Pykka {version}, a thread an actor"
    notes = {
        "tell": f"our mailbox: {loop}",
        "tell-trio": f"a bare memory channel: {loop}",
        "tell-called": f"the same behind one Python function: {loop}",
        "tell-pykka": peer,
        "ask": "our mailbox: one asker, the next ask after the answer",
        "ask-trio": "bare memory channels, one made for each answer",
        "ask-pykka": peer,
    }
    for name, note in notes.items():
        yield Sample(name, median(rates.get(name, ())), "per s", note)


def pykka(peers: PeerPython, count: int) -> dict[str, Any]:
    """Its version, and `TURNS` rates of its tells and of its asks."""
    found: dict[str, Any] = json.loads(
        peers.run("peer_pykka.py", json.dumps([count, TURNS]))
    )
    return found


async def tell_ours(count: int) -> float:
    mailbox: Mailbox[int]
    inbox: Inbox[int]
    mailbox, inbox = open_mailbox()
    return await rate(count, mailbox.tell, inbox.receive)


async def tell_bare(count: int) -> float:
    send, receive = trio.open_memory_channel[int](math.inf)
    return await rate(count, send.send_nowait, receive.receive)


async def tell_called(count: int) -> float:
    send, receive = trio.open_memory_channel[int](math.inf)

    def tell(message: int) -> None:
        send.send_nowait(message)

    return await rate(count, tell, receive.receive)


async def rate(
    count: int, send: Callable[[int], None], receive: Callable[[], Awaitable[int]]
) -> float:
    """Messages per second, until the last one was read."""

    async def read() -> None:
        for number in range(count):
            if await receive() != number:
                raise AssertionError("the messages came in another order")

    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for number in range(count):
            send(number)
            if number % BURST == 0:
                await trio.lowlevel.checkpoint()
    return count / (time.perf_counter() - begin)


async def ask_ours(count: int) -> float:
    """Asks per second of one asker."""
    mailbox: Mailbox[Question]
    inbox: Inbox[Question]
    mailbox, inbox = open_mailbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer, inbox)
        begin = time.perf_counter()
        for number in range(count):
            wanted = await mailbox.ask(partial(Question, number))
            if wanted != number:
                raise AssertionError("an ask got the answer of another")
        seconds = time.perf_counter() - begin
        nursery.cancel_scope.cancel()
    return count / seconds


async def ask_bare(count: int) -> float:
    """Asks per second over bare channels, one made for each answer."""
    send, receive = trio.open_memory_channel[tuple[int, trio.MemorySendChannel[int]]](
        math.inf
    )

    async def serve() -> None:
        async for number, reply in receive:
            reply.send_nowait(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        begin = time.perf_counter()
        for number in range(count):
            reply, answered = trio.open_memory_channel[int](1)
            send.send_nowait((number, reply))
            if await answered.receive() != number:
                raise AssertionError("an ask got the answer of another")
        seconds = time.perf_counter() - begin
        nursery.cancel_scope.cancel()
    return count / seconds


async def answer(inbox: Inbox[Question]) -> None:
    with serving(inbox):
        while True:
            question = await inbox.receive()
            with question.reply as reply:
                reply.answer(question.number)
