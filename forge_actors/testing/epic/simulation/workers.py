"""Workers of the simulation: processes that outlive the scheduler that started them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.admitted import Admitted, check_claim, check_state
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.phases import moment
from forge_actors.domain.epic.records import EngineState, RunKey, checked
from forge_actors.domain.epic.workers import NotStarted
from forge_actors.domain.errors import Refused
from forge_actors.testing.epic.simulation.plan import EPIC
from forge_actors.testing.epic.workers import NO_DIGEST

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import Phase
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.testing.epic.simulation.plan import Work
    from forge_actors.testing.epic.simulation.process import Process
    from forge_actors.testing.epic.simulation.world import World

FIRST_PID = 1000


class SimulatedWorker:
    """The port `Worker`, and the process behind it."""

    def __init__(
        self, world: World, process: Process, order: WorkerOrder, work: Work
    ) -> None:
        self._world = world
        self.order = order
        self.work = work
        #: Whose child it is.
        self.parent = process
        #: Whether its parent knows of it.
        self.followed = False
        self.issue = order.claim.run_key.issue_number
        self.pid = FIRST_PID + len(world.workers)
        self.start_time: int | None = self.pid
        self.controller = world.kernel.inherit(order.controller)
        self.run = world.kernel.inherit(order.run)
        self.controls = world.kernel.opened[order.controller]
        self.runs = world.kernel.opened[order.run]
        #: The lock of the issue is kept, by it or by something that it started.
        self.locked = True
        self.interrupts = 0
        self.status: int | None = None
        self._left = list(work.saves)
        self._over = trio.Event()

    def __repr__(self) -> str:
        return f"worker {self.pid} of #{self.issue}"

    @property
    def alive(self) -> bool:
        return not self._over.is_set()

    @property
    def log(self) -> str:
        return places.told(places.log(self.issue, self.order.claim.generation))

    def begin(self) -> None:
        """Look whether it is admitted, as a worker does before anything else."""
        claim, world = self.order.claim, self._world
        given = Admitted(
            EPIC, self.issue, claim.claim_id, claim.generation, claim.invocation_id
        )
        found = world.records.look(self.issue)
        try:
            there = check_claim(given, found.binding, found.claims)
            saved = None if found.saved is None else found.saved.data
            check_state(there, saved, NO_DIGEST, accept=False)
        except (Refused, StateError) as error:
            world.fail("a worker that is started is admitted", f"{self}: {error}")
        self._go_on()

    # -- its parent's handle ---------------------------------------------------------

    def interrupt(self) -> None:
        """See the port."""
        if self.parent.dead or not self.alive:
            return
        self.interrupts += 1
        self._world.tell(f"{self} is interrupted")
        self._world.referee.interrupted(self)
        if self.interrupts == self.work.obeys:
            phase = self._left[0][1] if self._left else None
            self._world.timers.after(0.01, lambda: self._stop(phase))

    async def wait(self) -> int | None:
        """See the port."""
        await self._over.wait()
        return self.status

    # -- its life --------------------------------------------------------------------

    def die(self, status: int | None) -> None:
        """End as it is; what it started may live a little longer."""
        if not self.alive:
            return
        world = self._world
        world.tell(f"{self} ends with {status}")
        self.status = status
        self.controller.end()
        if self.work.leaks and not world.calm:
            world.timers.after(self.work.leaks, self.let_go)
            world.did("something keeps the lock of an issue")
        else:
            self.let_go()
        self._over.set()
        world.people.work_ended(self)
        world.referee.look()

    def let_go(self) -> None:
        """Whatever it started ends."""
        self.locked = False
        self.run.end()

    def _stop(self, phase: Phase | None) -> None:
        if self.alive:
            if phase is not None:
                self._save(phase)
            self.die(130)

    def _go_on(self) -> None:
        timers = self._world.timers
        if self._left:
            timers.after(self._left[0][0], self._next)
        else:
            timers.after(self.work.rest, lambda: self.die(self.work.status))

    def _next(self) -> None:
        if not self.alive:
            return
        _, phase = self._left.pop(0)
        self._save(phase)
        if self.work.drains and self._is_asked_to_stop:
            self._world.did("a worker drains")
            self.die(0)
        else:
            self._go_on()

    @property
    def _is_asked_to_stop(self) -> bool:
        found = self._world.records.read_stop(EPIC)
        if found.request is None:
            return found.kind != "none"
        return found.request.invocation_id in (None, self.order.claim.invocation_id)

    def _save(self, phase: Phase) -> None:
        world, claim, at = self._world, self.order.claim, places.state(self.issue)
        if world.full:
            return
        found = world.records.look(self.issue).saved
        if found is None:
            place, run_id = self.order.repository.place, f"r-{claim.generation:08d}"
            url = f"https://{place.host}/{place.repo}/issues/{self.issue}"
        else:
            run_id, url = found.state.run_id, found.state.issue_url
        state = EngineState(
            run_key=RunKey(claim.run_key.repository_id, self.issue),
            issue_url=url,
            run_id=run_id,
            phase=phase,
            config_digest=NO_DIGEST,
            branch=f"forge/issue-{self.issue}",
            base_commit=None,
            tries={},
            updated_at=moment(world.moment, None if found is None else found.state),
        )
        world.files.write(at, checked(state))
        world.tell(f"{self} saves {phase}")


class SimulatedWorkers:
    """The port `Workers` of one scheduler."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def start(self, order: WorkerOrder) -> SimulatedWorker:
        """See the port."""
        world, process = self._world, self._process
        issue = order.claim.run_key.issue_number
        work = world.next_work(issue)
        if process.shared is not None:
            process.shared.began(issue)
        world.referee.starting(process, order)
        process.pass_point("start")
        await process.take(work.starts)
        if work.failure == "no-log":
            world.did("no log")
            raise NotStarted("a link is in its place", no_process=True)
        if work.failure == "nothing":
            world.did("no process")
            raise NotStarted("there is no memory left")
        worker = SimulatedWorker(world, process, order, work)
        world.workers.append(worker)
        world.tell(f"{worker} begins ({order.claim.kind})")
        worker.followed = work.failure is None
        world.referee.started(worker)
        worker.begin()
        process.pass_point("start", "after")
        await process.take(work.starts)
        if work.failure == "runs":
            world.did("a process although starting failed")
            raise NotStarted("it said so too late")
        return worker
