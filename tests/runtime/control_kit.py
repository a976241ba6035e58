"""What the tests of control share."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.domain.requests import JobRequest
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import Explanation


class Case:
    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self.control = runtime.control
        self.folder = folder

    async def add(self, name: str) -> Path:
        folder = make_repository(self.folder / name)
        await self.control.add_repository(str(folder))
        return folder

    async def hold(self, repo: str = "app", **options: Any) -> str:
        """A job that runs until it is cancelled, and has begun."""
        options.setdefault("read_only", True)
        [entry] = await self.control.submit(
            [JobRequest(repo, ["sleep", "600"], **options)]
        )
        async for event in self.runtime.events(after=0):
            if (event.kind, event.job) == ("job_running", entry.id):
                return entry.id
        raise AssertionError("events do not end")

    async def submit(self, repo: str = "app", *argv: str, **options: Any) -> str:
        options.setdefault("read_only", not options.get("claims"))
        command = list(argv) or ["true"]
        [entry] = await self.control.submit([JobRequest(repo, command, **options)])
        return entry.id

    async def why(self, job: str) -> tuple[Explanation, dict[str, Any]]:
        # Of one that came just now nobody has asked yet whether it may start.
        while (explanation := await self.control.why(job)).sentence == "It is queued.":
            await trio.lowlevel.checkpoint()
        assert explanation.waiting is not None, explanation.sentence
        return explanation, explanation.waiting

    async def end(self, *jobs: str) -> list[JobView]:
        for job in jobs:
            await self.control.cancel(job)
        return await self.control.wait(jobs)


@asynccontextmanager
async def controlled(folder: Path, **tables: Any) -> AsyncGenerator[Case, None]:
    async with running(folder / "home", **tables) as runtime:
        case = Case(runtime, folder)
        await case.add("app")
        yield case
