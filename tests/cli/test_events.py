"""`events`: as lines for people, as JSON lines, followed, and from a quiet home."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli.event_text import line
from forge_actors.runtime.runtime import open_runtime
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def test_a_line_says_when_what_where_and_why() -> None:
    event = {
        "seq": 7,
        "at": "2026-01-31T12:00:00.123Z",
        "kind": "job_dispatched",
        "repo": "app",
        "job": "1m8mqy3d67xk7kh06a4",
        "job_name": "lint\x1b[31m\n",
        "data": {
            "attempt": 1,
            "fence": 3,
            "claims": [["write", "path", "src:a", "/home/u/app"]],
            "tokens": ["workers", "provider:x"],
            "after": [],
        },
    }
    assert line(event) == (
        "2026-01-31T12:00:00Z  job_dispatched        kh06a4  app (lint )  attempt 1,"
        " fence 3, claims write:path:src:a, tokens workers provider:x"
    )
    error = {"code": "EXIT_NONZERO", "message": "exit status 1:\na\x07b"}
    failed = {**event, "kind": "job_failed", "data": {"error": error}}
    assert line(failed).endswith("app (lint )  EXIT_NONZERO: exit status 1: ab")
    started = {**event, "job": None, "repo": None, "job_name": None, "data": {"pid": 1}}
    assert line({**started, "kind": "runtime_started"}).split()[1:] == [
        *("runtime_started", "-", "-", "pid", "1")
    ]


async def test_the_newest_are_listed_unless_a_start_is_named(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        for number in range(1200):
            control.emit("a" if number % 2 else "b", repo="app", number=number)
        control.repos["app"] = await control.add_repository("/app", "app")

        async def numbers(*words: str) -> list[int]:
            status, out, err = await shell("events", "--json", *words)
            assert (status, err) == (0, "")
            return [json.loads(text)["data"]["number"] for text in out.splitlines()]

        assert await numbers() == list(range(1100, 1200))
        assert await numbers("--limit", "1100") == list(range(100, 1200))
        assert await numbers("--after", "0") == list(range(1200))
        assert await numbers("--after", "10", "--limit", "2") == [10, 11]
        odd = list(range(1, 1200, 2))
        assert await numbers("--kind", "a", "--after", "0", "--repo", "app") == odd
        status, out, _ = await shell("events", "--limit", "1")
        assert (status, out.split()[1:]) == (
            0,
            ["b" if 0 else "a", "-", "app", "number", "1199"],
        )


async def test_what_comes_is_followed_until_enough_came(
    tmp_path: Path, shell: Shell
) -> None:
    done: list[tuple[int, str, str]] = []

    async def follow() -> None:
        words = ("events", "-f", "--json", "--kind", "new", "--limit", "2")
        done.append(await shell(*words))

    async with fake_service(tmp_path) as control:
        control.emit("old")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await control.until_held(1)
            for kind in ("new", "other", "new", "new"):
                control.emit(kind)
        [(status, out, err)] = done
        assert (status, err) == (0, "")
        assert [json.loads(text)["seq"] for text in out.splitlines()] == [2, 4]
        # Nothing of it is left behind.
        await control.until_held(0)


async def test_the_end_of_the_service_ends_the_stream_and_is_said(
    tmp_path: Path, shell: Shell
) -> None:
    done: list[tuple[int, str, str]] = []

    async def follow() -> None:
        done.append(await shell("events", "-f", "--after", "0"))

    async with fake_service(tmp_path) as control:
        control.emit("one")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await control.until_held(1)
            control.request_stop()
    [(status, out, err)] = done
    assert status == 0
    assert " one " in out
    assert "ended, so nothing more comes" in err


async def test_a_service_that_dies_ends_the_stream_with_no_service(
    tmp_path: Path, shell: Shell
) -> None:
    done: list[tuple[int, str, str]] = []

    async def follow() -> None:
        done.append(await shell("events", "-f"))

    async with trio.open_nursery() as nursery, fake_service(tmp_path) as control:
        nursery.start_soon(follow)
        while control.held == 0:
            await trio.testing.wait_all_tasks_blocked(0.01)
    [(status, out, err)] = done
    assert (status, out) == (4, "")
    assert "went away" in err


async def test_a_home_that_nothing_serves_is_read_and_said(
    tmp_path: Path, shell: Shell
) -> None:
    status, _, err = await shell("events")
    assert (status, "no service runs" in err) == (4, True)
    async with open_runtime(tmp_path):
        pass
    status, out, err = await shell("events", "--json", "--kind", "runtime_stopped")
    assert (status, json.loads(out)["kind"]) == (0, "runtime_stopped")
    assert "this is what its store holds" in err
    status, out, err = await shell("events", "-f")
    assert (status, out) == (4, "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--after", "-1"), "--after: must be at least 0"),
        (("--limit", "0"), "--limit: must be at least 1"),
        (("--limit", "x"), "--limit: 'x' is no whole number"),
        (("--since", "yesterday"), "nor a span such as 10m"),
        (("--since", "2026-01-31T12:00:00"), "which offset"),
        (("--knd", "x"), "did you mean --kind"),
    ],
)
async def test_bad_options_are_one_line(
    tmp_path: Path, shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    async with fake_service(tmp_path):
        status, out, err = await shell("events", *words)
    assert (status, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1
