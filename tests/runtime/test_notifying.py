"""People are told of what needs them, once."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.webhooks import sign
from forge_actors.runtime.secrets import SecretFolder
from tests.receiver import receiving
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
            with trio.fail_after(30):
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
        with trio.fail_after(30):
            await notifier.trouble.wait_value(lambda why: why is not None)
        why = "the notify command tell cannot be run: No such file or directory"
        assert (await runtime.control.status())["degraded"] == [why]


async def test_each_item_is_sent_once_signed_and_never_again(
    repo: Path, home: Path
) -> None:
    with receiving(500, 200) as receiver:
        told = {"webhook": receiver.url, "secret": "TELL"}
        for status in (500, 200):
            async with running(home, notify=told) as runtime:
                SecretFolder(home).write("TELL", b"hidden")
                job = await runtime.submit(repo, KILLED)
                await job.wait()
                came = await trio.to_thread.run_sync(
                    partial(receiver.arrived.get, timeout=20)
                )
                what = json.loads(came.body)
                assert (what["type"], what["data"]["job"]) == ("inbox.item", job.id)
                name, moment = f"inbox.job:{job.id}", came.headers["webhook-timestamp"]
                signature = sign(b"hidden", name, int(moment), came.body)
                assert came.headers["webhook-signature"] == signature
                notifier = runtime.control._notifier
                assert notifier is not None
                failed = status == 500
                with trio.fail_after(30):
                    wanted = (
                        (lambda w: w is not None) if failed else (lambda w: w is None)
                    )
                    await notifier.trouble.wait_value(wanted)
                degraded = (await runtime.control.status())["degraded"]
                why = "the notify webhook was not told: it answered 500"
                assert degraded == ([why] if failed else [])
        assert len(receiver.came) == 2
