"""Events as a stream: what a reader hears, wherever it begins and however it ends."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.events import EventPage, EventQuery
from forge_actors.edges.gateway import event_ring
from forge_actors.edges.gateway.messages import Limits
from forge_actors.testing.service import fake_service
from tests.edges.http_kit import ask, head
from tests.edges.routes_kit import open_api
from tests.edges.sse_kit import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from forge_actors.testing.control import FakeControl
    from tests.edges.sse_kit import Heard, Listener


def numbers(heard: list[Heard]) -> list[int]:
    assert all(one.id == str(one.data["seq"]) for one in heard)
    return [one.data["seq"] for one in heard]


def fill(control: FakeControl, count: int) -> None:
    for number in range(count):
        control.emit("job_running", job=f"j{number % 3}", repo="app")


async def test_a_stream_tells_what_comes_in_order_with_its_number(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        fill(api.control, 5)
        async with listening(api.path) as listener:
            assert listener.status == 200
            fill(api.control, 3)
            heard = await listener.some(3)
            assert numbers(heard) == [6, 7, 8]
            assert {one.name for one in heard} == {"message"}
            assert heard[0].data["kind"] == "job_running"
            fill(api.control, 2)
            assert numbers(await listener.some(2)) == [9, 10]


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"last_event_id": "4"}),
        ("?after=4", {}),
        # The address stays the same when a browser comes again.
        ("?after=1", {"last_event_id": "4"}),
        ("?newest=1&limit=2", {}),
        ("?since=1h&format=sse", {"accept": "*/*", "last_event_id": "4"}),
    ],
)
async def test_a_stream_goes_on_where_the_reader_was(
    tmp_path: Path, query: str, headers: dict[str, str]
) -> None:
    async with open_api(tmp_path) as api:
        fill(api.control, 6)
        async with listening(api.path, query, **headers) as listener:
            assert numbers(await listener.some(2)) == [5, 6]
            fill(api.control, 1)
            assert numbers(await listener.some(1)) == [7]


@pytest.mark.parametrize("query", ["?job=j1", "?kind=job_lost&job=j1&job=j2"])
async def test_a_stream_tells_only_what_its_filters_leave(
    tmp_path: Path, query: str
) -> None:
    async with open_api(tmp_path) as api:
        jobs = [await api.submit(), await api.submit()]
        before = api.control.last_event
        query = query.replace("j1", jobs[0]).replace("j2", jobs[1])
        async with listening(api.path, f"{query}&after={before}") as listener:
            wanted = []
            for _ in range(3):
                for job in jobs:
                    for kind in ("job_running", "job_lost"):
                        api.control.emit(kind, job=job, repo="app")
                        if kind in query or ("kind" not in query and job in query):
                            wanted.append(api.control.last_event)
            heard = await listener.some(len(wanted))
            assert numbers(heard) == wanted


async def test_one_who_falls_behind_the_ring_reads_on_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_ring, "RING_EVENTS", 4)
    monkeypatch.setattr(event_ring, "PIECE_BYTES", 300)
    async with (
        open_api(tmp_path) as api,
        listening(api.path) as one,
        listening(api.path, "?kind=job_running") as other,
    ):
        for _ in range(10):
            fill(api.control, 20)
            api.control.emit("job_lost", job="j0", repo="app")
            await trio.testing.wait_all_tasks_blocked()
        everything = list(range(1, 211))
        assert numbers(await one.some(210)) == everything
        assert numbers(await other.some(200)) == [n for n in everything if n % 21]


async def test_a_reader_learns_from_where_on_there_are_events(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        fill(api.control, 20)
        del api.control.log[:10]
        async with listening(api.path, last_event_id="3") as listener:
            gap, first = await listener.some(2)
            assert (gap.name, gap.id) == ("gap", "10")
            assert (gap.data["asked"], gap.data["first"]) == (3, 11)
            assert "before 11 were removed" in gap.data["message"]
            assert first.data["seq"] == 11
        async with listening(api.path, last_event_id="10") as listener:
            assert (await listener.some(1))[0].data["seq"] == 11  # nothing is missing


async def test_a_reader_of_a_later_history_goes_on_at_the_end(tmp_path: Path) -> None:
    """As after the store was replaced by a backup."""
    async with open_api(tmp_path) as api:
        fill(api.control, 3)
        async with listening(api.path, last_event_id="99") as listener:
            gap = await listener.next()
            assert gap is not None
            assert (gap.name, gap.id, gap.data["last"]) == ("gap", "3", 3)
            fill(api.control, 1)
            assert numbers(await listener.some(1)) == [4]


async def test_what_came_before_the_end_is_told_and_then_the_end(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api, listening(api.path) as listener:
        fill(api.control, 3)
        api.control.request_stop()
        assert numbers(await listener.some(3)) == [1, 2, 3]
        end = await listener.next()
        assert end is not None
        assert (end.name, end.id) == ("end", "3")
        assert await listener.next() is None


async def test_streams_have_a_cap_of_their_own(tmp_path: Path) -> None:
    limits = Limits(held=1, connections=2)
    path = str(tmp_path / "control.sock")
    async with (
        fake_service(tmp_path, limits=limits, streams=4) as control,
        AsyncExitStack() as stack,
    ):
        listeners = [
            await stack.enter_async_context(listening(path, "?follow=1"))
            for _ in range(4)
        ]
        async with listening(path) as fifth:
            assert fifth.status == 503
        fill(control, 1)
        for listener in listeners:
            assert numbers(await listener.some(1)) == [1]
        await listeners[0].stream.aclose()
        await room_for_another(path)
        async with listening(path) as another:
            fill(control, 1)
            assert numbers(await another.some(1)) == [2]


@pytest.mark.mock_clock
async def test_a_slow_reader_is_cut_off_and_goes_on_from_what_it_took(
    tmp_path: Path,
) -> None:
    # Time passes only while everybody waits, so never for the one who goes on.
    limits = Limits(write_timeout=1.0)
    path = str(tmp_path / "control.sock")
    text = "x" * 50_000
    async with fake_service(tmp_path, limits=limits, streams=1) as control:
        async with listening(path) as slow:
            for _ in range(100):
                control.emit("job_running", job="j", text=text)
            await trio.sleep(2 * limits.write_timeout)
            await room_for_another(path)  # of one: it was cut off
            with pytest.raises(EOFError):  # cut, so nobody takes it for the whole
                await slow.some(100)
            taken = int(slow.parser.last_id or 0)
            assert taken < 100
        async with listening(path, last_event_id=str(taken)) as again:
            heard = await again.some(100 - taken)
            assert numbers(heard) == list(range(taken + 1, 101))


async def test_a_log_that_cannot_be_read_ends_the_streams_and_not_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_api(tmp_path) as api:
        async with listening(api.path) as listener:
            fill(api.control, 1)
            assert numbers(await listener.some(1)) == [1]
            whole = api.control.events

            async def broken(query: EventQuery, *, wait: bool) -> EventPage:
                raise StoreFailed("it is damaged")

            monkeypatch.setattr(api.control, "events", broken)
            fill(api.control, 1)
            *_, end = [one async for one in until_end(listener)]
            assert (end.name, end.data["reason"]) == ("end", "it is damaged")
            monkeypatch.setattr(api.control, "events", whole)
        async with listening(api.path, last_event_id="1") as listener:
            assert numbers(await listener.some(1)) == [2]


async def room_for_another(path: str) -> None:
    """Ask until there is room for one more."""
    while True:
        async with listening(path) as another:
            if another.status == 200:
                await another.stream.send_eof()
                with suppress(EOFError, trio.BrokenResourceError):
                    while await another.next():
                        pass
                return


async def until_end(listener: Listener) -> AsyncIterator[Heard]:
    while (one := await listener.next()) is not None:
        yield one


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("?format=xml", {}, "format"),
        ("", {"last_event_id": "-1"}, "Last-Event-ID"),
        ("", {"last_event_id": "1x"}, "Last-Event-ID"),
        ("", {"last_event_id": "9" * 17}, "Last-Event-ID"),
        ("?follow=perhaps", {}, "follow"),
        ("?after=x", {}, "after"),
    ],
)
async def test_what_is_wrong_with_a_request_is_its_answer(
    tmp_path: Path, query: str, headers: dict[str, str], field: str
) -> None:
    async with open_api(tmp_path) as api, listening(api.path, query, **headers) as it:
        assert it.status == 400
        assert f'"field":"{field}"'.encode() in it.refusal


async def test_whoever_asks_for_the_head_is_told_no_event(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        fill(api.control, 2)
        lines = "HEAD /v1/events?format=sse&after=0 HTTP/1.1", "host: localhost"
        status, body = await ask(api.path, head(*lines, "connection: close"))
        assert (status, body) == (200, b"")
