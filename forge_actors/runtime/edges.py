"""What a runtime stands on: this machine, or what a test gives in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from forge_actors.edges.cleanup.process import CleanUpProgram
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.git.left_locks import GitLocks
from forge_actors.edges.git.status import GitSampler
from forge_actors.edges.git.worktrees import GitWorktrees
from forge_actors.edges.machine import Clock as MachineClock
from forge_actors.edges.machine import PressureGauge
from forge_actors.edges.mounts import shared_with_others
from forge_actors.edges.node.launcher import open_launcher
from forge_actors.edges.wall_timer import SystemWallTimer
from forge_actors.edges.watch import FolderWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from typing import NoReturn

    from forge_actors.domain.launch import ProcessIdentity
    from forge_actors.domain.ownership import Owner
    from forge_actors.domain.ports import (
        CleanUp,
        Clock,
        FileWatch,
        Git,
        Launcher,
        Locks,
        StatusSampler,
        WallTimer,
        Worktrees,
    )
    from forge_actors.runtime.settings import Settings

    class ClosableWatch(FileWatch, Protocol):
        """A watch that can be begun anew."""

        def close(self) -> None: ...

    class JobLauncher(Launcher, Protocol):
        """The launcher of one runtime, from its start to its end."""

        @property
        def agent_pid(self) -> int:
            """The process that starts the jobs."""

        @property
        def heeds_room(self) -> bool:
            """Whether orders may have a `room`."""

        @property
        def held_back(self) -> Sequence[str]:
            """Why starts wait for the system, one for each."""

        async def reconcile(
            self,
            reserved: Mapping[tuple[str, int], ProcessIdentity | None],
            *,
            same_boot: bool,
        ) -> None:
            """Find out what became of the attempts that the store says may run."""

        async def wait_down(self) -> NoReturn:
            """Wait until nothing can be started any more.

            Raises:
                LauncherDown: always.
            """

        def end_all(self) -> None:
            """Let leaving end every job."""

    class OpenLauncher(Protocol):
        """Opens the launcher of a home, see `open_launcher`."""

        def __call__(
            self,
            home: Path,
            environment: Mapping[str, str] | None = None,
            *,
            owner: Owner | None = None,
            durable: bool = False,
            socket_path: str | None = None,
            files: int | None = None,
        ) -> AbstractAsyncContextManager[JobLauncher]: ...


class Edges(NamedTuple):
    """Makers of the edges, one for each port."""

    clock: Callable[[], Clock]
    launcher: OpenLauncher
    git: Callable[[], Git]
    worktrees: Callable[[], Worktrees]
    locks: Callable[[], Locks]
    sampler: Callable[[], StatusSampler]
    watch: Callable[[], ClosableWatch]
    clean_up: Callable[[], CleanUp]
    timer: Callable[[], WallTimer]
    #: Says why only a few jobs may start now, or None.
    gauge: Callable[[Settings], Callable[[], str | None]]


def _gauge(settings: Settings) -> PressureGauge:
    return PressureGauge(
        min_free_memory_mb=settings.pressure.min_free_memory_mb,
        max_load_per_cpu=settings.pressure.max_load_per_cpu,
    )


def _locks() -> GitLocks:
    return GitLocks(shared_with_others)


MACHINE = Edges(
    clock=MachineClock,
    launcher=open_launcher,
    git=GitProgram,
    worktrees=GitWorktrees,
    locks=_locks,
    sampler=GitSampler,
    watch=FolderWatch,
    clean_up=CleanUpProgram,
    timer=SystemWallTimer,
    gauge=_gauge,
)
