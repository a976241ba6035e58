"""One life of the simulated service: the real actors over the simulated edges."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import trio

from forge_actors.actors import supervisor, supervisor_messages
from forge_actors.actors.isolating import Isolating
from forge_actors.domain.changes import Noted, SettingsChanged
from forge_actors.domain.errors import MailboxClosed, StoreFailed, WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.scopes import repository_of
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.in_force import in_force
from forge_actors.runtime.orders import OrderMaker
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.worktree_orders import WorktreeOrders
from forge_actors.testing.simulation.agents import SimulatedAgents
from forge_actors.testing.simulation.launcher import SimulatedLauncher
from forge_actors.testing.simulation.sampler import SimulatedLooking
from forge_actors.testing.simulation.store import SimulatedStore
from forge_actors.testing.simulation.worktrees import SimulatedWorktrees

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors import repository_messages
    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.supervisor_messages import RepositoryMailbox
    from forge_actors.domain.capacity import Offer
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.waiting import Waiting
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.agents import Agents
    from forge_actors.runtime.settings import Settings
    from forge_actors.testing.clock import FakeClock
    from forge_actors.testing.simulation.world import World

A = TypeVar("A")

#: Seconds that a grant may be on its way to its repository.
ON_ITS_WAY = 0.001
#: No file is ever read or written there.
HOME = Path("/simulated-home")


class RuntimeClock:
    """The port `Clock` of one runtime: it begins with the wall clock as it is."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._ahead = clock.ahead()

    def now(self) -> float:
        return self._clock.now() + self._ahead

    def wall(self) -> float:
        return self._clock.wall()

    def ahead(self) -> float:
        return self._clock.ahead() - self._ahead


