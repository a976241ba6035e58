"""One scheduler as a process: what it is given, how it is killed, how it ends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import trio

from forge_actors.actors import epic
from forge_actors.actors.epic_context import Bell, Context
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import Busy, LockHeld, StateError
from forge_actors.domain.epic.records import ConfigSummary
from forge_actors.domain.epic.workers import OwnSlots
from forge_actors.testing.epic.locks import FakeLocks
from forge_actors.testing.epic.simulation.plan import EPIC
from forge_actors.testing.epic.simulation.points import LOCK, look_of, point_of
from forge_actors.testing.epic.simulation.reads import SimulatedGraph
from forge_actors.testing.epic.simulation.records import Records
from forge_actors.testing.epic.simulation.slots import SharedSlots
from forge_actors.testing.epic.simulation.workers import SimulatedWorkers
from forge_actors.testing.epic.workers import NO_DIGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Entry
    from forge_actors.domain.epic.records import EpicRef
    from forge_actors.domain.epic.stopping import End
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.testing.epic.locks import FakeRunLock
    from forge_actors.testing.epic.simulation.points import When
    from forge_actors.testing.epic.simulation.world import World

T = TypeVar("T")
STOP = places.stop(EPIC)


class Killed(BaseException):
    """In place of the signal that nothing survives."""


class Process:
    """A scheduler, from its start to its end; then it has an outcome."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pid = len(world.processes) + 1
        self.began_at = world.now
        self.dead = False
        self.end: End | None = None
        #: None while it runs.
        self.outcome: str | None = None
        #: Called by a signal, once there is a handler.
        self.signalled: Callable[[], None] | None = None
        self.locks = SimulatedLocks(world, self)
        self.invocation: str | None = None
        #: An issue that a run of its own keeps from it.
        self.standalone: int | None = None
        self._scope = trio.CancelScope()
        self._passes = 0
        self._changed: Callable[[], None] = lambda: None
        plan, bell = world.plan, Bell()
        #: Slots that others have a say in, if they have.
        self.shared = None
        if plan.grants is not None:
            self.shared = SharedSlots(world, self.pid, plan.grants, bell.ring)
        self._context = Context(
            bell=bell,
            graph=SimulatedGraph(world, self),
            locks=self.locks,
            namespaces=Records(GuardedRoot(world, self), world.memory),
            workers=SimulatedWorkers(world, self),
            slots=OwnSlots() if self.shared is None else self.shared,
            clock=world.clock,
            config=ConfigSummary(plan.limit, plan.poll, plan.grace, NO_DIGEST),
            satisfied_by=plan.satisfied_by,
            worktree=lambda issue: f"/repo/worktrees/{issue}",
            token=world.token,
            out=self._out,
            signals=self._signals,
            watch=self._watch,
            before_start=self._before_start,
            passed=self._passed,
        )

    def __repr__(self) -> str:
        return f"scheduler {self.pid}"

    @property
    def runs(self) -> bool:
        return self.outcome is None and not self.dead

    async def run(self) -> None:
        """Until it has ended, whichever way."""
        world = self._world
        world.processes.append(self)
        world.tell(f"{self} begins")
        outcome = "killed"
        try:
            with self._scope:
                self.end = await epic.run(self._context)
                outcome = self.end.reason or "refused at its start"
        except LockHeld:
            outcome = "another has it"
        except StateError:
            outcome = "its record was not written"
        except BaseException as error:
            # What it still does once it is dead, it does not do.
            if not self.dead:
                world.broke(error)
                raise
        self.outcome = "killed" if self.dead else outcome
        if self.dead:
            self.end = None
        world.tell(f"{self} ends: {self.outcome}")
        world.did(f"end: {self.outcome}")
        world.referee.ended(self)

    # -- what happens to it ----------------------------------------------------------

    def kill(self) -> None:
        """End at once: no line of it runs any more that has an effect."""
        if not self.runs:
            return
        self.dead = True
        self._world.tell(f"{self} is killed")
        self.locks.die()
        self._scope.cancel()

    def signal(self) -> None:
        """A signal kills it until it is handled."""
        self._world.tell(f"{self} gets a signal")
        if self.signalled is None:
            self.kill()
        elif not self.dead:
            self._world.referee.told_to_stop(self, "signal")
            self.signalled()

    def request_changed(self) -> None:
        """Somebody wrote or removed a request."""
        if not self.dead:
            self._changed()

    # -- what it passes --------------------------------------------------------------

    def check(self) -> None:
        """Nothing is done by the dead."""
        if self.dead:
            raise Killed

    def pass_point(self, point: str, when: When = "before") -> str | None:
        """Count it; the fault of it, if it is not the end."""
        self.check()
        injector = self._world.injector
        kind = injector.before(point) if when == "before" else injector.after(point)
        if kind == "kill":
            self.kill()
            raise Killed
        return kind

    async def take(self, seconds: float) -> None:
        """Let time pass, in which it may be killed."""
        if seconds:
            await trio.sleep(seconds)
        else:
            await trio.lowlevel.checkpoint()
        self.check()

    # -- its surroundings ------------------------------------------------------------

    def _out(self, text: str) -> None:
        if not self.dead:
            self._world.tell(f"{self}: {text}")

    def _before_start(self, _epic: EpicRef) -> None:
        """With `--force`: what cannot be read is moved aside."""
        records = self._context.namespaces
        try:
            records.read_scheduler(EPIC)
        except StateError:
            records.move_scheduler_aside(EPIC, self._world.moment)

    def _passed(self, view: Callable[[], EpicView | None]) -> None:
        self.pass_point("pass")
        self._world.referee.passed(self)
        self._passes += 1
        if self._passes % 8 == 0:
            view()
        self.pass_point("pass", "after")

    @contextmanager
    def _signals(self, signalled: Callable[[], None]) -> Iterator[None]:
        self.signalled = signalled
        try:
            yield
        finally:
            self.signalled = None

    async def _watch(
        self,
        _epic: EpicRef,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        self._changed = changed
        task_status.started()
        await trio.sleep_forever()


class SimulatedLocks(FakeLocks):
    """The locks of one process, and how its tries went."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(world.kernel, pid=process.pid)
        self._world = world
        self._process = process

    def take_run(self, issue: int) -> FakeRunLock:
        self._process.check()
        referee = self._world.referee
        if self._process.pass_point(LOCK) == "fail":
            referee.tried(self._process, issue, "failed")
            raise StateError("the lock cannot be looked at")
        try:
            lock = super().take_run(issue)
        except Busy:
            referee.tried(self._process, issue, "busy")
            raise
        referee.tried(self._process, issue, "taken")
        return lock


class GuardedRoot:
    """The port `Root` of one scheduler: each write is judged, and may be its last."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._files = world.files
        self._process = process

    def read(self, place: Place, limit: int) -> bytes | None:
        fails = self._process.pass_point(look_of(place)) == "fail"
        if place == STOP:
            self._world.referee.looks_at_request(self._process, fails=fails)
        if fails:
            self._fail(place, "input/output error")
        return self._files.read(place, limit)

    def entries(self, place: Place) -> list[Entry] | None:
        if self._process.pass_point("look at folder") == "fail":
            self._fail(place, "input/output error")
        return self._files.entries(place)

    def append(self, place: Place, limit: int) -> int:
        raise AssertionError("a scheduler writes to the end of no file")

    def write(self, place: Place, content: bytes) -> None:
        self._do(place, content, lambda: self._files.write(place, content))

    def create(self, place: Place, content: bytes) -> None:
        self._do(place, content, lambda: self._files.create(place, content))

    def remove(self, place: Place) -> bool:
        if place not in self._files.files and place not in self._files.odd:
            return False
        return self._do(place, None, lambda: self._files.remove(place))

    def move(self, place: Place, name: str) -> bool:
        return self._do(place, None, lambda: self._files.move(place, name), moves=True)

    def _fail(self, place: Place, why: str) -> NoReturn:
        self._world.referee.was_failed(self._process, place)
        raise StateError(f"{places.told(place)}: {why}")

    def _do(
        self,
        place: Place,
        content: bytes | None,
        do: Callable[[], T],
        *,
        moves: bool = False,
    ) -> T:
        process, world = self._process, self._world
        process.check()
        before = self._files.files.get(place)
        point = "scheduler aside" if moves else point_of(place, before, content)
        if process.pass_point(point) == "fail" or world.full:
            self._fail(place, "no space left on device")
        world.referee.writes(process, point, place, content)
        done = do()
        if len(place) > 3 and place[:2] == places.ISSUES:
            world.kernel.used.add(int(place[2]))
        process.pass_point(point, "after")
        return done
