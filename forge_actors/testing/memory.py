"""A runtime without processes and without git, for tests of programs that embed one.

    async with open_memory_runtime(script) as runtime:
        job = await runtime.submit(make_repository(tmp_path / "app"), ["make"])
        assert (await job.wait()).state == "succeeded"

It is the real runtime, with its actors, its store and its decisions, on other edges: a
script plays the jobs, a folder is a repository, worktrees are remembered, and time is
trio's, so that a mock clock moves schedules, budgets and ageing too. Its launcher,
worktrees and clock keep the contract checks that the real ones keep.
"""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.domain.maintenance import CleanResult
from forge_actors.domain.worktrees import LeftLocks
from forge_actors.runtime.edges import Edges
from forge_actors.runtime.runtime import open_on
from forge_actors.testing.checkouts import FakeCheckouts, FakeSampler, FakeWatch
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.folders import FolderGit
from forge_actors.testing.scripted import ScriptedLauncher, succeed
from forge_actors.testing.wall_timer import FakeWallTimer
from forge_actors.testing.worktrees import FakeWorktrees

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from forge_actors.domain.maintenance import Books, CleanOrder
    from forge_actors.domain.ownership import Owner
    from forge_actors.runtime.handles import Runtime
    from forge_actors.runtime.settings import Settings
    from forge_actors.testing.scripted import Script

#: What a test does not want unless it says so: looks at checkouts read files in
#: threads, which a mock clock does not wait for, and there is nothing to clean up.
QUIET: dict[str, dict[str, Any]] = {
    "status": {"enabled": False},
    "maintenance": {"enabled": False},
}


class InMemory:
    """What in-memory runtimes stand on: its parts are there to be looked at, and to be
    changed while one runs. It outlives a runtime, so the next one finds what was saved
    in its `home`, a folder that need not be there yet."""

    def __init__(self, home: str | Path, script: Script = succeed) -> None:
        self.home = Path(home)
        self.script = script
        #: Programs that are not there, so that no job of theirs can begin.
        self.missing: set[str] = set()
        self.clock = FakeClock()
        self.timer = FakeWallTimer(self.clock)
        self.checkouts = FakeCheckouts()
        self.worktrees = FakeWorktrees()
        #: That of the runtime that was opened last.
        self.launcher = ScriptedLauncher(script)

    def open(
        self, settings: Settings | Mapping[str, Any] | None = None
    ) -> AbstractAsyncContextManager[Runtime]:
        """A runtime for the length of the block, see `open_runtime`.

        Of a mapping of settings those of `QUIET` are a part, if it does not say else.
        """
        if settings is None or not hasattr(settings, "limits"):
            settings = {**QUIET, **(settings or {})}
        return open_on(self._edges(), self.home, settings)

    def _edges(self) -> Edges:
        return Edges(
            clock=lambda: self.clock,
            launcher=self._open_launcher,
            git=FolderGit,
            worktrees=lambda: self.worktrees,
            locks=_NoLocks,
            sampler=lambda: FakeSampler(self.checkouts),
            watch=lambda: FakeWatch(self.checkouts),
            clean_up=_NothingToClean,
            timer=lambda: self.timer,
            gauge=_no_pressure,
        )

    @asynccontextmanager
    async def _open_launcher(
        self,
        home: Path,
        environment: Mapping[str, str] | None = None,
        *,
        owner: Owner | None = None,
        durable: bool = False,
        socket_path: str | None = None,
        files: int | None = None,
    ) -> AsyncGenerator[ScriptedLauncher, None]:
        self.launcher = ScriptedLauncher(
            self._play, missing=self.missing, owner=owner, now=self.clock.now
        )
        async with self.launcher.open():
            yield self.launcher

    async def _play(self, job: Any) -> Any:
        return await self.script(job)


@asynccontextmanager
async def open_memory_runtime(
    script: Script = succeed,
    settings: Settings | Mapping[str, Any] | None = None,
) -> AsyncGenerator[Runtime, None]:
    """An in-memory runtime for the length of the block, in a folder of its own.

    Raises:
        InvalidInput: a setting is not valid.
    """
    with tempfile.TemporaryDirectory(prefix="forge-actors-") as home:
        async with InMemory(home, script).open(settings) as runtime:
            yield runtime


class _NoLocks:
    def remove_left(self, folder: str, since: float, until: float) -> LeftLocks:
        return LeftLocks()


class _NothingToClean:
    async def run(self, order: CleanOrder, books: Books) -> CleanResult:
        return CleanResult(dry_run=order.request.dry_run)


def _no_pressure(_: Settings) -> Callable[[], str | None]:
    return lambda: None
