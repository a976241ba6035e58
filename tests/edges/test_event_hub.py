"""The fan-out of events: what it reads, whom it wakes, and when it does nothing."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.events import EventPage, EventQuery
from forge_actors.edges.gateway import event_hub, event_ring
from forge_actors.edges.gateway.event_hub import EventHub, Reader
from forge_actors.edges.gateway.event_ring import Ring
from forge_actors.edges.gateway.sse import KEEP_ALIVE, Entry
from forge_actors.testing.control import FakeControl
from tests.edges.sse_kit import Parser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.mock_clock


class CountedControl(FakeControl):
    """Counts how often its log is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def events(self, query: EventQuery, *, wait: bool) -> EventPage:
        self.reads += 1
        return await super().events(query, wait=wait)


@asynccontextmanager
async def hub_of(control: FakeControl) -> AsyncGenerator[EventHub, None]:
    hub = EventHub(control, 1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hub.run)
        await trio.testing.wait_all_tasks_blocked()
        yield hub
        nursery.cancel_scope.cancel()


async def listen(hub: EventHub, query: EventQuery, pieces: list[bytes]) -> None:
    with hub.reader(query) as reader:
        while data := await reader.next():
            pieces.append(data)


async def test_an_event_is_read_once_however_many_want_it() -> None:
    control = CountedControl()
    async with hub_of(control) as hub, trio.open_nursery() as nursery:
        pieces: list[bytes] = []
        for _ in range(100):
            nursery.start_soon(listen, hub, EventQuery(after=0), pieces)
        await trio.testing.wait_all_tasks_blocked()
        before = control.reads
        for number in range(10):
            for kind in ("job_dispatched", "job_running"):
                control.emit(kind, job=f"j{number}", repo="app")
            await trio.sleep(1)
        assert len(pieces) == 1000
        assert control.reads - before == 10
        # What is the same for all was joined once.
        assert len(set(map(id, pieces))) == 10
        nursery.cancel_scope.cancel()


async def test_of_a_busy_log_many_are_told_together_and_never_late() -> None:
    control = FakeControl()
    async with hub_of(control) as hub, trio.open_nursery() as nursery:
        told: list[float] = []

        async def listen() -> None:
            with hub.reader(EventQuery(after=0)) as reader:
                while await reader.next():
                    told.append(trio.current_time())

        for _ in range(500):
            nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        begin = trio.current_time()
        for _ in range(180):
            control.emit("job_running", job="j")
            await trio.sleep(0.01)
        rounds = sorted({at - begin for at in told})
        # The first is told at once, then each half of a second.
        assert rounds == pytest.approx([0.0, 0.5, 1.0, 1.5], abs=0.02)
        nursery.cancel_scope.cancel()


async def test_an_event_wakes_only_those_who_want_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[Reader] = []
    wake = Reader.wake

    def seen(reader: Reader, cursor: int | None = None) -> bool:
        woken.append(reader)
        return wake(reader, cursor)

    control = FakeControl()
    async with hub_of(control) as hub, trio.open_nursery() as nursery:
        told: dict[str, list[bytes]] = {}
        for number in range(100):
            job = f"j{number}"
            query = EventQuery(after=0, job=(job,), kind=("job_running",))
            nursery.start_soon(listen, hub, query, told.setdefault(job, []))
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(Reader, "wake", seen)
        control.emit("job_running", job="j7")
        control.emit("job_lost", job="j8")
        await trio.sleep(1)
        assert len(woken) == 1
        assert [job for job, pieces in told.items() if pieces] == ["j7"]
        nursery.cancel_scope.cancel()


