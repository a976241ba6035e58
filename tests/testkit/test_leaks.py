"""What is left at the end of a block is told by its name."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.testing import (
    InMemory,
    Leaked,
    ScriptedJob,
    assert_no_leaks,
    make_repository,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_nothing_is_left_of_what_ended() -> None:
    async with assert_no_leaks():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0)
        await trio.run_process(["true"])


async def test_a_task_is_told_of() -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(Leaked, match=r"left over: task trio\.sleep_forever"):
            async with assert_no_leaks():
                nursery.start_soon(trio.sleep_forever)
        nursery.cancel_scope.cancel()


async def test_a_descriptor_is_told_of_also_in_the_place_of_another(
    tmp_path: Path,
) -> None:
    file = os.open(os.devnull, os.O_RDONLY)
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(Leaked, match=rf"descriptor {file} \(.*{tmp_path.name}\)$"):
            async with assert_no_leaks():
                os.dup2(other, file)
    finally:
        os.close(file)
        os.close(other)


async def test_a_process_is_told_of() -> None:
    left: list[subprocess.Popen[bytes]] = []
    with pytest.raises(Leaked, match=r"process \d+ \(sleep, "):
        async with assert_no_leaks():
            left.append(await trio.to_thread.run_sync(_sleep))
    left[0].kill()
    left[0].wait()


def _sleep() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "4711.25"])


async def test_an_error_of_the_block_is_the_error() -> None:
    async with trio.open_nursery() as nursery:

        async def block() -> None:
            async with assert_no_leaks():
                nursery.start_soon(trio.sleep_forever)
                raise KeyError

        with pytest.raises(KeyError):
            await block()
        nursery.cancel_scope.cancel()


@pytest.mark.mock_clock
async def test_tokens_that_are_in_use_are_told_of(tmp_path: Path) -> None:
    async def last(job: ScriptedJob) -> None:
        await trio.sleep_forever()

    app = make_repository(tmp_path / "app")
    async with InMemory(tmp_path / "home", last).open() as runtime:

        async def block() -> None:
            async with assert_no_leaks(runtime):
                job = await runtime.submit(app, ["x"])
                async for event in job.events():
                    if event.kind == "job_running":
                        break

        with pytest.raises(Leaked, match="tokens are still in use: 1 of workers"):
            await block()
        async with assert_no_leaks(runtime):
            [view] = await runtime.jobs()
            await (await runtime.job(view.id)).cancel()
            await runtime.wait_idle()
