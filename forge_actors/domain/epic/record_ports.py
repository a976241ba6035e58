"""The port of an EPIC run to its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from forge_actors.domain.epic.records import StopRequest

if TYPE_CHECKING:
    from forge_actors.domain.epic.namespace import Namespace
    from forge_actors.domain.epic.ports import RunLock
    from forge_actors.domain.epic.records import (
        Assignment,
        Binding,
        Claim,
        Closed,
        EngineState,
        Moment,
        Scheduler,
        WorkerDiagnostics,
    )

#: `unparsable`: there is a file, and it is no request. `unreadable`: something is in
#: its place, and what it says cannot be known. Both are taken for a drain.
StopKind: TypeAlias = Literal["none", "request", "unparsable", "unreadable"]


class StopFound(Struct, frozen=True):
    """What is in the place of a stop request."""

    kind: StopKind
    request: StopRequest | None = None
    #: Why it could not be read.
    detail: str = ""


class Listing(Struct, frozen=True):
    """The issues that have a namespace, and what is there that can be none."""

    issues: tuple[int, ...] = ()
    #: Lines for people; with one of them nothing may be admitted.
    problems: tuple[str, ...] = ()


class Namespaces(Protocol):
    """The records of the EPICs of one repository, strictly read.

    A StateError is raised when something is not what it has to be, or cannot be read or
    written. What was written is durable, and is the old or the new whole record
    whenever the machine stops. Who writes to an issue shows its lock: a lock that is
    another's or was let go is a bug (RuntimeError), and nothing is written.
    """

    # -- issues ----------------------------------------------------------------------

    def issues(self) -> Listing:
        """Which issues something is kept of. It never fails: see its problems."""

    def binding(self, issue: int) -> Binding | None:
        """Whose a namespace is; it is written once, so that no lock is needed."""

    def look(self, issue: int) -> Namespace:
        """The same as `read`, for who only shows it: it may change meanwhile."""

    def read(self, lock: RunLock, issue: int) -> Namespace:
        """All that is kept of an issue. It never fails: see its problem."""

    def bind(self, lock: RunLock, binding: Binding) -> None:
        """Say whose a namespace is, once; a second time is refused."""

    def assign(self, lock: RunLock, assignment: Assignment) -> None:
        """Write what the next worker of an issue is to do, in place of what was."""

    def open_claim(
        self, lock: RunLock, claim: Claim, supersede: Claim | None = None
    ) -> None:
        """Write the next claim, then close the one that it takes over from.

        It is refused unless it is the next one and goes on from the state that is there
        now, of the same issue as the binding. When this fails after the first write,
        the next reader takes the later claim for the one that counts.
        """

    def close_claim(self, lock: RunLock, claim: Claim, closing: Closed) -> Claim:
        """Close an open claim, once; its worker's diagnostics are kept."""

    def note_worker(
        self, lock: RunLock, claim: Claim, worker: WorkerDiagnostics
    ) -> Claim:
        """Keep what people may want to know of its process in an open claim.

        A lock that was handed off is still shown here, until it is let go of.
        """

    # -- the run ---------------------------------------------------------------------

    def read_scheduler(self, epic: int) -> Scheduler | None:
        """What is told of the last run of an EPIC; None: there was none."""

    def write_scheduler(self, scheduler: Scheduler) -> None:
        """Tell of this run."""

    def move_scheduler_aside(self, epic: int, now: Moment) -> str | None:
        """Keep what is in its place under another name, of that moment; the name, or
        None if nothing is there."""

    def read_stop(self, epic: int) -> StopFound:
        """What somebody asks of a run. It never fails, and waits for nobody."""

    def write_stop(self, epic: int, request: StopRequest) -> None:
        """Ask for the end of a run."""

    def remove_stop(self, epic: int) -> bool:
        """Take back what was asked; False if nothing was."""

    # -- other runs ------------------------------------------------------------------

    def standalone(self) -> EngineState | None:
        """How far a run of a single issue is that belongs to no EPIC, if there is
        one."""
