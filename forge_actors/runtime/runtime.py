"""The runtime: wires the actors to the edges, starts in order, stops in reverse."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.actors import supervisor, supervisor_messages
from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import InvalidInput, MailboxClosed
from forge_actors.domain.events import Event
from forge_actors.domain.launch import Receipt
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.scopes import repository_of
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.machine import Clock, PressureGauge
from forge_actors.edges.node.launcher import (
    NodeLauncher,
    open_launcher,
    previous_receipts,
    remove_receipts,
    sweep,
)
from forge_actors.edges.sqlite.rows import pause_from
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.control import RuntimeControl
from forge_actors.runtime.event_stream import EventStream
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.in_force import SettingsInForce, in_force, resolve
from forge_actors.runtime.orders import OrderMaker, allowed_environment
from forge_actors.runtime.ownership import own_home, prepare_home
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.settings import Settings
from forge_actors.runtime.sources import SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.jobs import Job, JobView
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.repositories import RepositoryView
    from forge_actors.domain.requests import JobQuery

STORE_FILE = "store.sqlite"
#: Seconds an orderly stop may take before what is left is cancelled.
STOP_SECONDS = 120.0


class JobHandle:
    """A job that was accepted by this runtime."""

    def __init__(self, control: RuntimeControl, job_id: str) -> None:
        self._control = control
        self.id = job_id

    async def wait(self) -> JobView:
        """Wait until the job has ended; how it ended is in the view."""
        [view] = await self._control.wait([self.id])
        return view

    async def show(self) -> JobView:
        """The job as it is now."""
        return await self._control.job(self.id)

    async def why(self) -> str:
        """Why the job is where it is, in a sentence."""
        return (await self._control.why(self.id)).sentence

    async def cancel(self, *, grace: float | None = None) -> JobView:
        """End the job; one that runs is only asked to stop when this returns."""
        return await self._control.cancel(self.id, grace=grace)


class Runtime:
    """A running runtime; made by `open_runtime`."""

    def __init__(self, home: Path, settings: Settings, control: RuntimeControl) -> None:
        self.home = home
        #: Those it was started with.
        self.settings = settings
        #: The same runtime as entry points see it.
        self.control = control

    async def add_repository(
        self, path: str | Path, name: str | None = None
    ) -> RepositoryView:
        """Register the git repository of a folder.

        Raises:
            InvalidInput: the folder is in no git work tree, or the name is not fit.
            Refused: the name is taken.
        """
        return await self.control.add_repository(str(path), name)

    async def submit(
        self, repo: str | Path, argv: Sequence[str], **options: Any
    ) -> JobHandle:
        """Accept one job; it is durable when this returns.

        `options` are the other fields of `JobRequest`, such as `kind`, `priority`,
        `claims`, `after` (ids), `provider` and `timeout`. A `repo` that is a path is
        registered if it is not yet.

        Raises:
            InvalidInput: an option is not known or not valid.
            NotFound: no repository has that name.
            StoreFailed: it could not be saved.
        """
        if isinstance(argv, str | bytes):
            raise InvalidInput("argv", "is a list of arguments, not one text")
        if isinstance(repo, Path):
            repo = (await self.add_repository(repo)).name
        table = {"origin": "embedded", **options, "repo": repo, "argv": list(argv)}
        [accepted] = await self.control.submit([convert(table, JobRequest)])
        return JobHandle(self.control, accepted.id)

    async def submit_all(self, requests: Sequence[JobRequest]) -> list[JobHandle]:
        """Accept all of the jobs or none."""
        accepted = await self.control.submit(requests)
        return [JobHandle(self.control, entry.id) for entry in accepted]

    async def jobs(self, query: JobQuery) -> list[JobView]:
        """The jobs a query asks for, newest first."""
        return await self.control.jobs(query)

    async def status(self) -> dict[str, object]:
        """Capacity, counts and readiness, as `status --json` prints them."""
        return await self.control.status()

    def events(self, after: int | None = None) -> EventStream:
        """Every event from now on, or after the one with the number `after`."""
        return EventStream(self.control, after)


@asynccontextmanager
async def open_runtime(
    home: str | Path | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    stop: StopReason = "cancelled",
) -> AsyncIterator[Runtime]:
    """A runtime for the length of the block. When it ends, so has every process.

    Without a `home` a private temporary one is used, which is removed at the end, or
    kept and named in the error when the block fails. `settings` given here are taken
    whole; without them a home's `settings.toml` and the environment count.

    An exception of the block reaches the caller as it is. What `stop` says becomes of
    the jobs that still run at the end: cancelled, or interrupted by a shutdown.

    Raises:
        InvalidInput: a setting is not valid, or the home cannot be used.
        Refused: another runtime owns the home.
        StoreFailed, LauncherDown: the disk is full, or the store is damaged.
    """
    if home is not None:
        async with _open(Path(home), settings, stop) as runtime:
            yield runtime
        return
    folder = Path(tempfile.mkdtemp(prefix="forge-actors-"))
    try:
        async with _open(folder, settings, stop) as runtime:
            yield runtime
    except (Exception, KeyboardInterrupt) as error:
        error.add_note(f"the home of the failed run is kept: {folder}")
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _open(
    folder: Path, settings: Settings | Mapping[str, Any] | None, stop: StopReason
) -> AsyncIterator[Runtime]:
    home = prepare_home(folder)
    loaded = resolve(home / SETTINGS_FILE, settings)
    limits = loaded.settings.repository_limits()
    host_error: BaseException | None = None
    try:
        with own_home(home):
            found = await previous_receipts(home)
            async with (
                open_store(
                    home / STORE_FILE,
                    repository_workers=limits.workers,
                    overtake_after=limits.overtake_after,
                    known=limits.known,
                    lasting=stop == "shutdown",
                ) as store,
                open_launcher(home, allowed_environment()) as launcher,
                trio.open_nursery() as nursery,
            ):
                path = home / SETTINGS_FILE if settings is None else None
                clock = Clock()
                parts = Parts(
                    home,
                    SettingsInForce(loaded, path, store, clock),
                    store,
                    launcher,
                    clock,
                    embedded=stop == "cancelled",
                )
                mailbox = await parts.start(nursery, found)
                control = parts.control(mailbox)
                parts.scope.shield = True
                try:
                    yield Runtime(home, loaded.settings, control)
                except BaseException as error:  # noqa: BLE001 - raised again below
                    # Leaving the nursery with it would wrap it in a group, and the
                    # host would not see its own exception.
                    host_error = error
                await parts.stop(mailbox, stop)
                control.close()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_failure(group) from host_error
    if host_error is not None:
        raise host_error


class Parts:
    """The parts of one runtime, in the order in which they start."""

    def __init__(
        self,
        home: Path,
        settings: SettingsInForce,
        store: SqliteStore,
        launcher: NodeLauncher,
        clock: Clock,
        *,
        embedded: bool,
    ) -> None:
        self._home = home
        self._settings = settings
        self._store = store
        self._launcher = launcher
        self._clock = clock
        self._gauge = _gauge(settings())
        self._embedded = embedded
        self._ids = IdSource()
        self.registry = Registry(store, GitProgram(), self._clock, self._ids)
        self._ended = trio.Event()
        #: Shielded while the host's block lasts: a cancel of the host must become a
        #: stop, whose exits are recorded, and not cut the actors short.
        self.scope = trio.CancelScope()

    async def start(
        self, nursery: trio.Nursery, found: list[Receipt]
    ) -> Mailbox[supervisor_messages.Message]:
        """Start the supervisor: every job that was saved is decided or waits again."""
        now, settings = self._clock.now(), self._settings()
        event = Event("runtime_started", now, data={"pid": os.getpid()})
        self._store.save([Noted(event), Noted(in_force(settings, now))])
        # Of an attempt without a whole receipt the agent died too: what it ran may
        # still run.
        unclaimed = {(entry.job, entry.attempt): entry for entry in found}
        known = {key for key, entry in unclaimed.items() if entry.complete}
        reserved = {
            (job, attempt)
            for job in self._store.tally.reserved
            for _, attempt in self._store.read("job_progress", job)
        }
        if lost := reserved - known:
            await sweep(lost)
            for job, attempt in lost - unclaimed.keys():
                unclaimed[job, attempt] = Receipt(
                    job, attempt, fence=0, ending="lost", ended_at=now
                )
        context = supervisor.Context(
            limits=settings.token_limits(),
            store=self._store,
            launcher=self._launcher,
            clock=self._clock,
            pressure=self._pressure,
            make_order=OrderMaker(
                self._home,
                self._store,
                lambda: self._settings().output.stream_bytes,
            ),
            gone=self._gone,
            retries_passes=self._embedded,
            unclaimed=unclaimed,
            last_dispatch=dict(self._store.read("last_dispatches")),
            busy=self._store.tally.busy,
            pauses=tuple(
                pause
                for pause in map(pause_from, self._store.read("pauses"))
                if repository_of(pause.scope) is None
            ),
        )
        mailbox: Mailbox[supervisor_messages.Message]
        mailbox = await nursery.start(self._supervise, context)
        nursery.start_soon(self._launcher.wait_down)
        self._store.save([Noted(Event("runtime_ready", self._clock.now()))])
        # One without changes is refused where nothing can be saved, as nobody was
        # promised anything yet; the others would wait for space.
        await self._store.save([]).wait()
        remove_receipts(self._home)
        return mailbox

    def _pressure(self) -> str | None:
        return self._gauge()

    def _gone(self, repo: str) -> str | None:
        known = self.registry.get(repo)
        # Not pathlib: this is asked at every dispatch.
        if known is None or os.path.isdir(known.path):
            return None
        return f"the folder of its repository is gone: {known.path}"

    async def _supervise(
        self,
        context: supervisor.Context,
        *,
        task_status: trio.TaskStatus[Mailbox[supervisor_messages.Message]],
    ) -> None:
        try:
            with self.scope:
                await supervisor.run(context, task_status=task_status)
        finally:
            self._ended.set()

    def _exchange(
        self, mailbox: Mailbox[supervisor_messages.Message], settings: Settings
    ) -> None:
        """Give other settings to those who hold what they were told at the start."""
        self._gauge = _gauge(settings)
        self._store.limits = settings.repository_limits()
        with suppress(MailboxClosed):
            mailbox.tell(
                supervisor_messages.SetLimits(
                    settings.token_limits(), self._store.limits
                )
            )

    def control(self, mailbox: Mailbox[supervisor_messages.Message]) -> RuntimeControl:
        self._settings.exchanged = partial(self._exchange, mailbox)

        def submitted(repo: str, jobs: tuple[Job, ...]) -> None:
            # They are saved: after the end of this runtime the next one runs them.
            with suppress(MailboxClosed):
                mailbox.tell(supervisor_messages.Submitted(repo, jobs))

        admission = Admission(
            self._store,
            self.registry,
            self._clock,
            self._ids,
            self._settings,
            SecretFolder(self._home),
            submitted,
        )
        return RuntimeControl(
            home=self._home,
            store=self._store,
            launcher=self._launcher,
            clock=self._clock,
            settings=self._settings,
            registry=self.registry,
            admission=admission,
            mailbox=mailbox,
        )

    async def stop(
        self, mailbox: Mailbox[supervisor_messages.Message], reason: StopReason
    ) -> None:
        """Withdraw the tokens, end every worker and wait until its exit is recorded."""
        with trio.CancelScope(shield=True) as scope:
            scope.deadline = trio.current_time() + STOP_SECONDS
            with suppress(MailboxClosed):
                mailbox.tell(supervisor_messages.Stop(reason))
            await self._ended.wait()
            self._store.save([Noted(Event("runtime_stopped", self._clock.now()))])
        self.scope.cancel()


def _gauge(settings: Settings) -> PressureGauge:
    return PressureGauge(
        min_free_memory_mb=settings.pressure.min_free_memory_mb,
        max_load_per_cpu=settings.pressure.max_load_per_cpu,
    )
