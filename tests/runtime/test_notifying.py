"""People are told of what needs them, once."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import trio

from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running
from tests.runtime.test_inbox import KILLED

if TYPE_CHECKING:
    from pathlib import Path


async def test_each_item_is_told_once_also_across_a_restart(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "told"
    os.mkfifo(pipe)
    told = {"command": ["sh", "-c", f"cat > {pipe}"]}
    items = []
    for _ in range(2):
        async with running(home, notify=told) as runtime:
            job = await runtime.submit(repo, KILLED)
            await job.wait()
            with trio.fail_after(20):
                text = await trio.to_thread.run_sync(pipe.read_text)
            items.append((json.loads(text)["job"], job.id))
            assert (await runtime.control.status())["degraded"] == []
    assert all(told == job for told, job in items)


async def test_a_command_that_fails_is_told_in_the_status(
    repo: Path, home: Path
) -> None:
    async with running(home, notify={"command": ["/nowhere/tell"]}) as runtime:
        await (await runtime.submit(repo, KILLED)).wait()
        notifier = runtime.control._notifier
        assert notifier is not None
        with trio.fail_after(20):
            await notifier.trouble.wait_value(lambda why: why is not None)
        why = "the notify command tell cannot be run: No such file or directory"
        assert (await runtime.control.status())["degraded"] == [why]
