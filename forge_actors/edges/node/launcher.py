"""The launcher: the service's side of the node agent.

One agent is the parent of all job processes of a home. One that is bound to this
process ends everything when we go away, however we go. A durable one goes on, and the
next service finds it. When an agent dies itself, what it had started is found and
ended, every attempt that may have begun gets a receipt that says "lost", and a new
agent takes its place.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node import adoption, lasting, wire
from forge_actors.edges.node.agent_process import AgentProcess, HungUp
from forge_actors.edges.node.attempt import Attempt
from forge_actors.edges.node.finding import find_agent
from forge_actors.edges.node.forgetting import Forgotten
from forge_actors.edges.node.held_back import HeldBack
from forge_actors.edges.node.journals import Archive
from forge_actors.edges.node.outbox import Outbox
from forge_actors.edges.node.successors import Successors
from forge_actors.edges.node.sweep import still_alive
from forge_actors.edges.node.watching import Watches

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from msgspec import Struct

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity
    from forge_actors.domain.ownership import Owner
    from forge_actors.edges.node.attempt import Key

#: Seconds it may take to end all jobs; their graces are capped at 5 s then.
_CLOSE_LIMIT = 15.0
#: Seconds for the last messages to an agent that goes on without us.
_DETACH_LIMIT = 2.0
#: Seconds in which an agent that hung up is gone, if it has ended.
_HANG_UP_LIMIT = 1.0

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_launcher(
    home: Path,
    environment: Mapping[str, str] | None = None,
    *,
    owner: Owner | None = None,
    durable: bool = False,
    socket_path: str | None = None,
    files: int | None = None,
) -> AsyncGenerator[NodeLauncher, None]:
    """Find the node agent of a home, or start one.

    Every job gets `environment`, and what its own order adds to it or replaces. Leaving
    ends every job and then the agent. A durable one goes on instead, unless `end_all`
    was called; it listens at `socket_path`, by default `agent.sock` of the home. Jobs
    may have `files` open at once, by default as many as this process.

    Raises:
        LauncherDown: there is none and none can be started, or the one there is cannot
            be talked to.
    """
    home = home.absolute()
    listen = (socket_path or str(home / "agent.sock")) if durable else None
    hello = wire.hello(environment or {}, owner, bound=not durable, files=files)
    agent = await find_agent(home, hello)
    if agent is None:
        agent = await AgentProcess.start(home, hello, listen)
    launcher = NodeLauncher(home, agent, hello, listen)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(launcher.run)
        nursery.start_soon(launcher.orphans.run)
        try:
            yield launcher
        finally:
            launcher.close()


class NodeLauncher(HeldBack):
    """Starts jobs through the agent; implements `domain.ports.Launcher`."""

    def __init__(
        self, home: Path, agent: AgentProcess, hello: wire.Hello, listen: str | None
    ) -> None:
        super().__init__()
        self._home = home
        self._agent = agent
        self._hello = hello
        self._listen = listen
        self._forgotten = Forgotten(self.send)
        #: Every attempt until it is forgotten.
        self._attempts: dict[Key, Attempt] = {}
        #: What dead agents wrote down.
        self._archive = Archive()
        self._watches = Watches(self.send)
        self._outbox = Outbox()
        self.orphans = lasting.Orphans(home)
        self._scope = trio.CancelScope(shield=True)
        self._closed = False
        #: Leaving is to end nothing, and the agent with its jobs goes on.
        self._detaches = listen is not None
        #: When the agent last said something, in `trio.current_time()`.
        self._heard_at = trio.current_time()
        #: Why nothing can be started any more.
        self._down: str | None = None
        self._given_up = trio.Event()
        self._successors = Successors(partial(AgentProcess.start, home, hello, listen))
        self._replacing = trio.CancelScope()
        # What an earlier service left is to be adopted.
        for event in agent.news:
            if isinstance(event, wire.Exited):
                key = (event.receipt.job, event.receipt.attempt)
                self._attempts[key] = Attempt(self.send, key, event.receipt.fence)
        self._meet(agent)

    @property
    def agent_pid(self) -> int:
        return self._agent.pid

    @property
    def heeds_room(self) -> bool:
        """Whether the `room` of an order is heeded: an older agent does not."""
        return self._agent.ready.rooms

    def launch(
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> Attempt:
        key = (order.job, order.attempt)
        known = self._attempts.get(key)
        if descriptors is not None and (known or self._down is not None):
            descriptors.close()
        if known is not None:
            return known
        if self._down is not None:
            raise LauncherDown(self._down)
        if order.lasting or descriptors is not None:
            self._attempts[key] = attempt = Attempt(self.send, key, order.fence)
            lasting.launch(attempt, order, descriptors, self._agent, self._outbox)
            return attempt
        line = wire.start_line(order)
        attempt = Attempt(self.send, key, order.fence, line)
        self._attempts[key] = attempt
        self._outbox.queue(line)
        return attempt

    async def reconcile(
        self, reserved: Mapping[Key, ProcessIdentity | None], *, same_boot: bool
    ) -> None:
        """Find out what became of the attempts that the store says may run.

        After it `adopt` knows each of them that began or may have begun. What runs and
        is none of these is ended. Call it once, before anything is launched.
        """
        known = self._attempts
        for key in known.keys() - reserved.keys():
            self._drop(known[key])
        missing = {k: v for k, v in reserved.items() if k not in known}
        found = await adoption.find_ended(
            self._home, self._agent.journal, missing, self._archive, same_boot
        )
        for key, receipt in found.receipts.items():
            known[key] = Attempt(self.send, key, receipt.fence)
            known[key].settle_end(receipt)
        for key, one in found.going_on.items():
            known[key] = Attempt(self.send, key, one.record.fence)
        self.orphans.take(known, found.going_on)

    def _drop(self, attempt: Attempt) -> None:
        """No job of the store is at this attempt."""
        if attempt.receipt is not None:
            self.forget(*attempt.key)
            return
        _log.warning("job %s, attempt %d runs and is not known here", *attempt.key)
        attempt.unwanted = True
        attempt.stop()

    def adopt(self, job: str, attempt: int) -> Attempt | None:
        return self._attempts.get((job, attempt))

    @property
    def heard_at(self) -> float:
        return self._heard_at

    def ping(self) -> None:
        self.send(wire.Ping())

    def forget(self, job: str, attempt: int) -> None:
        known = self._attempts.get((job, attempt))
        if known is not None and known.receipt is not None:
            del self._attempts[known.key]
            if self._archive.needed:
                self._archive.forget(known.key)
            self._forgotten.add(known.key)

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        return still_alive(identities)

    async def wait_down(self) -> NoReturn:
        """Wait until it has given up: too many agents died, or one is out of reach.

        Raises:
            LauncherDown: always.
        """
        await self._given_up.wait()
        raise LauncherDown(self._down)

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        running = self._attempts.get((job, attempt))
        if running is None or running.receipt is not None:
            await trio.lowlevel.checkpoint()
            return
        await self._watches.wait(job, attempt, known)

    def send(self, message: Struct) -> None:
        """Send a message, at once if the socket takes it."""
        self._outbox.queue(wire.encode(message))

    def end_all(self) -> None:
        """Let leaving end every job and the agent, also a durable one."""
        self._detaches = False

    def close(self) -> None:
        """Begin the end: nothing new starts; the agent ends what runs, or goes on."""
        self._forgotten.tell()
        self._closed = True
        self._down = self._down or "the launcher is closed"
        if self._listen is not None and not self._detaches:
            self.send(wire.Quit())
        limit = _DETACH_LIMIT if self._detaches else _CLOSE_LIMIT
        self._scope.deadline = trio.current_time() + limit
        self._outbox.finish()
        self.orphans.close()
        self._replacing.cancel()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Serve one agent after the other until `close`; cancelling does not end it.

        Not, because an agent that is not listened to leaves attempts without receipt.
        `close` sets the limit.
        """
        lives_on = False
        try:
            with self._scope:
                while not (lives_on := await self._converse()):
                    if self._closed:
                        await self._agent.wait()
                        break
                    if self._listen is not None:
                        found = await self._find_again()
                        if lives_on := self._given_up.is_set():
                            break
                        if found:
                            continue
                    await self._bury()
                    if not await self._replace():
                        break
        finally:
            if lives_on or (self._closed and self._detaches):
                self._agent.let_go()
                for attempt in self._attempts.values():
                    attempt.let_go()
            else:
                with trio.CancelScope(shield=True):
                    await self._bury()

    def _meet(self, agent: AgentProcess) -> None:
        """Take in what an agent says at first; repeat what it may not have heard."""
        self._agent = agent
        known = self._attempts
        for each in agent.ready.running + agent.ready.held:
            key = (each.job, each.attempt)
            if key not in known:
                known[key] = Attempt(self.send, key, each.fence)
                known[key].stops = each.stops
            if each.identity is not None:
                known[key].settle_start(each.identity)
        for event in agent.news:
            self._take(event)
        lines = [line for each in known.values() for line in each.said()]
        self._outbox.begin(lines + self._watches.said())

    async def _converse(self) -> bool:
        """Until one side hangs up; whether the agent goes on without us."""
        parted = False

        @trio.lowlevel.enable_ki_protection
        async def write() -> None:
            nonlocal parted
            await self._outbox.write(self._agent.socket)
            if not self._closed:
                return
            if self._detaches:
                parted = True
                nursery.cancel_scope.cancel()
            else:
                # Not before: what was forgotten last would be told again next time.
                self._agent.hang_up()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            try:
                while True:
                    events = await self._agent.read()
                    self._heard_at = trio.current_time()
                    for event in events:
                        self._take(event)
            except HungUp:
                pass
            except LauncherDown as error:
                self._lose_touch(str(error))
            nursery.cancel_scope.cancel()
        return parted or self._given_up.is_set()

    def _take(self, event: wire.Event) -> None:
        if isinstance(event, wire.Exited):
            receipt = event.receipt
            attempt = self._attempts.get((receipt.job, receipt.attempt))
            if attempt is None:  # the agent has not heard that it is forgotten
                self._forgotten.add((receipt.job, receipt.attempt))
            else:
                attempt.settle_end(receipt)
                if attempt.unwanted:
                    self.forget(*attempt.key)
        elif isinstance(event, wire.Started):
            attempt = self._attempts.get((event.job, event.attempt))
            if attempt is not None:
                attempt.settle_start(self._agent.identity(event))
        elif isinstance(event, wire.Output):
            self._watches.hear(event)
        elif isinstance(event, wire.Error):
            self._hear_problem(event)
        elif isinstance(event, wire.Unwelcome):
            self._lose_touch(f"the node agent serves us no more: {event.reason}")

    def _lose_touch(self, reason: str) -> None:
        """Give up an agent that lives: what it runs is nobody's to decide here."""
        self._down = reason
        self._given_up.set()

    async def _find_again(self) -> bool:
        """Whether it only hung up on us, and serves us again."""
        with trio.move_on_after(_HANG_UP_LIMIT):
            await self._agent.wait()
            return False
        self._agent.socket.close()
        try:
            agent = await find_agent(self._home, self._hello)
        except LauncherDown as error:
            self._lose_touch(str(error))
            return False
        if agent is not None:
            self._meet(agent)
        return agent is not None

    async def _bury(self) -> None:
        """End what the agent left, and give every attempt it had a receipt."""
        # Whatever was launched later waits for the next agent.
        unsettled = [each for each in self._attempts.values() if each.is_of_agent]
        await self._agent.end()
        journal = self._agent.journal
        written, going_on = await adoption.bury(unsettled, journal, last=self._closed)
        self.orphans.take(self._attempts, going_on)
        self._archive.keep(journal, self._attempts.keys() & written)
        self._watches.end(self._attempts)

    async def _replace(self) -> bool:
        """Have the next agent, unless too many were needed lately."""
        with trio.CancelScope() as self._replacing:
            if self._closed:
                return False
            try:
                self._meet(await self._successors.next())
            except LauncherDown as error:
                self._give_up(str(error))
                return False
            return True
        return False  # closed meanwhile

    def _give_up(self, reason: str) -> None:
        """Refuse from now on; what waited for the next agent certainly never ran."""
        self._down = reason
        for attempt in self._attempts.values():
            if attempt.is_of_agent:
                attempt.settle_end(adoption.without_process(attempt, reason))
        self._given_up.set()
