"""What a measurement is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.repositories import make_repositories

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.service import Service


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
    at_once: int = 4
    repositories: int = 20
    deep: int = 100_000
    starts: int = 200
    batch: int = 10_000
    callers: int = 50
    calls: int = 100
    registered: int = 1000
    idle_seconds: float = 30.0
    peer_python: str | None = None
    #: What a service said of itself in its status; for the head of the document.
    seen: dict[str, object] = field(default_factory=dict)

    @cached_property
    def checkouts(self) -> list[Path]:
        return make_repositories(self.folder / "repositories", self.repositories)

    @cached_property
    def crowded(self) -> Path:
        return make_repositories(self.folder / "crowded", 1, "crowded")[0]

    def saw(self, service: Service) -> None:
        self.seen = {
            "synchronous": service.synchronous,
            "agent_pid": service.agent_pid,
        }
