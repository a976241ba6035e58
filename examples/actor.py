"""An actor of one's own beside a runtime: it counts what failed, and can be asked.

    python examples/actor.py ~/src/app

It is told of each event by a task that follows them. Should it fail, it begins anew
from what it has saved, and whoever asked it meanwhile is answered by the next one.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import trio
from msgspec import Struct

from forge_actors import EventView, Runtime, open_runtime
from forge_actors.kit import (
    Inbox,
    Keeper,
    Mailbox,
    Reply,
    open_mailbox,
    open_supervisor,
    serving,
)


class Ended(Struct, frozen=True):
    """A job has ended; `number` is that of its event."""

    repo: str
    number: int
    good: bool


class Report(Struct, frozen=True):
    """How many jobs failed, by repository."""

    reply: Reply[dict[str, int]]


Message = Ended | Report


async def count(file: Path, *, task_status: trio.TaskStatus[Mailbox[Message]]) -> None:
    """The actor: it alone has the counts, so nothing is locked."""
    saved = json.loads(file.read_text()) if file.exists() else {"seen": 0, "failed": {}}
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    with serving(inbox):
        task_status.started(mailbox)
        async for message in inbox:
            match message:
                case Ended(repo, number, good) if number > saved["seen"]:
                    saved["seen"] = number
                    failed = saved["failed"].get(repo, 0)
                    saved["failed"][repo] = failed + (not good)
                    file.write_text(json.dumps(saved))
                case Report(reply):
                    reply.answer(dict(saved["failed"]))


async def follow(runtime: Runtime, counter: Keeper[Message]) -> None:
    """Tell the actor of every end."""
    event: EventView
    async for event in runtime.events(after=0):
        if event.kind in ("job_succeeded", "job_failed") and event.repo is not None:
            good = event.kind == "job_succeeded"
            counter.tell(Ended(event.repo, event.seq, good))


async def report(counter: Keeper[Message]) -> dict[str, int]:
    return await counter.ask(Report)


async def run(runtime: Runtime, file: Path, repo: Path) -> dict[str, int]:
    async with open_supervisor() as supervisor, trio.open_nursery() as nursery:
        counter = await supervisor.start(partial(count, file), name="the counter")
        nursery.start_soon(follow, runtime, counter)
        for argv in (["git", "fsck"], ["git", "no-such-verb"]):
            await (await runtime.submit(repo, argv)).wait()
        told = await report(counter)
        nursery.cancel_scope.cancel()
    return told


async def main(folder: str) -> None:
    async with open_runtime() as runtime:
        print(await run(runtime, runtime.home / "counts.json", Path(folder)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    trio.run(main, *sys.argv[1:])
