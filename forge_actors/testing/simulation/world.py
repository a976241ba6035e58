"""The world of one run: what outlives the service, and what everybody shares."""

from __future__ import annotations

import random
import traceback
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.jobs import TERMINAL
from forge_actors.runtime.ids import IdSource
from forge_actors.testing.checkouts import FakeCheckouts
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.simulation.agent import Agent
from forge_actors.testing.simulation.books import Books, Violation
from forge_actors.testing.simulation.clients import Clients
from forge_actors.testing.simulation.faults import Fault, Injector
from forge_actors.testing.simulation.machine import Machine
from forge_actors.testing.simulation.outages import Providers
from forge_actors.testing.simulation.places import Places
from forge_actors.testing.simulation.referee import Referee
from forge_actors.testing.simulation.rows import SimulatedRows
from forge_actors.testing.worktrees import Checkouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.capacity import Limits
    from forge_actors.testing.simulation.machine import Run
    from forge_actors.testing.simulation.plan import Plan
    from forge_actors.testing.simulation.service import Service
    from forge_actors.testing.simulation.timers import Timers


def describe(error: BaseException) -> str:
    """The first failure in a group, with where it was."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{f.filename}:{f.lineno}" for f in frames if "forge_actors" in f.filename]
    return f"{error!r} at {' < '.join(reversed(ours))}"


class Ids(IdSource):
    """Ids that are the same in every run: numbers, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def make(self, now: float) -> str:
        self._made += 1
        return f"{self._made:019d}"


class World:
    """Everything of one run but the service that happens to run."""

    def __init__(self, plan: Plan, timers: Timers, *, scope: trio.CancelScope) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)  # noqa: S311 - chance, no secret
        self.timers = timers
        timers.failed = self.broke
        self.clock = FakeClock()
        self.clock.now()
        self.ids = Ids()
        self.trace: list[tuple[object, ...]] = []
        self.faults = Injector(plan.faults, self._crash)
        #: What is durable.
        self.rows = SimulatedRows()
        self.places = Places()
        self.providers = Providers(plan.outages, self.clock)
        #: Branches and worktrees on the disk.
        self.checkouts = Checkouts()
        #: What git says of the repositories: each process adds a file to its own.
        self.statuses = FakeCheckouts()
        self.books = Books()
        self.machine = Machine(self)
        self.referee = Referee(self)
        self.agent: Agent | None = None
        self._agents = 0
        #: The service that was started last, and the one that takes requests.
        self.living: Service | None = None
        self.service: Service | None = None
        self.pressure: str | None = None
        #: Repositories whose folder is gone.
        self.gone: set[str] = set()
        #: What the file of settings says, and the limits that hold.
        self.settings = plan.settings
        self.limits: Limits
        self.repository_workers = 0
        #: When everybody surely knows of them.
        self.limits_known_at = 0.0
        self.bound = plan.bound
        #: Ids of repositories by name.
        self.repositories: dict[str, str] = {}
        #: The id that each request was given first, and what it runs after.
        self.first_ids: dict[str, str] = {}
        self.after_ids: dict[str, list[str]] = {}
        self.clients = Clients(self)
        self._changed = trio.Event()
        #: The first thing that does not hold.
        self.violation: Violation | None = None
        self._scope = scope

    @property
    def epoch(self) -> int:
        """That of the runtime that may write."""
        return 0 if self.rows.owner is None else self.rows.owner.epoch

    @property
    def unseen(self) -> list[str]:
        """Repositories of which something else is saved than what git would say."""
        return [
            repo
            for repo, status in self.statuses.status.items()
            if self.rows.repositories[repo].removed_at is None
            and (
                (look := self.rows.looks.get(repo)) is None
                or look.dirty is not None
                or look.status != status
            )
        ]

    @property
    def now(self) -> float:
        return self.timers.now()

    def note(self, *what: object) -> None:
        """Add to the trace."""
        self.trace.append((self.timers.now(), *what))

    def fail(self, rule: str, what: str) -> None:
        """Say what does not hold; the run ends with the first."""
        self.failed(Violation(rule, what))

    def failed(self, violation: Violation) -> None:
        if self.violation is None:
            self.violation = violation
            self.note("violation", str(violation))
            self._scope.cancel()

    def broke(self, error: BaseException) -> None:
        """Something failed that nothing should make fail."""
        if self.violation is None:
            self.failed(Violation("nothing fails", describe(error)))

    def run_of(self, name: str, attempt: int) -> Run:
        """What an attempt of the job with this name in the plan does."""
        runs = self.plan.runs[name]
        return runs[min(attempt, len(runs)) - 1]

    # -- waiting ---------------------------------------------------------------------

    def changed(self) -> None:
        """Something that somebody may wait for happened."""
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()

    async def until_served(self) -> Service:
        await self.until(lambda: self.service is not None)
        assert self.service is not None
        return self.service

    async def until_ended(self, job: str) -> None:
        """Wait until the end of a job is durable."""
        jobs = self.rows.jobs
        await self.until(lambda: jobs[job].state in TERMINAL)

    def serving(self, service: Service | None) -> None:
        """This one takes requests now, or none does."""
        self.service = service
        self.note("serves", service is not None)
        if service is not None:
            self.clients.connected(service)
        self.changed()

    # -- crashes ---------------------------------------------------------------------

    def _crash(self, fault: Fault) -> None:
        self.note("crash", fault.kind, fault.when, fault.point)
        if fault.kind == "service":
            self.crash_service()
        elif self.agent is not None:
            self.agent.die()

    def crash_service(self) -> None:
        if self.living is not None:
            self.living.die()

    def cut_power(self) -> None:
        """The machine stops, and starts again."""
        self.note("power")
        self.crash_service()
        if self.agent is not None:
            self.agent.die()
        self.machine.lose_power()

    def start_agent(self) -> Agent:
        self._agents += 1
        self.agent = Agent(self, self._agents)
        self.note("agent starts")
        return self.agent

    def agent_ended(self, agent: Agent) -> None:
        if self.agent is agent:
            self.agent = None
            self.note("agent ends")
