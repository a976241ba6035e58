"""What a measurement is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.peer_venv import PeerPython, named, own_venv
from benchmarks.repositories import make_repositories

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.service import Service

#: Jobs that whatever is to run W1 has run before: a service runs for days, so the cold
#: caches of its first second are nobody's daily speed. The same for all that compare.
WARM_UP = 200


@dataclass(frozen=True)
class Sample:
    """One measured number. `rate` is one that the C reference can be compared with."""

    name: str
    value: float | None
    unit: str
    note: str = ""
    rate: bool = False


@dataclass
class Bench:
    """The sizes of this run, and the folder in which everything is made.

    Nothing in it is deleted before the end: on some file systems a file is slow to
    make while many were deleted shortly before.
    """

    folder: Path
    jobs: int = 1000
    warm_up: int = WARM_UP
    at_once: int = 4
    repositories: int = 20
    deep: int = 100_000
    starts: int = 200
    #: Jobs that wait for the end of a limit.
    parked: int = 200
    messages: int = 4000
    batch: int = 10_000
    callers: int = 50
    calls: int = 100
    shell_starts: int = 40
    output_bytes: int = 256 * 1024 * 1024
    awake: int = 1000
    restart_queued: int = 100_000
    restart_finished: int = 10_000
    finished: int = 100_000
    spin_seconds: float = 60.0
    registered: int = 10_000
    #: Jobs in whose midst everything is killed.
    killed: int = 1000
    looked_at: int = 1000
    #: Of one EPIC.
    children: int = 100
    idle_seconds: float = 30.0
    idle_readers: int = 1000
    active_readers: int = 100
    #: Of the repository that worktrees are made of.
    files: int = 10_000
    peer_python: str | None = None
    #: What a service said of itself in its status; for the head of the document.
    seen: dict[str, object] = field(default_factory=dict)

    @cached_property
    def checkouts(self) -> list[Path]:
        return make_repositories(self.folder / "repositories", self.repositories)

    @cached_property
    def peers(self) -> PeerPython:
        """The interpreter that has the peers, made at its first use."""
        return named(self.peer_python) if self.peer_python else own_venv(self.folder)

    def shrink(self) -> None:
        """Sizes that show whether everything works, and no more."""
        self.jobs, self.warm_up, self.deep = min(self.jobs, 200), 40, 2000
        self.starts, self.messages, self.shell_starts = 20, 1000, 5
        self.output_bytes = 8 * 1024 * 1024
        self.batch, self.calls, self.awake = 1000, 5, 100
        self.restart_queued, self.restart_finished = 2000, 200
        self.registered, self.idle_seconds = 100, 5.0
        self.looked_at = 200
        self.parked = 20
        self.finished, self.spin_seconds = 20_000, 2.0
        self.files, self.killed = 200, 40
        self.idle_readers, self.active_readers = 50, 10

    def saw(self, service: Service) -> None:
        self.seen = {
            "synchronous": service.synchronous,
            "agent_pid": service.agent_pid,
        }
