"""Routes: parts of an output, attempts, and the output of several jobs at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from tests.edges.routes_kit import Api, open_api

if TYPE_CHECKING:
    from pathlib import Path


def parsed(body: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """The frames of an answer."""
    found = []
    while body:
        line, _, body = body.partition(b"\n")
        head = json.loads(line)
        size = head["bytes"]
        found.append((head, body[:size]))
        body = body[size:]
    return found


def texts(body: bytes) -> list[tuple[str, str | None, bytes]]:
    return [(head["job"], head["stream"], data) for head, data in parsed(body)]


async def several(api: Api, jobs: list[str], query: str = "") -> bytes:
    body = json.dumps({"jobs": jobs}).encode()
    status, answer = await api.raw("POST", f"/logs{query}", body)
    assert status == 200
    return answer


async def test_output_since_a_time_begins_where_the_log_says(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"1\n2\n3\n4\n")
        api.control.write(job, b"e\nf\n", stream="stderr")
        api.control.starts[job, "stdout", "5m"] = 4
        api.control.starts[job, "stderr", "5m"] = 2
        logs = f"/jobs/{job}/logs"
        assert (await api.raw("GET", f"{logs}/stdout?since=5m"))[1] == b"3\n4\n"
        assert (await api.raw("GET", f"{logs}/both?since=5m"))[1] == b"3\n4\nf\n"
        # The last lines, but none that came earlier.
        for lines, wanted in ((1, b"4\n"), (2, b"3\n4\n"), (9, b"3\n4\n"), (0, b"")):
            query = f"since=5m&tail={lines}"
            assert (await api.raw("GET", f"{logs}/stdout?{query}"))[1] == wanted
        assert (await api.raw("GET", f"{logs}/stdout?since=9m&offset=2"))[1] == (
            b"2\n3\n4\n"
        )


async def test_a_range_that_was_not_kept_is_named_and_ends_where_it_ends(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"head" + b"?" * 10 + b"tail")
        api.control.gaps[job, "stdout"] = (4, 14)
        logs = f"/jobs/{job}/logs/stdout"
        note = b"[forge-actors: 2 bytes of output were not kept]\n"
        for query, wanted in (
            ("offset=2&limit=4", b"ad\n" + note),
            ("offset=6&limit=2", note),
            ("offset=12&limit=4", note + b"ta"),
        ):
            assert (await api.raw("GET", f"{logs}?{query}"))[1] == wanted, query


@pytest.mark.parametrize("back", range(1, 50))
async def test_a_cut_inside_a_character_replaces_that_one_alone(
    tmp_path: Path, back: int
) -> None:
    """L-05: any number of last bytes, of characters of four bytes each."""
    text = "\N{ROCKET}" * 20
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, text.encode())
        logs = f"/jobs/{job}/logs/stdout?offset=-{back}"
        shown = (await api.raw("GET", logs))[1].decode()
        assert shown == "\N{REPLACEMENT CHARACTER}" * (back % 4 > 0) + text[: back // 4]
        raw = (await api.raw("GET", f"{logs}&raw=1"))[1]
        assert raw == text.encode()[-back:]


async def test_each_attempt_has_its_own_output(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        logs = f"/jobs/{job}/logs/stdout"
        assert await api.raw("GET", f"{logs}?attempt=1") == (200, b"")
        api.control.write(job, b"first")
        api.control.begin_again(job)
        api.control.write(job, b"second")
        assert (await api.raw("GET", logs))[1] == b"second"
        assert (await api.raw("GET", f"{logs}?attempt=1"))[1] == b"first"
        assert (await api.raw("GET", f"{logs}?attempt=1&follow=1"))[1] == b"first"
        status, text = await api.error("GET", f"{logs}?attempt=3")
        assert (status, text) == (400, "attempt: 3 is not among the 2 there were")
        assert (await api.error("GET", f"{logs}?attempt=0"))[0] == 400


@pytest.mark.parametrize("stream", ["stdout", "both"])
@pytest.mark.parametrize(("checks", "mark"), [([], b""), ([2], b", the check")])
async def test_a_follower_goes_on_with_the_next_attempt(
    tmp_path: Path, stream: str, checks: list[int], mark: bytes
) -> None:
    answers: list[Any] = []
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.views[job].verify = {"checks": checks}

        async def follow() -> None:
            answers.append(await api.raw("GET", f"/jobs/{job}/logs/{stream}?follow=1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            api.control.write(job, b"one\n")
            await trio.testing.wait_all_tasks_blocked()
            api.control.begin_again(job)
            await trio.testing.wait_all_tasks_blocked()
            api.control.write(job, b"two\n")
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            api.control.end(job)
    assert answers == [(200, b"one\n[forge-actors: attempt 2%s]\ntwo\n" % mark)]


async def test_several_jobs_come_one_after_the_other_in_frames(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first, second = await api.submit(name="a"), await api.submit()
        api.control.write(first, b"1\n2\n")
        api.control.write(first, b"err\n", stream="stderr")
        api.control.write(second, bytes(range(256)))
        answer = await several(api, [first, second[-4:], first], "?raw=1")
        assert texts(answer) == [
            (first, None, b""),
            (second, None, b""),
            (first, "stdout", b"1\n2\n"),
            (first, "stderr", b"err\n"),
            (first, None, b""),
            (second, "stdout", bytes(range(256))),
            (second, None, b""),
        ]
        ended = [head["ended"] for head, _ in parsed(answer)]
        assert ended == [False, False, False, False, True, False, True]
        assert [head["name"] for head, _ in parsed(answer)][:2] == ["a", None]
        last = await several(api, [first, second], "?tail=1&stream=stdout&raw=1")
        assert texts(last)[2] == (first, "stdout", b"2\n")


async def test_several_jobs_are_followed_until_the_last_has_ended(
    tmp_path: Path,
) -> None:
    answers: list[bytes] = []
    async with open_api(tmp_path) as api:
        queued, runs, ended = [await api.submit() for _ in range(3)]
        api.control.write(ended, b"done\n")
        api.control.end(ended)

        async def follow() -> None:
            jobs = [queued, runs, ended]
            answers.append(await several(api, jobs, "?follow=1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            api.control.write(runs, b"r1\n")
            await trio.testing.wait_all_tasks_blocked()
            api.control.write(queued, b"q1\n", stream="stderr")
            await trio.testing.wait_all_tasks_blocked()
            api.control.write(runs, b"r2\n")
            api.control.end(runs)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            api.control.end(queued)
    assert texts(answers[0])[3:] == [
        (ended, "stdout", b"done\n"),
        (ended, None, b""),
        (runs, "stdout", b"r1\n"),
        (queued, "stderr", b"q1\n"),
        (runs, "stdout", b"r2\n"),
        (runs, None, b""),
        (queued, None, b""),
    ]


@pytest.mark.parametrize(
    ("query", "jobs", "status", "message"),
    [
        ("", [], 400, "jobs: names no job"),
        ("", ["nowhere"], 404, "there is no job"),
        ("?stream=up", ["j000001"], 400, "stream: 'up' is unknown"),
        ("?since=x", ["j000001"], 400, "since: 'x' is neither"),
        ("?since=x&follow=1", ["j000001"], 400, "since: 'x' is neither"),
        ("?offset=1", ["j000001"], 400, "offset: is no parameter here"),
        ("?follow=1", ["j000001"] * 257, 400, "at most 256 can be followed at once"),
    ],
)
async def test_a_mistake_is_told_before_anything_is_sent(
    tmp_path: Path, query: str, jobs: list[str], status: int, message: str
) -> None:
    async with open_api(tmp_path) as api:
        await api.submit()
        found, text = await api.error("POST", f"/logs{query}", {"jobs": jobs})
        assert found == status
        assert message in text
