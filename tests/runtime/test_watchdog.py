"""The watchdog: names what stalls, and looks only while something is due."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forge_actors.actors.mailbox import Mailbox, open_mailbox, serving
from forge_actors.actors.pulse import CURRENT, SUPERVISOR, Pulse
from forge_actors.runtime.loop_watch import Blocked, LoopWatch
from forge_actors.runtime.readiness import Board
from forge_actors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STALL = 30.0
PATIENCE = 20.0


class News:
    """What the watchdog told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.places: list[str] = []

    def stalled(self, actor: str, seconds: float, place: str) -> None:
        assert seconds >= STALL
        self.told.append(("stalled", actor))
        self.places.append(place)

    def went_on(self, actor: str, seconds: float) -> None:
        self.told.append(("went on", actor))

    def blocked(self, found: Blocked) -> None:
        raise AssertionError(found)

    def turned(self, seconds: float, found: Blocked) -> None:
        raise AssertionError(found)


async def stuck_in(gate: trio.Event) -> None:
    await gate.wait()


class Actor:
    """One that handles a message when it gets through the gate."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.gates: list[trio.Event] = []
        self.mailbox: Mailbox[trio.Event]

    async def run(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        self.mailbox, inbox = open_mailbox(self.name)
        task_status.started()
        with serving(inbox):
            while True:
                await stuck_in(await inbox.receive())


class Case:
    def __init__(self, nursery: trio.Nursery, period: float | None) -> None:
        self.nursery = nursery
        self.news, self.board, self.pulse = News(), Board(), Pulse()
        for stage in ("database", "scheduler", "ready"):
            self.board.enter(stage)
        self.alive = 0
        self.looks = 0
        self.dog = Watchdog(
            self.pulse, self.board, self._limit, self.news, self._alive, period
        )
        CURRENT.set(self.pulse)

    def _limit(self) -> float:
        self.looks += 1
        return STALL

    def _alive(self) -> None:
        self.alive += 1

    async def actor(self, name: str) -> Actor:
        actor = Actor(name)
        await self.nursery.start(actor.run)
        return actor


@asynccontextmanager
async def watched(period: float | None = None) -> AsyncIterator[Case]:
    async with trio.open_nursery() as nursery:
        case = Case(nursery, period)
        nursery.start_soon(case.dog.run)
        await wait_all_tasks_blocked()
        yield case
        nursery.cancel_scope.cancel()


@pytest.mark.mock_clock
async def test_an_actor_that_is_at_one_message_for_too_long_is_named() -> None:
    async with watched() as case:
        actor, other = await case.actor("repository a"), await case.actor("b")
        gate = trio.Event()
        actor.mailbox.tell(gate)
        await trio.sleep(STALL - 1)
        assert case.news.told == []
        await trio.sleep(STALL / 2)
        assert case.news.told == [("stalled", "repository a")]
        assert case.news.places == [f"{__name__}:{stuck_in_line()} stuck_in"]
        [words] = case.board.complaints.values()
        assert "repository a has been at one message for" in words
        assert case.board.now.ready, "others still work"
        gate.set()
        through = trio.Event()
        through.set()
        other.mailbox.tell(through)
        await trio.sleep(STALL / 2)
        assert case.news.told[1:] == [("went on", "repository a")]
        assert case.board.complaints == {}


def stuck_in_line() -> int:
    return stuck_in.__code__.co_firstlineno + 1


@pytest.mark.mock_clock
async def test_messages_behind_it_do_not_count_as_progress() -> None:
    async with watched() as case:
        actor = await case.actor("a")
        gate = trio.Event()
        for _ in range(2 * int(STALL)):
            actor.mailbox.tell(gate)
            await trio.sleep(1)
        assert case.news.told == [("stalled", "a")]
        [words] = case.board.complaints.values()
        assert "behind it" in words
        assert "with 0 behind it" not in words


@pytest.mark.mock_clock
async def test_an_actor_that_gets_on_is_not_stalled() -> None:
    async with watched() as case:
        actor = await case.actor("a")
        for _ in range(10):
            gate = trio.Event()
            actor.mailbox.tell(gate)
            await trio.sleep(STALL * 0.7)
            gate.set()
        await trio.sleep(STALL * 3)
        assert case.news.told == []


@pytest.mark.mock_clock
async def test_a_supervisor_that_stalls_is_not_ready() -> None:
    async with watched() as case:
        actor = await case.actor(SUPERVISOR)
        gate = trio.Event()
        actor.mailbox.tell(gate)
        await trio.sleep(STALL * 2)
        assert not case.board.now.ready
        assert case.board.now.diagnostics["scheduler"] == "fail"
        assert case.board.now.reasons == ("SCHEDULER_STALLED",)
        gate.set()
        await trio.sleep(STALL)
        assert case.board.now.ready


@pytest.mark.mock_clock
async def test_nobody_looks_while_all_wait() -> None:
    async with watched() as case:
        actor = await case.actor("a")
        await trio.sleep(3600)
        before = case.looks
        await trio.sleep(3600)
        assert case.looks == before
        through = trio.Event()
        through.set()
        actor.mailbox.tell(through)
        await trio.sleep(3600)
        assert 1 <= case.looks - before <= 4, "one look finds it idle again"
        gate = trio.Event()
        actor.mailbox.tell(gate)
        await trio.sleep(2 * STALL)
        assert case.news.told == [("stalled", "a")], "the first message woke it"


@pytest.mark.mock_clock
async def test_a_manager_hears_nothing_while_something_is_stalled() -> None:
    async with watched(period=10.0) as case:
        actor = await case.actor("a")
        await trio.sleep(101)
        assert case.alive == 20, "twice in each period"
        gate = trio.Event()
        actor.mailbox.tell(gate)
        await trio.sleep(2 * STALL)
        before = case.alive
        await trio.sleep(100)
        assert case.alive == before
        gate.set()
        await trio.sleep(100)
        assert case.alive > before


@pytest.mark.mock_clock
async def test_an_actor_that_failed_at_its_start_is_not_waited_for() -> None:
    async def fails() -> None:
        open_mailbox("fails")
        await trio.lowlevel.checkpoint()

    async with watched() as case:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
        actor = await case.actor("a")
        gate = trio.Event()
        actor.mailbox.tell(gate)
        await trio.sleep(3 * STALL)
        assert case.news.told == [("stalled", "a")]


@pytest.mark.mock_clock
async def test_what_ends_is_not_stalled() -> None:
    async with watched() as case:
        actor = await case.actor("a")
        actor.mailbox.tell(trio.Event())
        case.board.end("SIGNAL_SIGTERM")
        await trio.sleep(3 * STALL)
        assert case.news.told == []


# The thread that watches the loop


def blocks(found: threading.Event) -> bool:
    return found.wait(PATIENCE)


def test_a_loop_that_is_late_is_found_where_it_is() -> None:
    found = threading.Event()
    told: list[Blocked] = []

    def tell(blocked: Blocked) -> None:
        told.append(blocked)
        found.set()

    watch = LoopWatch(tell)
    watch.start()
    began = monotonic()
    watch.expect(0.01)
    assert blocks(found)
    watch.stop()
    [blocked] = told
    assert blocked.since >= began
    assert "blocks" in blocked.stack
    assert blocked.place.startswith("threading:")


def test_a_loop_that_turns_in_time_is_left_alone() -> None:
    found = threading.Event()
    watch = LoopWatch(lambda _: found.set())
    watch.start()
    watch.expect(3600.0)
    watch.expect(None)
    watch.expect(3600.0)
    watch.stop()
    assert not found.is_set()


def test_a_loop_is_told_of_once_for_each_time_that_it_is_late() -> None:
    times = threading.Semaphore(0)
    told: list[Blocked] = []

    def tell(blocked: Blocked) -> None:
        told.append(blocked)
        times.release()

    watch = LoopWatch(tell)
    watch.start()
    for count in (1, 2):
        watch.expect(0.01)
        assert times.acquire(timeout=PATIENCE)
        assert len(told) == count
    watch.expect(None)
    watch.stop()
    assert len(told) == 2
