"""`drain`, and `status --wait`: one held request each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


async def test_a_drain_returns_when_nothing_runs(tmp_path: Path, shell: Shell) -> None:
    done: list[tuple[int, str, str]] = []

    async def drain() -> None:
        done.append(await shell("drain"))

    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        control.begin(job)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            await control.until_held(1)
            assert not done
            control.end(job)
        assert done[0] == (
            0,
            f"nothing runs on {tmp_path}, and nothing new starts\n",
            "",
        )
        assert "ready, draining" in (await shell("status"))[1]
        status, out, _ = await shell("drain", "--cancel")
        assert (status, out) == (0, f"the service on {tmp_path} works again\n")
        assert "draining" not in (await shell("status"))[1]


async def test_what_still_runs_is_named_when_the_time_is_over(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--name", "long", "--", "x"))[1].strip()
        control.begin(job)
        control.views[job].name = "long\x1b[2J"
        status, out, err = await shell("drain", "--timeout", "0", "--stop")
        assert status == 5
        assert out.split()[0] == job[-6:]
        assert "long" in out
        assert "\x1b" not in out
        assert "not drained within 0; it goes on draining" in err
        assert control.draining
        assert not control.stop_requested.is_set()
        status, out, _ = await shell("drain", "--timeout", "0", "--json")
        answer = json.loads(out)
        assert (status, answer["timed_out"]) == (5, True)
        assert [entry["id"] for entry in answer["running"]] == [job]


async def test_a_drain_that_somebody_cancels_is_refused(
    tmp_path: Path, shell: Shell
) -> None:
    done: list[tuple[int, str, str]] = []

    async def drain() -> None:
        done.append(await shell("drain"))

    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        control.begin(job)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            await control.until_held(1)
            await control.undrain()
    [(status, out, err)] = done
    assert (status, out) == (3, "")
    assert "the drain was cancelled" in err


@pytest.mark.parametrize("state", ["ready", "idle"])
async def test_status_waits_for_a_state(
    tmp_path: Path, shell: Shell, state: str
) -> None:
    done: list[tuple[int, str, str]] = []

    async def wait() -> None:
        words = ["--wait"] if state == "ready" else ["--wait", "idle"]
        done.append(await shell("status", *words))

    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        control.set_ready(False)
        words = ("status", "--wait", state, "--timeout", "0")
        status, out, err = await shell(*words)
        assert (status, "not ready" in out) == (5, True)
        assert f"not {state} within 0" in err
        assert "timed_out" not in out
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await control.until_held(1)
            assert not done
            control.set_ready(True)
            control.end(job)
    assert (done[0][0], done[0][2]) == (0, "")
    assert "service   ready" in done[0][1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("status --wait sleepy", "ready"),
        ("status --timeout 1s", "--timeout: belongs to --wait"),
        ("status --wait --timeout soon", "timeout"),
        ("drain --timeout soon", "timeout"),
        ("drain --cancel --stop", "--cancel: goes with no other option"),
    ],
)
async def test_bad_options_are_one_line_and_change_nothing(
    tmp_path: Path, shell: Shell, words: str, problem: str
) -> None:
    async with fake_service(tmp_path) as control:
        status, out, err = await shell(*words.split())
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert problem in err
        assert not control.draining
