"""Messages between actors: our mailbox, a bare trio channel and Pykka."""

from __future__ import annotations

import json
import math
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from benchmarks.rows import Bench, Sample
from forge_actors.actors.mailbox import Reply, open_mailbox, serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from benchmarks.peer_venv import PeerPython
    from forge_actors.actors.mailbox import Inbox, Mailbox

#: Measured in turn as often, so that both meet the same moments of the machine.
PAIRS = 5
#: Messages that are sent before the reader gets its turn.
BURST = 64


class Question(Struct, frozen=True):
    number: int
    reply: Reply[int]


def measure(bench: Bench) -> Iterable[Sample]:
    """Tells of both kinds in the same loop, then asks, then Pykka's."""
    count = bench.messages
    ours, bare = [], []
    for _ in range(PAIRS):
        ours.append(trio.run(tell_ours, count))
        bare.append(trio.run(tell_bare, count))
    asks = [trio.run(ask_ours, count) for _ in range(PAIRS)]
    unit, note = "per s", f"{count} messages, median of {PAIRS}"
    loop = f"{note}; {BURST} sent at a time, one task sends and one reads"
    one = "one asker, the next ask after the answer"
    yield Sample("tell", statistics.median(ours), unit, f"our mailbox: {loop}")
    yield Sample("tell-trio", statistics.median(bare), unit, "a bare memory channel")
    yield Sample("ask", statistics.median(asks), unit, f"our mailbox: {note}; {one}")
    yield from measure_pykka(bench.peers, count)


def measure_pykka(peers: PeerPython, count: int) -> Iterable[Sample]:
    names = ("tell-pykka", "ask-pykka")
    missing = peers.lacks("pykka")
    if missing is not None:
        yield from (Sample(name, None, "per s", missing) for name in names)
        return
    found = json.loads(peers.run("peer_pykka.py", json.dumps([count, PAIRS])))
    note = f"Pykka {found['version']}, a thread an actor"
    for name, rates in zip(names, (found["tells"], found["asks"]), strict=True):
        yield Sample(name, statistics.median(rates), "per s", note)


async def tell_ours(count: int) -> float:
    mailbox: Mailbox[int]
    inbox: Inbox[int]
    mailbox, inbox = open_mailbox()
    return await rate(count, mailbox.tell, inbox.receive)


async def tell_bare(count: int) -> float:
    send, receive = trio.open_memory_channel[int](math.inf)
    return await rate(count, send.send_nowait, receive.receive)


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


async def answer(inbox: Inbox[Question]) -> None:
    with serving(inbox):
        while True:
            question = await inbox.receive()
            with question.reply as reply:
                reply.answer(question.number)
