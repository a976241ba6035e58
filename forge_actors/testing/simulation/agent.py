"""The simulated node agent: one life of it, over the machine that outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.launch import Receipt
from forge_actors.testing.simulation.machine import Entry
from forge_actors.testing.simulation.messages import (
    Exited,
    Forget,
    Hello,
    Pause,
    Ready,
    Resume,
    Start,
    Started,
    Stop,
)

if TYPE_CHECKING:
    from forge_actors.domain.launch import Ending, LaunchOrder
    from forge_actors.testing.simulation.link import Link
    from forge_actors.testing.simulation.machine import Key, Process
    from forge_actors.testing.simulation.messages import Order, Report
    from forge_actors.testing.simulation.timers import Timer
    from forge_actors.testing.simulation.world import World

#: Longest grace of what is ended because the owner of a bound agent is gone.
OWNER_GRACE = 5.0


class Agent:
    """Starts and ends processes, and writes down how they ended before it tells."""

    def __init__(self, world: World) -> None:
        self.dead = False
        self.links: list[Link] = []
        self._world = world
        self._machine = world.machine
        self._link: Link | None = None
        self._epoch = 0
        self._bound = False
        self._running: dict[Key, Process] = {}
        self._endings: dict[Key, Ending] = {}
        self._budgets: dict[Key, Timer] = {}
        self._receipts: dict[Key, Receipt] = {}

    # -- the link --------------------------------------------------------------------

    def take(self, link: Link, message: Order | Report) -> None:
        if isinstance(message, Hello):
            self._greet(link, message)
        elif link is self._link:
            self._obey(message)

    def _greet(self, link: Link, hello: Hello) -> None:
        if hello.epoch < self._epoch:
            link.cut()
            return
        if self._link is not None and self._link is not link:
            self._link.cut()
        self._link, self._epoch, self._bound = link, hello.epoch, hello.bound
        running = {key: each.identity for key, each in self._running.items()}
        self._report(Ready(running, tuple(self._receipts.values())))

    def disconnected(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link = None
        if self._bound:
            for key, process in list(self._running.items()):
                self._stop(key, process, min(process.order.grace, OWNER_GRACE), "owner")
        self._leave_if_done()

    def _leave_if_done(self) -> None:
        if self._link is None and not self._running:
            self.die()

    def die(self) -> None:
        """End at once, as by SIGKILL; what it ran is nobody's now."""
        self.dead = True
        for timer in self._budgets.values():
            timer.cancel()
        for process in self._running.values():
            process.watcher = None
        for link in self.links:
            link.hang_up()
        self._world.agent_ended(self)

    def _report(self, report: Report) -> None:
        if self._link is not None and not self.dead:
            self._link.report(report)

    # -- orders ----------------------------------------------------------------------

    def _obey(self, message: Order | Report) -> None:
        match message:
            case Start(order):
                self._start(order)
            case Stop(key, grace, ending):
                process = self._running.get(key)
                if process is not None:
                    wanted = process.order.grace if grace is None else grace
                    self._stop(key, process, wanted, ending)
            case Pause(key) | Resume(key):
                process = self._running.get(key)
                if process is not None:
                    on = isinstance(message, Pause)
                    (process.pause if on else process.resume)()
            case Forget(key):
                self._receipts.pop(key, None)
                self._machine.journal.pop(key, None)

    def _start(self, order: LaunchOrder) -> None:
        key = (order.job, order.attempt)
        if key in self._running or key in self._receipts:
            return
        run = self._world.run_of(order)
        if run.missing:
            self._keep(self._receipt_of(order, "spawn", error="no such program"))
            return
        if not self._write("starting", key, Entry(order.fence)):
            return
        faults = self._world.faults
        faults.before("start process")
        if self.dead:
            return
        process = self._machine.start(order, run)
        process.watcher = self._ended
        self._running[key] = process
        faults.after("start process")
        entry = Entry(order.fence, process.identity)
        if self.dead or not self._write("started", key, entry):
            return
        budgets = [one for one in (order.wall, order.idle) if one is not None]
        if budgets:
            ending: Ending = "wall" if order.wall == min(budgets) else "idle"
            self._budgets[key] = self._world.timers.after(
                min(budgets), lambda: self._stop(key, process, order.grace, ending)
            )
        self._report(Started(key, process.identity))

    def _stop(self, key: Key, process: Process, grace: float, ending: Ending) -> None:
        if process.ended is None:
            self._endings.setdefault(key, ending)
            process.stop(grace)

    # -- ends ------------------------------------------------------------------------

    def _ended(self, process: Process) -> None:
        key, ended = process.key, process.ended
        assert ended is not None
        timer = self._budgets.pop(key, None)
        if timer is not None:
            timer.cancel()
        by_itself = ended.signal is None or not process.stopping
        ending = "exit" if by_itself else self._endings.get(key, "stop")
        receipt = Receipt(
            job=key[0],
            attempt=key[1],
            fence=process.order.fence,
            ending=ending,
            ended_at=ended.at,
            started_at=process.started_at,
            identity=process.identity,
            exit_code=ended.exit_code,
            signal=ended.signal,
            forced=ended.forced,
            paused_seconds=process.paused_seconds,
        )
        self._endings.pop(key, None)
        self._keep(receipt)
        self._running.pop(key, None)
        if not self.dead:
            self._leave_if_done()

    def _receipt_of(self, order: LaunchOrder, ending: Ending, *, error: str) -> Receipt:
        return Receipt(
            order.job,
            order.attempt,
            order.fence,
            ending,
            self._world.clock.now(),
            error=error,
        )

    def _keep(self, receipt: Receipt) -> None:
        """Write it down; then tell."""
        key = (receipt.job, receipt.attempt)
        entry = Entry(receipt.fence, receipt.identity, receipt)
        if self._write("receipt", key, entry):
            self._receipts[key] = receipt
            self._report(Exited(receipt))

    def _write(self, what: str, key: Key, entry: Entry) -> bool:
        """Add to the journal; False if the agent did not live through it."""
        faults, point = self._world.faults, f"journal {what}"
        faults.before(point)
        if self.dead:
            return False
        self._machine.journal[key] = entry
        faults.after(point)
        return not self.dead
