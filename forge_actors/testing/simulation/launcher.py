"""The simulated launcher: the service's side of the simulated node agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import Receipt
from forge_actors.testing.simulation.link import Link
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
    from collections.abc import Mapping

    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity
    from forge_actors.testing.simulation.messages import Key, Order, Report
    from forge_actors.testing.simulation.world import World

#: Seconds to start an agent, and to find one that runs.
START_SECONDS = 0.03
FIND_SECONDS = 0.003


class Attempt:
    """One attempt; see `domain.ports.RunningAttempt`."""

    def __init__(self, launcher: SimulatedLauncher, key: Key, fence: int) -> None:
        self.key = key
        self.fence = fence
        self.order: LaunchOrder | None = None
        self.identity: ProcessIdentity | None = None
        self.receipt: Receipt | None = None
        #: What was asked of it, to be said again on the next connection.
        self.stop_asked: Stop | None = None
        self.pause_asked = False
        self._launcher = launcher
        self._settled = trio.Event()
        self._ended = trio.Event()

    async def started(self) -> ProcessIdentity | None:
        await self._settled.wait()
        return self.identity

    async def exited(self) -> Receipt:
        if self.receipt is None and not self._launcher.dead:
            await self._ended.wait()
        if self.receipt is None:
            # Its service crashed: nobody will ever look at this.
            return Receipt(*self.key, self.fence, "lost", 0.0)
        return self.receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        if self.receipt is None:
            self.stop_asked = Stop(self.key, grace, ending)
            self._launcher.send(self.stop_asked)

    def pause(self) -> None:
        if self.receipt is None:
            self.pause_asked = True
            self._launcher.send(Pause(self.key))

    def resume(self) -> None:
        if self.receipt is None:
            self.pause_asked = False
            self._launcher.send(Resume(self.key))

    def settle_start(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
        self._settled.set()

    def settle_end(self, receipt: Receipt) -> None:
        if self.receipt is None:
            self.receipt = receipt
            if not self._settled.is_set():
                self.settle_start(receipt.identity)
            self._ended.set()

    def abandon(self) -> None:
        """Its service crashed: let its waiters go."""
        self._settled.set()
        self._ended.set()


class SimulatedLauncher:
    """The port `Launcher` of one life of the service."""

    def __init__(self, world: World, epoch: int, *, bound: bool) -> None:
        self.dead = False
        self.links: list[Link] = []
        self.heard_at = trio.current_time()
        self._world = world
        self._epoch = epoch
        self._bound = bound
        self._attempts: dict[Key, Attempt] = {}
        self._link: Link | None = None
        self._ready = False
        self._broken = trio.Event()
        self._greeted = trio.Event()
        self._reconciled = False

    # -- the port --------------------------------------------------------------------

    def launch(self, order: LaunchOrder) -> Attempt:
        key = (order.job, order.attempt)
        known = self._attempts.get(key)
        if known is not None:
            return known
        if self.dead:
            raise LauncherDown("the service has crashed")
        attempt = Attempt(self, key, order.fence)
        attempt.order = order
        self._attempts[key] = attempt
        self._world.note("launch", *key, order.fence)
        self.send(Start(order))
        return attempt

    def adopt(self, job: str, attempt: int) -> Attempt | None:
        return self._attempts.get((job, attempt))

    def forget(self, job: str, attempt: int) -> None:
        known = self._attempts.get((job, attempt))
        if known is not None and known.receipt is not None:
            del self._attempts[known.key]
            self._world.note("forget", job, attempt)
            self.send(Forget(known.key))

    def ping(self) -> None:
        if self._ready:
            self.heard_at = trio.current_time()

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        running = self._attempts.get((job, attempt))
        if running is not None:
            await running.exited()

    async def reconcile(
        self, reserved: Mapping[Key, ProcessIdentity | None], *, same_boot: bool
    ) -> None:
        """Find out what became of the attempts of earlier runtimes."""
        await self._greeted.wait()
        for key in self._world.machine.journal.keys() | reserved.keys():
            if key not in self._attempts:
                self._bury(key)
        for key in sorted(self._attempts.keys() - reserved.keys()):
            # Its end was saved, but nobody told the agent.
            self.forget(*key)
        self._reconciled = True

    # -- the conversation ------------------------------------------------------------

    def send(self, message: Order) -> None:
        if self._ready and self._link is not None and not self.dead:
            self._link.order(message)

    async def run(self) -> None:
        """Talk to one agent after the other."""
        while True:
            await self._connect()
            await self._broken.wait()
            self._ready = False

    async def _connect(self) -> None:
        world = self._world
        agent = world.agent
        if agent is None:
            await trio.sleep(START_SECONDS)
            self._bury_all()
            agent = world.start_agent()
        else:
            await trio.sleep(FIND_SECONDS)
        self._broken = trio.Event()
        if agent.dead:
            self._broken.set()
            return
        self._link = Link(world, self, agent)
        self._link.order(Hello(self._epoch, self._bound))

    def take(self, link: Link, message: Order | Report) -> None:
        if link is not self._link:
            return
        self.heard_at = trio.current_time()
        match message:
            case Ready(running, receipts):
                self._catch_up(running, receipts)
            case Started(key, identity):
                attempt = self._attempts.get(key)
                if attempt is not None:
                    attempt.settle_start(identity)
            case Exited(receipt):
                self._ended(receipt)

    def disconnected(self, link: Link) -> None:
        if link is self._link:
            self._broken.set()

    def _catch_up(
        self, running: Mapping[Key, ProcessIdentity], receipts: tuple[Receipt, ...]
    ) -> None:
        """Learn what happened meanwhile, and say again what may not have arrived."""
        self._ready = True
        for receipt in receipts:
            key = (receipt.job, receipt.attempt)
            if not self._reconciled and key not in self._attempts:
                self._attempts[key] = Attempt(self, key, receipt.fence)
            self._ended(receipt)
        for key, identity in running.items():
            fence = self._world.machine.journal[key].fence
            known = self._attempts.setdefault(key, Attempt(self, key, fence))
            known.settle_start(identity)
        for attempt in list(self._attempts.values()):
            if attempt.receipt is not None:
                continue
            if attempt.order is not None and attempt.key not in running:
                self.send(Start(attempt.order))
            elif attempt.key not in running:
                self._bury(attempt.key)
                continue
            if attempt.pause_asked:
                self.send(Pause(attempt.key))
            if attempt.stop_asked is not None:
                self.send(attempt.stop_asked)
        if self._reconciled:
            for key in sorted(self._world.machine.journal.keys() - self._attempts):
                self.send(Forget(key))
        self._greeted.set()

    def _ended(self, receipt: Receipt) -> None:
        attempt = self._attempts.get((receipt.job, receipt.attempt))
        if attempt is not None:
            attempt.settle_end(receipt)
        else:
            # It was forgotten, but the agent was not told.
            self.send(Forget((receipt.job, receipt.attempt)))

    # -- when an agent is gone -------------------------------------------------------

    def _bury_all(self) -> None:
        for key, attempt in list(self._attempts.items()):
            if attempt.receipt is None and key in self._world.machine.journal:
                self._bury(key)

    def _bury(self, key: Key) -> None:
        """What an agent that is gone knew of an attempt, and the end of its tree."""
        entry = self._world.machine.journal.get(key)
        if entry is None:
            return
        attempt = self._attempts.setdefault(key, Attempt(self, key, entry.fence))
        if entry.receipt is not None:
            attempt.settle_end(entry.receipt)
            return
        remaining = self._world.machine.sweep(key)
        attempt.settle_end(
            Receipt(
                *key,
                entry.fence,
                "lost",
                self._world.clock.now(),
                identity=entry.identity,
                error="the node agent ended unexpectedly",
                remaining=remaining,
            )
        )

    def die(self) -> None:
        """Its service crashed."""
        self.dead = True
        for link in self.links:
            link.hang_up()
        for attempt in self._attempts.values():
            attempt.abandon()
