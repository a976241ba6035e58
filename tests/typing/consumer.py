"""A program of somebody else: type checkers look at it, from outside, as it stands.

It is never run. What it reveals is what the public names promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import assert_type

import trio

import forge_actors
from forge_actors import (
    CapacityView,
    EventView,
    ForgeError,
    InvalidInput,
    JobHandle,
    JobView,
    NextTime,
    OccurrenceView,
    RepositoryHandle,
    Runtime,
    ScheduleHandle,
    SettingChange,
    Settings,
    WorkflowHandle,
    WorkflowView,
    open_runtime,
)
from forge_actors.adapters import AgentAdapter, register
from forge_actors.client import BlockingClient, Client, connect
from forge_actors.kit import (
    Inbox,
    Keeper,
    Mailbox,
    Reply,
    RestartPolicy,
    open_mailbox,
    open_supervisor,
    serving,
)


async def jobs(runtime: Runtime, repo: Path) -> None:
    app = await runtime.add_repository(repo)
    assert_type(app, RepositoryHandle)
    job = await app.submit(["make", "test"], kind="check", timeout="10m")
    assert_type(job, JobHandle)
    async for event in job.events():
        assert_type(event, EventView)
    async for piece in job.output("stderr"):
        assert_type(piece, bytes)
    assert_type(await job.wait(), JobView)
    assert_type(await runtime.jobs(repo=[app.name], active=True), list[JobView])


async def automation(runtime: Runtime, repo: Path) -> None:
    nightly = await runtime.add_schedule(
        "nightly", repo, {"argv": ["make"]}, cron="0 3 * * *"
    )
    assert_type(nightly, ScheduleHandle)
    assert_type(await nightly.next_times(3), list[NextTime])
    assert_type(await nightly.run(), OccurrenceView)
    flow = await runtime.run_workflow("release", steps=[])
    assert_type(flow, WorkflowHandle)
    assert_type(await flow.wait(), WorkflowView)


async def limits(runtime: Runtime) -> None:
    assert_type(await runtime.capacity(), CapacityView)
    changed = await runtime.change_settings({"limits": {"workers": 8}})
    assert_type(changed, list[SettingChange])


async def main() -> None:
    try:
        async with open_runtime(settings=Settings()) as runtime:
            assert_type(runtime, Runtime)
            await jobs(runtime, Path())
            await automation(runtime, Path())
            await limits(runtime)
    except InvalidInput as error:
        assert_type(error.field, str)
    except ForgeError as error:
        assert_type(error.code, str)


@dataclass(frozen=True)
class Add:
    number: int
    reply: Reply[int]


async def add_up(*, task_status: trio.TaskStatus[Mailbox[Add]]) -> None:
    mailbox: Mailbox[Add]
    inbox: Inbox[Add]
    mailbox, inbox = open_mailbox()
    total = 0
    with serving(inbox):
        task_status.started(mailbox)
        async for message in inbox:
            assert_type(message, Add)
            with message.reply as reply:
                total += message.number
                reply.answer(total)


async def actors() -> None:
    async with open_supervisor() as supervisor:
        adder = await supervisor.start(
            add_up, name="adder", restart="permanent", policy=RestartPolicy(3, 10.0)
        )
        assert_type(adder, Keeper[Add])
        total: int = await adder.ask(lambda reply: Add(3, reply))
        assert total == 3


async def over_the_socket() -> None:
    async with connect() as client:
        assert_type(client, Client)
        accepted = await client.submit("app", ["true"])
        assert_type(await client.wait(accepted.id), list[JobView])


def in_a_plain_program() -> None:
    client = BlockingClient()
    accepted = client.submit("app", ["true"])
    assert_type(client.wait(accepted.id), list[JobView])
    with client.events(limit=3) as events:
        for event in events:
            assert_type(event, EventView)


def adapter(mine: AgentAdapter) -> None:
    register(mine)


assert_type(forge_actors.__version__, str)
trio.run(main)
