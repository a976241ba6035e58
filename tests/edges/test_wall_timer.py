"""A time of the wall clock, waited for by the system's own timer."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import pytest
import trio

from forge_actors.edges import wall_timer
from forge_actors.edges.wall_timer import SystemWallTimer


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if sys.platform == "linux" else 0


async def test_it_returns_at_its_time() -> None:
    until = time.time() + 0.2
    await SystemWallTimer().wait(until)
    assert time.time() >= until


@pytest.mark.parametrize("until", [0.0, -5.0, 1.5])
async def test_what_is_past_is_not_waited_for(until: float) -> None:
    with trio.fail_after(30):
        await SystemWallTimer().wait(until)


async def test_never_is_never_and_leaves_nothing_open() -> None:
    before = open_files()
    with trio.move_on_after(0.05) as scope:
        await SystemWallTimer().wait(math.inf)
    assert scope.cancelled_caught
    with trio.move_on_after(0.05) as scope:
        await SystemWallTimer().wait(time.time() + 3600)
    assert scope.cancelled_caught
    assert open_files() == before


async def test_without_such_a_timer_it_looks_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wall_timer, "_timer", lambda _: None)
    monkeypatch.setattr(wall_timer, "LOOK_SECONDS", 0.05)
    with trio.fail_after(30):
        await SystemWallTimer().wait(time.time() + 3600)
