"""Routes: repositories, output and what a caller sees of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader, encode_request

if TYPE_CHECKING:
    from pathlib import Path


from tests.edges.routes_kit import open_api


async def test_repositories_come_and_go(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        body = {"path": "/src/app", "name": None}
        status, view = await api("POST", "/repositories", body)
        assert (status, view["name"]) == (201, "app")
        listed = (await api("GET", "/repositories"))[1]["repositories"]
        assert [repo["name"] for repo in listed] == ["app"]
        assert (await api("GET", "/repositories/app"))[1]["path"] == "/src/app"
        job = await api.submit()
        assert (await api.error("DELETE", "/repositories/app"))[0] == 409
        assert (await api("DELETE", "/repositories/app?cancel=1"))[0] == 200
        assert api.control.views[job].state == "cancelled"
        assert (await api.error("GET", "/repositories/app"))[0] == 404


# Output


async def test_output_is_read_byte_for_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 3000
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, data)
        api.control.write(job, b"err", stream="stderr")
        logs = f"/jobs/{job}/logs"
        assert await api.raw("GET", f"{logs}/stdout") == (200, data)
        assert (await api.raw("GET", f"{logs}/both"))[1] == data + b"err"
        part = await api.raw("GET", f"{logs}/stdout?offset=100&limit=300000")
        assert part[1] == data[100:300_100]
        assert (await api.raw("GET", f"{logs}/stdout?offset=-5"))[1] == data[-5:]
        assert (await api.error("GET", f"{logs}/both?offset=1"))[0] == 400


@pytest.mark.parametrize("stream", ["stdout", "both"])
async def test_secrets_in_output_are_redacted_unless_asked_for(
    tmp_path: Path, stream: str
) -> None:
    secret = b"sk-" + b"a1" * 20
    # It is cut by the pieces in which the output is read.
    data = b"x " * (128 * 1024 - 5) + secret + b" rest\npassword=" + secret
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, data)
        api.control.end(job)
        logs = f"/jobs/{job}/logs/{stream}"
        shown = (await api.raw("GET", logs))[1]
        assert shown == data.replace(secret, b"[redacted]")
        assert (await api.raw("GET", f"{logs}?follow=1"))[1] == shown
        assert await api.raw("GET", f"{logs}?raw=1") == (200, data)


async def test_a_whole_line_is_not_held_back_from_a_follower(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"token=abcdefgh1\nhalf")
        async with await trio.open_unix_socket(api.path) as stream:
            target = f"/v1/jobs/{job}/logs/both?follow=1"
            await stream.send_all(encode_request("GET", target))
            reader, seen = ResponseReader(), b""
            while seen.count(b"\n") < 1:
                seen += reader.feed(await stream.receive_some())
            assert seen == b"token=[redacted]\n"
            api.control.end(job)
            while not reader.complete:
                seen += reader.feed(await stream.receive_some())
        assert seen == b"token=[redacted]\nhalf"


@pytest.mark.parametrize("lines", [0, 1, 3, 20_000, 100_000])
async def test_the_tail_is_whole_lines(tmp_path: Path, lines: int) -> None:
    text = b"".join(b"line %d\n" % number for number in range(50_000)) + b"rest"
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, text)
        wanted = b"".join(text.splitlines(keepends=True)[-lines:]) if lines else b""
        api.control.end(job)
        found = await api.raw("GET", f"/jobs/{job}/logs/stdout?tail={lines}")
        assert found == (200, wanted)


async def test_a_gap_is_a_line_of_its_own(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"head" + b"?" * 10 + b"tail")
        api.control.gaps[job, "stdout"] = (4, 14)
        note = b"[forge-actors: 10 bytes of output were not kept]\n"
        logs = f"/jobs/{job}/logs/stdout"
        assert (await api.raw("GET", logs))[1] == b"head\n" + note + b"tail"
        assert (await api.raw("GET", f"{logs}?offset=4"))[1] == note + b"tail"


@pytest.mark.parametrize("lines", [1, 9_000, 15_000, 40_000])
async def test_the_tail_of_output_with_a_gap_is_whole_lines(
    tmp_path: Path, lines: int
) -> None:
    """The gap lies within the piece in which the first line is looked for."""
    kept = [b"line %09d ........\n" % number for number in range(12_000)]
    text = b"".join(kept)
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"head\n" + b"?" * 500_000 + text)
        api.control.gaps[job, "stdout"] = (5, 500_005)
        api.control.end(job)
        logs = f"/jobs/{job}/logs/stdout"
        found = (await api.raw("GET", f"{logs}?tail={lines}"))[1]
    assert found == b"".join(kept[-lines:])


async def test_a_stream_that_never_pauses_does_not_hide_the_other(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"." * 4_000_000)
        api.control.write(job, b"error", stream="stderr")
        async with await trio.open_unix_socket(api.path) as stream:
            target = f"/v1/jobs/{job}/logs/both?follow=1&raw=1"
            await stream.send_all(encode_request("GET", target))
            reader, seen = ResponseReader(), b""
            while b"error" not in seen:
                seen += reader.feed(await stream.receive_some())
        assert len(seen) < 1_000_000


@pytest.mark.parametrize("stream", ["stdout", "both"])
async def test_followed_output_ends_with_the_job(tmp_path: Path, stream: str) -> None:
    answers: list[Any] = []
    async with open_api(tmp_path) as api:
        job = await api.submit()

        async def follow() -> None:
            answers.append(await api.raw("GET", f"/jobs/{job}/logs/{stream}?follow=1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            for text, name in (
                (b"1\n", "stdout"),
                (b"2\n", "stderr"),
                (b"3\n", "stdout"),
            ):
                await trio.testing.wait_all_tasks_blocked()
                api.control.write(job, text, stream=name)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            api.control.end(job)
    assert answers == [(200, b"1\n2\n3\n" if stream == "both" else b"1\n3\n")]


async def test_events_are_lines_and_can_be_followed(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for kind in ("a", "b", "c"):
            api.control.emit(kind)
        _, body = await api.raw("GET", "/events?after=1&limit=1")
        assert [json.loads(line)["kind"] for line in body.splitlines()] == ["b"]
        async with await trio.open_unix_socket(api.path) as stream:
            await stream.send_all(encode_request("GET", "/v1/events?follow=1&after=2"))
            reader, seen = ResponseReader(), b""
            while seen.count(b"\n") < 1:
                seen += reader.feed(await stream.receive_some())
            api.control.emit("d")
            while seen.count(b"\n") < 2:
                seen += reader.feed(await stream.receive_some())
        assert [json.loads(line)["kind"] for line in seen.splitlines()] == ["c", "d"]


async def test_head_is_answered_like_get(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        async with await trio.open_unix_socket(api.path) as stream:
            await stream.send_all(encode_request("HEAD", "/v1/events?follow=1"))
            data = b""
            async for piece in stream:
                data += piece
        assert data.startswith(b"HTTP/1.1 200")
        assert data.endswith(b"\r\n\r\n")
