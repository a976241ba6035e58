"""The world of one run: what outlives every scheduler, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.timestamps import timestamp
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.epic.graph import BEGIN, ScriptedGraph
from forge_actors.testing.epic.locks import CONTROLLER, FakeKernel
from forge_actors.testing.epic.root import MemoryRoot
from forge_actors.testing.epic.simulation.people import People
from forge_actors.testing.epic.simulation.plan import CALM, EPIC
from forge_actors.testing.epic.simulation.points import Injector
from forge_actors.testing.epic.simulation.records import Records
from forge_actors.testing.epic.simulation.referee import Referee
from forge_actors.testing.simulation.books import Violation

if TYPE_CHECKING:
    import trio

    from forge_actors.domain.epic.records import Record
    from forge_actors.testing.epic.simulation.plan import Plan, Work
    from forge_actors.testing.epic.simulation.points import Fault
    from forge_actors.testing.epic.simulation.process import Process
    from forge_actors.testing.epic.simulation.workers import SimulatedWorker
    from forge_actors.testing.simulation.timers import Timers


class World:
    """One repository on one machine, and the server that it is on."""

    def __init__(self, plan: Plan, timers: Timers, scope: trio.CancelScope) -> None:
        self.plan = plan
        self.timers = timers
        timers.failed = self.broke
        self._scope = scope
        self.trace: list[tuple[float, str]] = []
        self.violation: Violation | None = None
        self.kernel = FakeKernel()
        self.files = MemoryRoot()
        self.memory: dict[tuple[type[Record], bytes], Record] = {}
        self.records = Records(self.files, self.memory)
        self.graph = ScriptedGraph(EPIC)
        self.clock = FakeClock(BEGIN)
        self.injector = Injector(plan.faults)
        self.injector.tell = self._tell_fault
        #: All that ever began, in their order.
        self.workers: list[SimulatedWorker] = []
        #: One after the other; the last one may still run.
        self.processes: list[Process] = []
        #: What has come to pass, for the coverage.
        self.deeds: set[str] = set()
        #: Nothing goes wrong any more, and workers do what they are there for.
        self.calm = False
        self.people = People(self)
        self.referee = Referee(self)
        #: The disk takes nothing.
        self.full = False
        self._works = {issue: list(works) for issue, works in plan.works.items()}
        self._tokens = 0

    @property
    def now(self) -> float:
        return self.timers.now()

    @property
    def moment(self) -> str:
        return timestamp(self.clock.wall())

    @property
    def process(self) -> Process | None:
        """The scheduler that runs, if one does."""
        last = self.processes[-1] if self.processes else None
        return last if last is not None and last.outcome is None else None

    @property
    def alive(self) -> list[SimulatedWorker]:
        return [worker for worker in self.workers if worker.alive]

    @property
    def controlled(self) -> bool:
        return CONTROLLER in self.kernel.held

    def token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:010d}"

    def next_work(self, issue: int) -> Work:
        """What the next worker of an issue does."""
        if self.calm:
            return CALM
        works = self._works.get(issue, [CALM])
        return works.pop(0) if len(works) > 1 else works[0]

    # -- what is told ----------------------------------------------------------------

    def tell(self, text: str) -> None:
        self.trace.append((self.now, text))

    def did(self, deed: str) -> None:
        """Something that runs must reach has come to pass."""
        self.deeds.add(deed)

    def fail(self, rule: str, what: str) -> None:
        """Something that must hold does not: the run ends with the first of these."""
        if self.violation is None:
            self.violation = Violation(rule, what)
            self.tell(f"VIOLATION {self.violation}")
        self._scope.cancel()

    def broke(self, error: BaseException) -> None:
        """Something failed that nobody expected to."""
        self.fail("nothing fails", f"{type(error).__name__}: {error}")

    def _tell_fault(self, fault: Fault) -> None:
        self.tell(f"fault: {fault}")
