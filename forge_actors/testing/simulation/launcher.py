"""The simulated launcher: the service's side of the simulated node agent."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.edges.node import wire
from forge_actors.testing.simulation.attempt import Attempt
from forge_actors.testing.simulation.link import Link

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from msgspec import Struct

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.ownership import Owner
    from forge_actors.testing.simulation.machine import Key
    from forge_actors.testing.simulation.world import World

#: Seconds to start an agent, to find one that runs, and until one is asked again.
START_SECONDS = 0.03
FIND_SECONDS = 0.003
AGAIN_SECONDS = 0.2

_receipt = msgspec.json.Decoder(Receipt)


class SimulatedLauncher:
    """The port `Launcher` of one life of the service."""

    def __init__(self, world: World, owner: Owner, *, bound: bool) -> None:
        self.dead = False
        self.links: list[Link] = []
        self.heard_at = trio.current_time()
        self._world = world
        self.machine = world.machine
        self._hello = wire.hello({}, owner, bound=bound)
        #: What runs is to end with the launcher.
        self._ends_all = bound
        self._attempts: dict[Key, Attempt] = {}
        self._link: Link | None = None
        #: Receipts that are still to come on a new connection.
        self._outstanding = 0
        self._heard: set[Key] = set()
        #: Attempts whose agent is gone: its journal is ours to clear.
        self._buried: set[Key] = set()
        self._ready = False
        self._broken = trio.Event()
        self._greeted = trio.Event()
        self._reconciled = False
        self._unwelcome = False
        #: Attempts that no job is at: they are ended, and forgotten then.
        self._strays: set[Key] = set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[SimulatedLauncher, None]:
        """Serve while the block lasts; leaving a bound one ends what runs.

        Raises:
            LauncherDown: a later runtime has the home.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run)
            await self._greeted.wait()
            if not self._unwelcome:
                try:
                    yield self
                finally:
                    with trio.CancelScope(shield=True):
                        await self._close()
            nursery.cancel_scope.cancel()
        if self._unwelcome:
            raise LauncherDown("a runtime that came later owns this home")

    async def _close(self) -> None:
        if self._ends_all:
            self.send(wire.Quit())
            for attempt in list(self._attempts.values()):
                await attempt.exited()
        self.die()

    def end_all(self) -> None:
        """Let leaving end what runs."""
        self._ends_all = True

    # -- the port --------------------------------------------------------------------

    def launch(
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> Attempt:
        if descriptors is not None:
            descriptors.close()  # no simulated process can have any
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
        self.send(wire.start(order))
        return attempt

    def adopt(self, job: str, attempt: int) -> Attempt | None:
        return self._attempts.get((job, attempt))

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        running = {each.identity for each in self._world.machine.processes.values()}
        return tuple(each for each in identities if each in running)

    def forget(self, job: str, attempt: int) -> None:
        known = self._attempts.get((job, attempt))
        if known is not None and known.receipt is not None:
            del self._attempts[known.key]
            self._world.note("forget", job, attempt)
            self._forget(known.key)

    def _forget(self, key: Key) -> None:
        if key in self._buried:
            self._buried.discard(key)
            self._world.machine.journal.pop(key, None)
        else:
            self.send(wire.Forget([key]))

    def ping(self) -> None:
        self.send(wire.Ping())

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        running = self._attempts.get((job, attempt))
        if running is None:
            await trio.lowlevel.checkpoint()
        else:
            await running.exited()

    async def reconcile(
        self, reserved: Mapping[Key, ProcessIdentity | None], *, same_boot: bool
    ) -> None:
        """Find out what became of the attempts of earlier runtimes."""
        await self._greeted.wait()
        for key in (*self._world.machine.journal, *reserved):
            if key not in self._attempts:
                self._bury(key)
            if key not in self._attempts and not same_boot:
                # Nobody can know: what was written may be lost with the power.
                attempt = self._attempts[key] = Attempt(self, key, 0)
                attempt.settle_end(self._lost(key, 0, None))
        for key, attempt in list(self._attempts.items()):
            if key in reserved:
                continue
            self._strays.add(key)
            if attempt.receipt is None:
                attempt.stop()
            else:
                # Its end was saved, but nobody told the agent.
                self.forget(*key)
        self._reconciled = True

    # -- the conversation ------------------------------------------------------------

    def send(self, message: Struct) -> None:
        if self._ready and self._link is not None and not self.dead:
            self._link.order(msgspec.to_builtins(message))

    async def run(self) -> None:
        """Talk to one agent after the other."""
        while not self._unwelcome:
            await self._connect()
            if self._unwelcome:
                break
            await self._broken.wait()
            if not self._ready:
                await trio.sleep(AGAIN_SECONDS)
            self._ready = False
        self._greeted.set()

    async def _connect(self) -> None:
        world = self._world
        agent = world.agent
        if agent is None:
            await trio.sleep(START_SECONDS)
            if world.epoch > self._hello.epoch:
                # Only the owner of a home starts an agent in it.
                self._unwelcome = True
                return
            self._bury_all()
            agent = world.start_agent()
        else:
            await trio.sleep(FIND_SECONDS)
        self._broken = trio.Event()
        if agent.dead:
            self._broken.set()
            return
        self._link = Link(world, self, agent)
        self._link.order(msgspec.to_builtins(self._hello))

    def take(self, link: Link, line: bytes) -> None:
        if link is not self._link:
            return
        self.heard_at = trio.current_time()
        [event] = wire.decode_lines(line)
        match event:
            case wire.Ready(running=running, held=held, outstanding=outstanding):
                self._meet(running, held, outstanding)
            case wire.Started():
                attempt = self._attempts.get((event.job, event.attempt))
                if attempt is not None:
                    boot_id = self._world.machine.boot_id
                    pid, ticks = event.pid, event.start_ticks
                    attempt.settle_start(ProcessIdentity(boot_id, pid, ticks))
            case wire.Exited(receipt):
                self._ended(receipt)
            case wire.Unwelcome(code):
                # Another runtime has the home: nothing is ours to start any more.
                self._unwelcome = self._unwelcome or code == "epoch"
            case wire.Error(job, problem):
                self._world.note("problem", job, problem)
            case _:
                pass

    def disconnected(self, link: Link) -> None:
        if link is self._link:
            self._broken.set()

    def _meet(
        self, running: list[wire.Known], held: list[wire.Known], outstanding: int
    ) -> None:
        """The first thing a new connection says."""
        self._ready = True
        self._outstanding = outstanding
        self._heard = set()
        for known in (*running, *held):
            key = (known.job, known.attempt)
            self._heard.add(key)
            attempt = self._attempts.setdefault(key, Attempt(self, key, known.fence))
            if known.identity is not None:
                attempt.settle_start(known.identity)
        if not outstanding:
            self._catch_up()

    def _ended(self, receipt: Receipt) -> None:
        key = (receipt.job, receipt.attempt)
        self._heard.add(key)
        attempt = self._attempts.get(key)
        if attempt is None and not self._reconciled:
            attempt = self._attempts[key] = Attempt(self, key, receipt.fence)
        if attempt is not None:
            attempt.settle_end(receipt)
            if key in self._strays:
                self.forget(*key)
        else:
            # It was forgotten, but the agent was not told.
            self.send(wire.Forget([key]))
        if self._outstanding:
            self._outstanding -= 1
            if not self._outstanding:
                self._catch_up()

    def _catch_up(self) -> None:
        """Say again what may not have arrived."""
        for attempt in list(self._attempts.values()):
            if attempt.receipt is not None:
                continue
            if attempt.key not in self._heard:
                if attempt.order is None:
                    self._bury(attempt.key)
                    continue
                self.send(wire.start(attempt.order))
            if attempt.pause_asked is not None:
                wanted = wire.Pause if attempt.pause_asked else wire.Resume
                self.send(wanted(*attempt.key))
            if attempt.stop_asked is not None:
                self.send(attempt.stop_asked)
        self._greeted.set()

    # -- when an agent is gone -------------------------------------------------------

    def _bury_all(self) -> None:
        journal = self._world.machine.journal
        for key, attempt in list(self._attempts.items()):
            if key in journal:
                self._buried.add(key)
                if attempt.receipt is None:
                    self._bury(key)
        if self._reconciled:
            for key in journal.keys() - self._attempts:
                del journal[key]

    def _bury(self, key: Key) -> None:
        """What an agent that is gone knew of an attempt, and the end of its tree."""
        line = self._world.machine.journal.get(key)
        if line is None:
            return
        entry: dict[str, Any] = msgspec.json.decode(line)
        if entry.get("record") == "held":
            self._never_began(key)
            return
        attempt = self._attempts.setdefault(key, Attempt(self, key, entry["fence"]))
        self._buried.add(key)
        if "record" not in entry:
            attempt.settle_end(_receipt.decode(line))
            return
        found = entry.get("identity")
        identity = None if found is None else msgspec.convert(found, ProcessIdentity)
        attempt.settle_end(self._lost(key, entry["fence"], identity))

    def _lost(self, key: Key, fence: int, identity: ProcessIdentity | None) -> Receipt:
        return Receipt(
            *key,
            fence,
            "lost",
            self._world.clock.wall(),
            identity=identity,
            error="the node agent ended unexpectedly",
            remaining=self._world.machine.sweep(key),
        )

    def _never_began(self, key: Key) -> None:
        """Its agent held it back, and is gone."""
        del self._world.machine.journal[key]
        attempt = self._attempts.get(key)
        if attempt is not None:
            now = self._world.clock.wall()
            attempt.settle_end(Receipt(*key, attempt.fence, "stop", now))

    def die(self) -> None:
        """Its service is gone."""
        self.dead = True
        for link in self.links:
            link.hang_up()
        for attempt in self._attempts.values():
            attempt.abandon()