class Service:
    """A runtime as `runtime.runtime` wires it, until it stops or crashes."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.living = self
        self.dead = False
        self.settings: Settings = world.settings
        self.scope = trio.CancelScope()
        self._actors = trio.CancelScope()
        #: It has ended, or another one is to be started beside it.
        self.over = trio.Event()
        self.clock = RuntimeClock(world.clock)
        limits = self.settings.repository_limits()
        self.store = SimulatedStore(world, limits, self.clock)
        world.referee.starts(self.clock.now())
        process = ProcessIdentity(world.machine.boot_id, 1, world.epoch + 1)
        last = self.store.durable.owner
        self._same_boot = last is None or last.process.boot_id == process.boot_id
        instance = f"service-{world.epoch + 1}"
        owner = self.store.take_over(instance, process, "simulated", self.clock.now())
        self.epoch = owner.epoch
        self.worktrees = SimulatedWorktrees(world)
        self.looking = SimulatedLooking(world, self.store, self.clock)
        self.launcher = SimulatedLauncher(world, owner, bound=world.bound)
        self.mailbox: Mailbox[supervisor_messages.Message]
        self.clients: trio.Nursery
        self._ended = trio.Event()
        self._stopped: StopReason | None = None

    async def run(self) -> None:
        """Serve until it is stopped, crashes, or another one has taken over."""
        world = self._world
        try:
            with self.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.store.run)
                    nursery.start_soon(self.launcher.run)
                    nursery.start_soon(self._until_fenced)
                    # Its manager starts it again if it cannot start or was fenced.
                    with suppress(StoreFailed, WriterFenced):
                        await self._start(nursery)
                        await self._serve()
                    nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if not (self.dead or self.store.fenced.is_set()):
                raise
            # What crashed may do what it will; and an actor that cannot save fails.
            cancelled = group.split(Exception)[1]
            if cancelled is not None:
                raise cancelled from None
        finally:
            self.launcher.die()
            self.dead = self.store.dead = self.worktrees.dead = True
            self.over.set()
            world.note("service ends", self.epoch)

    async def _serve(self) -> None:
        world = self._world
        async with trio.open_nursery() as self.clients:
            if self.dead:
                return  # it crashed, and has not noticed
            world.serving(self)
            await self._ended.wait()
            self._leave()
            self.clients.cancel_scope.cancel()
        # The disk may take nothing; then it waits, as the real one.
        await self.store.save([]).wait()

    def _leave(self) -> None:
        if self._world.service is self:
            self._world.serving(None)

    async def _until_fenced(self) -> None:
        """End when another runtime owns the home, as `runtime.parts` does."""
        await self.store.fenced.wait()
        self._leave()
        self._actors.cancel()

    def die(self) -> None:
        """Crash: from here on nothing of it has any effect."""
        if not self.dead:
            self.dead = self.store.dead = self.worktrees.dead = True
            self.launcher.die()
            self._leave()
            self.scope.cancel()

    def stop(self, reason: StopReason) -> None:
        """Begin an orderly stop."""
        if self._stopped is None:
            self._stopped = reason
            self._tell(supervisor_messages.Stop(reason))

    # -- the start, as that of the runtime -------------------------------------------

    async def _start(self, nursery: trio.Nursery) -> None:
        world, store = self._world, self.store
        now = self.clock.now()
        event = Event("runtime_started", now, data={"pid": self.epoch})
        store.save([Noted(event), Noted(in_force(self.settings, now))])
        self._hold_limits(self.settings)
        reserved = {(job.id, job.attempt): None for job in store.reserved}
        await self.launcher.reconcile(reserved, same_boot=self._same_boot)
        rows, agents = store.durable, SimulatedAgents()
        context = supervisor.Context(
            limits=self.settings.token_limits(),
            store=store,
            launcher=self.launcher,
            clock=self.clock,
            pressure=lambda: world.pressure,
            make_order=OrderMaker(
                HOME,
                store,
                lambda: 1 << 20,
                WorktreeOrders(
                    HOME,
                    self.clock,
                    lambda: self.settings,
                    rows.repositories.get,
                    self._name_of,
                ),
                agents=agents.order,
            ),
            isolating=Isolating(store, self.worktrees, self.clock),
            gone=lambda repo: "its folder is gone" if repo in world.gone else None,
            lasting=not world.bound,
            unclaimed={},
            last_dispatch={
                repo.id: min(repo.last_dispatch, now)
                for repo in rows.repositories.values()
            },
            busy=store.busy,
            accounts=tuple(rows.accounts.values()),
            policy=rows.policy,
            pauses=tuple(
                pause
                for pause in rows.pauses.values()
                if repository_of(pause.scope) is None
            ),
        )
        real = cast("SqliteStore", store)
        self.registry = Registry(real, world.places, self.clock, world.ids)
        self.admission = Admission(
            real,
            self.registry,
            self.clock,
            world.ids,
            lambda: self.settings,
            SecretFolder(HOME),
            self._submitted,
            cast("Agents", agents),
            attended=True,
        )
        moved: list[str] = []
        self.registry.relocated = moved.append
        self.mailbox = await nursery.start(self._supervise, context)
        self.registry.relocated = self._relocated
        for repo in moved:
            self._relocated(repo)
        store.save([Noted(Event("runtime_ready", self.clock.now()))])
        await store.save([]).wait()
        nursery.start_soon(self.looking.run)

    def _name_of(self, job: str) -> str | None:
        """That of a job which may not be durable yet."""
        [row] = self.store.read_pending("retry_jobs", json.dumps([job]))
        name: str | None = row[17]
        return name

    async def _supervise(
        self,
        context: supervisor.Context,
        *,
        task_status: trio.TaskStatus[Mailbox[supervisor_messages.Message]],
    ) -> None:
        try:
            with self._actors:
                await supervisor.run(context, task_status=task_status)
        finally:
            self._ended.set()

    def _relocated(self, repo: str) -> None:
        self._tell(supervisor_messages.Relocated(repo))

    def _submitted(self, repo: str, jobs: tuple[Job, ...]) -> None:
        self.looking.board.used(repo)
        self._tell(supervisor_messages.Submitted(repo, jobs))

    def _tell(self, message: supervisor_messages.Message) -> None:
        with suppress(MailboxClosed):
            self.mailbox.tell(message)

    # -- what clients use ------------------------------------------------------------

    async def ask(
        self, repo: str, make: Callable[[Reply[A]], repository_messages.Message]
    ) -> A:
        """What the actor of a repository answers, as the control asks it."""
        while True:
            actor = await self.open(repo)
            try:
                return await actor.ask(make)
            except MailboxClosed:
                continue

    async def open(self, repo: str) -> RepositoryMailbox:
        return await self.mailbox.ask(
            lambda reply: supervisor_messages.Open(repo, reply)
        )

    async def place(
        self, asked: tuple[tuple[Offer, int | None, float], ...]
    ) -> list[Waiting]:
        """Where these offers are in line."""
        return await self.mailbox.ask(
            lambda reply: supervisor_messages.Place(asked, reply)
        )

    async def exchange(self, settings: Settings) -> None:
        """Let other settings hold, once that is durable."""
        now = self.clock.now()
        event = Event("settings_changed", now, data={"changed": {}})
        changes: list[Change] = [
            SettingsChanged(event),
            Noted(in_force(settings, now)),
        ]

        def hold() -> None:
            self.settings = self._world.settings = settings
            self.store.limits = settings.repository_limits()
            self._hold_limits(settings)
            self._world.limits_known_at = self._world.now + ON_ITS_WAY
            self._tell(
                supervisor_messages.SetLimits(
                    settings.token_limits(), self.store.limits
                )
            )

        await self.store.save(changes, then=hold).wait()

    def _hold_limits(self, settings: Settings) -> None:
        self._world.limits = settings.token_limits()
        self._world.repository_workers = settings.repository_workers