async def test_while_nobody_reads_there_is_no_timer_and_no_read() -> None:
    control = CountedControl()
    async with hub_of(control) as hub:
        for _ in range(2):
            idle = trio.lowlevel.current_statistics().seconds_to_next_deadline
            assert idle == math.inf
            before = control.reads
            control.emit("job_running", job="j")
            await trio.testing.wait_all_tasks_blocked()
            assert control.reads == before
            async with trio.open_nursery() as nursery:
                pieces: list[bytes] = []
                nursery.start_soon(listen, hub, EventQuery(after=0), pieces)
                await trio.sleep(1)
                assert len(pieces) == 1
                nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
        assert hub.readers == 0


async def test_a_quiet_reader_hears_that_we_are_there_and_another_does_not() -> None:
    control = FakeControl()
    async with hub_of(control) as hub, trio.open_nursery() as nursery:
        quiet: list[bytes] = []
        busy: list[bytes] = []
        nursery.start_soon(listen, hub, EventQuery(after=0, job=("x",)), quiet)
        nursery.start_soon(listen, hub, EventQuery(after=0), busy)
        for _ in range(20):
            await trio.sleep(event_hub.KEEP_ALIVE_SECONDS / 2)
            control.emit("job_running", job="j")
        assert set(quiet) == {KEEP_ALIVE}
        assert 4 <= len(quiet) <= 5
        assert KEEP_ALIVE not in busy
        nursery.cancel_scope.cancel()


async def test_one_who_wants_nothing_of_much_still_learns_how_far_it_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_hub, "RESUME_EVENTS", 10)
    control = FakeControl()
    async with hub_of(control) as hub, trio.open_nursery() as nursery:
        pieces: list[bytes] = []
        nursery.start_soon(listen, hub, EventQuery(after=0, job=("x",)), pieces)
        for _ in range(25):
            await trio.sleep(1)
            control.emit("job_running", job="j")
        await trio.sleep(3 * event_hub.KEEP_ALIVE_SECONDS)
        parser = Parser()
        assert parser.feed(b"".join(pieces)) == []
        assert parser.last_id == "25"
        nursery.cancel_scope.cancel()


async def test_readers_that_come_and_go_leave_nothing() -> None:
    control = FakeControl()
    async with hub_of(control) as hub, AsyncExitStack() as stack:
        stack.enter_context(hub.reader(EventQuery(after=0)))
        for number in range(50):
            with hub.reader(EventQuery(after=0, job=(f"j{number}",))):
                assert hub.readers == 2
        assert len(hub._by) == 1
        assert hub.readers == 1


@pytest.mark.parametrize("waits", [True, False])
async def test_after_a_stop_there_is_an_end_for_all(waits: bool) -> None:
    control = FakeControl()
    hub = EventHub(control, 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hub.run)
        pieces: list[bytes] = []
        if waits:
            nursery.start_soon(listen, hub, EventQuery(after=0), pieces)
        await trio.testing.wait_all_tasks_blocked()
        control.emit("runtime_stopped")
        control.request_stop()
        hub.stop()
        await trio.testing.wait_all_tasks_blocked()
        await listen(hub, EventQuery(after=1), late := [])
        assert b"".join(late) == b'event: end\ndata: {"reason":"the service stops"}\n\n'
    if waits:
        assert b"runtime_stopped" in pieces[0]
        assert pieces[1:] == late


def entries(first: int, count: int, size: int = 10) -> list[Entry]:
    return [
        Entry(number, "app", f"j{number}", "job_running", b"x" * size)
        for number in range(first, first + count)
    ]


async def test_the_ring_is_bounded_by_events_and_by_bytes() -> None:
    ring = Ring()
    ring.begin(0)
    ring.add(entries(1, event_ring.RING_EVENTS + 10), event_ring.RING_EVENTS + 10)
    assert ring.after == 10
    first = ring.last + 1
    size = event_ring.RING_BYTES // 4
    ring.add(entries(first, 6, size), first + 5)
    assert ring.after == first + 1
    reached, data = ring.whole(ring.after)
    assert (reached, len(data)) == (first + 2, size)
    reached, data = ring.some(ring.after, lambda entry: entry.seq == first + 4)
    assert (reached, len(data)) == (first + 5, size)
