"""One repository with an EPIC in memory, and schedulers of it one after the other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.actors import epic
from forge_actors.actors.epic_context import Context
from forge_actors.domain.epic.namespace import Namespace
from forge_actors.domain.epic.records import (
    ConfigSummary,
    Scheduler,
    StopRequest,
)
from forge_actors.domain.epic.workers import OwnSlots
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.epic.graph import ScriptedGraph
from forge_actors.testing.epic.locks import FakeKernel, FakeLocks
from forge_actors.testing.epic.root import MemoryRoot
from forge_actors.testing.epic.workers import NO_DIGEST, ScriptedWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from forge_actors.domain.epic.ports import Root
    from forge_actors.domain.epic.records import EpicRef
    from forge_actors.domain.epic.stopping import End
    from forge_actors.domain.epic.views import EpicView

EPIC = 7


class World:
    """What is left when a scheduler ends, and the scheduler that runs now."""

    def __init__(self) -> None:
        self.graph = ScriptedGraph(EPIC)
        self.kernel = FakeKernel()
        self.files = MemoryRoot()
        self.root: Root = self.files
        self.workers = ScriptedWorkers(self.kernel, self.files)
        self.clock = FakeClock()
        self.lines: list[str] = []
        #: What a service would have in its history.
        self.told: list[tuple[str, dict[str, object]]] = []
        self.limit, self.poll, self.grace = 3, 60.0, 30.0
        self.satisfied_by: tuple[str, ...] = ("completed",)
        self.before_start: Callable[[EpicRef], None] = lambda _epic: None
        #: After each pass.
        self.passed: Callable[[], None] = lambda: None
        self._signalled: Callable[[], None]
        self.view: Callable[[], EpicView | None]
        self.handlers = 0
        self.locks: FakeLocks
        self.context: Context
        self._invocations = 0
        self._tokens = 0

    # -- a scheduler -----------------------------------------------------------------

    def make(self) -> Context:
        """The surroundings of the next scheduler, a process of its own."""
        self._invocations += 1
        self.locks = FakeLocks(self.kernel, pid=self._invocations)
        self.context = Context(
            graph=self.graph,
            locks=self.locks,
            namespaces=FileNamespaces(self.root),
            workers=self.workers,
            slots=OwnSlots(),
            clock=self.clock,
            config=ConfigSummary(self.limit, self.poll, self.grace, NO_DIGEST),
            satisfied_by=self.satisfied_by,
            worktree=lambda issue: f"/repo/worktrees/{issue}",
            token=self._token,
            out=self.lines.append,
            tell=lambda kind, data: self.told.append((kind, data)),
            signals=self._signals,
            watch=self._watch,
            before_start=self._before_start,
            passed=self._passed,
        )
        return self.context

    async def run(self) -> End:
        """One scheduler, from its start to its end."""
        return await epic.run(self.make())

    def kill(self) -> None:
        """What the kernel does when the scheduler is killed."""
        self.locks.die()

    def signal(self) -> None:
        """Send a signal to the scheduler that runs."""
        self._signalled()

    def stop(
        self, mode: Literal["drain", "now"], invocation: str | None = None
    ) -> None:
        """Ask for the end, as `epic stop` does."""
        request = StopRequest(mode=mode, invocation_id=invocation)
        self.records.write_stop(EPIC, request)
        self.context.bell.ring()

    @property
    def records(self) -> FileNamespaces:
        return FileNamespaces(self.files)

    @property
    def scheduler(self) -> Scheduler:
        found = self.records.read_scheduler(EPIC)
        assert found is not None
        return found

    def namespace(self, issue: int) -> Namespace:
        return self.records.look(issue)

    def closings(self, issue: int) -> list[str | None]:
        """How the claims of an issue have ended; None for one that is open."""
        return [
            None if claim.closed is None else claim.closed.classification
            for claim in self.namespace(issue).claims
        ]

    def said(self, *words: str) -> list[str]:
        """The lines that have all of these words in them."""
        return [line for line in self.lines if all(word in line for word in words)]

    def _before_start(self, ref: EpicRef) -> None:
        self.before_start(ref)

    def _passed(self, view: Callable[[], EpicView | None]) -> None:
        self.view = view
        self.passed()

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:010d}"

    @contextmanager
    def _signals(self, signalled: Callable[[], None]) -> Iterator[None]:
        self._signalled = signalled
        self.handlers += 1
        try:
            yield
        finally:
            self.handlers -= 1

    async def _watch(
        self,
        _epic: EpicRef,
        _changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        task_status.started()
        await trio.sleep_forever()
