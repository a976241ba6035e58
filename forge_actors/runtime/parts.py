"""The parts of one runtime: how they are put together, start and stop."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import maintenance_context, supervisor, supervisor_messages
from forge_actors.actors.isolating import Isolating
from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import (
    LauncherDown,
    MailboxClosed,
    StoreFailed,
    WriterFenced,
)
from forge_actors.domain.events import Event
from forge_actors.domain.ownership import claim_of
from forge_actors.domain.scopes import repository_of
from forge_actors.edges.sqlite.rows import launched_from, pause_from, quarantine_from
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.agent_arrivals import AgentArrivals
from forge_actors.runtime.agent_programs import AgentPrograms
from forge_actors.runtime.agent_runs import AgentLauncher
from forge_actors.runtime.agents import Agents
from forge_actors.runtime.automation import Automation
from forge_actors.runtime.budget_guard import BudgetGuard
from forge_actors.runtime.candidates import AdmissionDesk
from forge_actors.runtime.control import RuntimeControl
from forge_actors.runtime.disk_watch import DiskWatch
from forge_actors.runtime.effect_guard import EffectGuard
from forge_actors.runtime.handing_on import last_attempt
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.in_force import in_force
from forge_actors.runtime.input_folders import InputFolders
from forge_actors.runtime.looking import Looking
from forge_actors.runtime.orders import OrderMaker, allowed_environment
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.served_release import activated
from forge_actors.runtime.tracing import open_tracing
from forge_actors.runtime.worktree_orders import WorktreeOrders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.capacity import Limits
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.readiness import Failure
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.requests import LogChunk
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.edges import Edges, JobLauncher
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.readiness import Board
    from forge_actors.runtime.served_release import ServedRelease
    from forge_actors.runtime.settings import Settings

#: Seconds an orderly stop may take before what is left is cancelled.
STOP_SECONDS = 120.0


class Parts:
    """The parts of one runtime, in the order in which they start."""

    def __init__(
        self,
        home: Path,
        settings: SettingsInForce,
        store: SqliteStore,
        edges: Edges,
        launcher: JobLauncher,
        clock: Clock,
        served: ServedRelease | None,
        board: Board,
        *,
        embedded: bool,
    ) -> None:
        self._home = home
        self._settings = settings
        self._store = store
        self._launcher = launcher
        self._clock = clock
        self._served = served
        self.board = board
        self._edges = edges
        self._gauge = edges.gauge(settings())
        self._embedded = embedded
        self._ids = IdSource()
        self._agents = Agents(home, os.environ, allowed_environment())
        self._programs = AgentPrograms(self._agents)
        guard = BudgetGuard(store, settings, clock)
        self._runs = AgentLauncher(home, launcher, self._agents, store, clock, guard)
        self._arrivals = AgentArrivals(self._agents)
        store.agent_problem = self._arrivals.problem
        self.registry = Registry(store, edges.git(), self._clock, self._ids)
        self.looking = Looking(
            *(store, self.registry, clock, settings, edges.sampler(), edges.watch())
        )
        self.candidates = AdmissionDesk()
        self._ended = trio.Event()
        #: Shielded while the host's block lasts: a cancel of the host must become a
        #: stop, whose exits are recorded, and not cut the actors short.
        self.scope = trio.CancelScope()

    async def start(
        self, nursery: trio.Nursery, *, same_boot: bool
    ) -> Mailbox[supervisor_messages.Message]:
        """Start the supervisor: every job that was saved is decided or waits again.

        `same_boot`: whether what the last owner ran may be there still.
        """
        now, settings = self._clock.now(), self._settings()
        data: dict[str, object] = {"pid": os.getpid()}
        if (owner := self._store.owner) is not None:
            data |= {"instance": owner.instance, "epoch": owner.epoch}
        event = Event("runtime_started", now, data=data)
        self._store.save([Noted(event), Noted(in_force(settings, now))])
        if self._served is not None and self._served.new:
            self._store.save([Noted(activated(self._served.active, now))])
        reserved = dict(self._launched())
        await self._launcher.reconcile(reserved, same_boot=same_boot)
        make_order: Callable[[Job], LaunchOrder] = OrderMaker(
            self._home,
            self._store,
            lambda: self._settings().output.stream_bytes,
            WorktreeOrders(
                self._home,
                self._clock,
                self._settings,
                self.registry.get,
                self._name_of,
            ),
            lambda: self._settings().artifacts,
            self._agents.order,
            EffectGuard(self._home, lambda: self._settings().effects),
        )
        tracing = open_tracing(self._store, settings.telemetry)
        if tracing is not None:
            make_order = tracing.orders(make_order)
            nursery.start_soon(tracing.run)
        context = supervisor.Context(
            limits=self._token_limits(settings),
            store=self._store,
            launcher=self._runs,
            clock=self._clock,
            pressure=self._pressure,
            make_order=make_order,
            gone=self.registry.gone,
            isolating=Isolating(
                self._store,
                self._edges.worktrees(),
                self._clock,
                self._edges.locks(),
                InputFolders(self._home, partial(last_attempt, self._store)),
                self.candidates,
            ),
            retries_passes=self._embedded,
            lasting=self._served is not None,
            unclaimed={},
            maintenance=self._maintenance(),
            # Not later than now, should the clock have been set back since.
            last_dispatch={
                repo: min(at, now) for repo, at in self._store.read("last_dispatches")
            },
            # Those that keep claims too: what they wait for may be gone by now.
            busy=tuple(dict.fromkeys((*self._store.tally.busy, *self._keeping()))),
            accounts=self._store.accounts(),
            policy=self._store.read_policy(),
            attended=self._served is not None,
            pauses=tuple(
                pause
                for pause in map(pause_from, self._store.read("pauses"))
                if repository_of(pause.scope) is None
            ),
        )
        mailbox: Mailbox[supervisor_messages.Message]
        # Before there is a mailbox; what was loaded meanwhile is to be told of it too.
        moved: list[str] = []
        self.registry.relocated = moved.append
        mailbox = await nursery.start(self._supervise, context)

        def relocated(repo: str) -> None:
            with suppress(MailboxClosed):
                mailbox.tell(supervisor_messages.Relocated(repo))

        self.registry.relocated = relocated
        for repo in moved:
            relocated(repo)
        self.board.note = self._note_failure
        nursery.start_soon(self._until_down)
        nursery.start_soon(self._until_fenced)
        self._store.save([Noted(Event("runtime_ready", self._clock.now()))])
        # One without changes is refused where nothing can be saved, as nobody was
        # promised anything yet; the others would wait for space.
        await self._store.save([]).wait()
        nursery.start_soon(self.looking.run)
        nursery.start_soon(self._programs.run)
        nursery.start_soon(self._arrivals.run, partial(self._look_again, mailbox))
        self.candidates.complete()
        return mailbox

    def _note_failure(self, failure: Failure) -> None:
        """A part failed for good: that goes into the event log, if it still can."""
        data: dict[str, object] = {
            "code": failure.code,
            "stage": failure.stage,
            "reason": failure.message,
        }
        event = Event("runtime_failed", self._clock.now(), data=data)
        with suppress(StoreFailed):
            self._store.save([Noted(event)])

    def _maintenance(self) -> maintenance_context.Context:
        owner = self._store.owner
        return maintenance_context.Context(
            home=str(self._home),
            store=self._store,
            clock=self._clock,
            clean_up=self._edges.clean_up(),
            policy=lambda: self._settings().cleaning,
            claim=None if owner is None else claim_of(owner),
            is_busy=lambda: self._store.active > 0,
            tell=self.board.say_of_clean_up,
        )

    def _launched(self) -> Iterator[tuple[tuple[str, int], ProcessIdentity | None]]:
        """The attempts that an earlier runtime began, or may have begun."""
        for job in self._store.tally.reserved:
            [row] = self._store.read("job_launched", job)
            attempt, identity = launched_from(row)
            yield (job, attempt), identity

    def _keeping(self) -> Iterator[str]:
        """The repositories with claims that ended jobs left held."""
        for row in self._store.read("quarantines"):
            repo = quarantine_from(row).repo
            if self.registry.get(repo) is not None:
                yield repo

    @trio.lowlevel.enable_ki_protection
    async def _until_down(self) -> None:
        """End when nothing can be started any more.

        Raises:
            WriterFenced: because another runtime has the home, and so the node agent.
            LauncherDown: for another reason.
        """
        with self.board.guarding("NODE_AGENT_LOST", "scheduler"):
            try:
                await self._launcher.wait_down()
            except LauncherDown:
                self._store.check_owner()
                raise

    @trio.lowlevel.enable_ki_protection
    async def _until_fenced(self) -> None:
        """End at once when another runtime has the home: nothing can be saved, so
        there is nothing to wait for.

        Raises:
            WriterFenced: it has.
        """
        with self.board.guarding("RUNTIME_FENCED", "database"):
            try:
                await self._store.wait_fenced()
            except WriterFenced:
                self.scope.cancel()
                raise

    def _name_of(self, job: str) -> str | None:
        rows = self._store.read_pending("job_names", json.dumps([job]))
        return rows[0][1] if rows else None

    def _look_again(self, mailbox: Mailbox[supervisor_messages.Message]) -> None:
        """Somebody has installed what jobs wait for."""
        with suppress(MailboxClosed):
            mailbox.tell(supervisor_messages.PassDue())

    def _pressure(self) -> str | None:
        return self._gauge()

    @trio.lowlevel.enable_ki_protection
    async def _supervise(
        self,
        context: supervisor.Context,
        *,
        task_status: trio.TaskStatus[Mailbox[supervisor_messages.Message]],
    ) -> None:
        try:
            with self.scope, self.board.guarding("SCHEDULER_STOPPED", "scheduler"):
                await supervisor.run(context, task_status=task_status)
        finally:
            self._ended.set()

    def _exchange(
        self, mailbox: Mailbox[supervisor_messages.Message], settings: Settings
    ) -> None:
        """Give other settings to those who hold what they were told at the start."""
        self._gauge = self._edges.gauge(settings)
        self.looking.limits_changed()
        self._store.limits = settings.repository_limits()
        with suppress(MailboxClosed):
            mailbox.tell(
                supervisor_messages.SetLimits(
                    self._token_limits(settings), self._store.limits
                )
            )

    def _token_limits(self, settings: Settings) -> Limits:
        limits = settings.token_limits()
        heeds = self._launcher.heeds_room
        return limits if heeds else structs.replace(limits, ahead=0)

    def control(self, mailbox: Mailbox[supervisor_messages.Message]) -> RuntimeControl:
        self._settings.exchanged = partial(self._exchange, mailbox)

        def submitted(repo: str, jobs: tuple[Job, ...]) -> None:
            self.looking.board.used(repo)
            control.submitted(repo)
            # They are saved: after the end of this runtime the next one runs them.
            with suppress(MailboxClosed):
                mailbox.tell(supervisor_messages.Submitted(repo, jobs))

        disk = DiskWatch(self._home, self._settings, self._store, self._clock)
        admission = Admission(
            self._store,
            self.registry,
            self._clock,
            self._ids,
            self._settings,
            SecretFolder(self._home),
            submitted,
            self._agents,
            disk.check,
            attended=self._served is not None,
        )

        async def cancel(job: str) -> None:
            await control.cancel(job)

        async def output(job: str, offset: int, limit: int) -> LogChunk:
            return await control.read_log(job, "stdout", offset, limit=limit)

        automation = Automation(
            *(self._store, self._clock, self._ids, admission.submit, cancel),
            *(self.registry, self.looking, self._home, self._settings, output),
            self.candidates,
            control=lambda: control,
            timer=self._edges.timer,
        )
        control = RuntimeControl(
            home=self._home,
            store=self._store,
            launcher=self._launcher,
            clock=self._clock,
            settings=self._settings,
            registry=self.registry,
            admission=admission,
            mailbox=mailbox,
            looking=self.looking,
            disk=disk,
            served=self._served,
            programs=self._programs,
            session=self._runs.session,
            board=self.board,
            automation=automation,
        )
        self.registry.removed = control.forget_repository
        self.looking.looked.append(control.trusts.looked)
        self._automation = automation
        if self._served is not None:
            self._served.superseded = control.supersede
        return control

    async def stop(
        self, mailbox: Mailbox[supervisor_messages.Message], reason: StopReason
    ) -> None:
        """Withdraw the tokens, end every worker and wait until its exit is recorded."""
        with trio.CancelScope(shield=True) as scope:
            scope.deadline = trio.current_time() + STOP_SECONDS
            with suppress(MailboxClosed):
                mailbox.tell(supervisor_messages.Stop(reason))
            self._automation.stop()
            await self._ended.wait()
            self.looking.stop()
            with suppress(WriterFenced):  # that is why it ends, and told already
                self._store.save([Noted(Event("runtime_stopped", self._clock.now()))])
        self.scope.cancel()
