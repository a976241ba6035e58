"""The ports of an EPIC run to its workers, and to the slots that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.epic.graph import RepositoryNode
    from forge_actors.domain.epic.records import Claim

#: Begins of what a claim says that had no worker.
NO_LOG = "its log cannot be opened: "
NO_WORKER = "its worker was not started: "


class WorkerOrder(Struct, frozen=True):
    """What a worker is told; the descriptors are those of the two locks."""

    repository: RepositoryNode
    claim: Claim
    controller: int
    run: int


class NotStarted(ForgeError):
    """The worker was not started."""

    code = "WORKER_NOT_STARTED"

    def __init__(self, message: str, *, no_process: bool = False) -> None:
        super().__init__(message)
        #: Nothing can have been started: it failed before.
        self.no_process = no_process


class Worker(Protocol):
    """A process that works on one issue. It is told to stop, and never ended."""

    @property
    def pid(self) -> int: ...

    @property
    def start_time(self) -> int | None:
        """Clock ticks after the boot, where the system tells."""

    @property
    def log(self) -> str:
        """Where its output is."""

    def interrupt(self) -> None:
        """Send it SIGINT, through its handle. One that has ended is left alone."""

    async def wait(self) -> int | None:
        """Its exit status, minus the signal where that ended it; None: not known."""


class Workers(Protocol):
    async def start(self, order: WorkerOrder) -> Worker:
        """Start a worker that inherits both locks and nothing else.

        What it leaves open of the descriptors is the caller's to close.

        Raises:
            NotStarted: it failed, or seems to have.
        """


class Slots(Protocol):
    """Who says which issue may begin now."""

    def want(self, issues: Sequence[int]) -> None:
        """These may begin, the first of them first, and no others."""

    def granted(self) -> Sequence[int]:
        """Those of them that have what they need."""

    def refuse(self, issue: int, reason: str) -> None:
        """One that was granted does not begin after all."""

    def lost(self) -> Sequence[tuple[int, str]]:
        """Issues that will have no worker in this run, and why; each is told once."""


class OwnSlots:
    """Nobody else has a say in it: every issue may begin that there is a slot for."""

    def __init__(self) -> None:
        self._wanted: Sequence[int] = ()

    def want(self, issues: Sequence[int]) -> None:
        self._wanted = issues

    def granted(self) -> Sequence[int]:
        return self._wanted

    def refuse(self, issue: int, reason: str) -> None:
        """It is wanted again when it is ready again."""

    def lost(self) -> Sequence[tuple[int, str]]:
        return ()
