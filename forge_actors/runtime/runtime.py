"""The runtime: opens the edges in order, and closes them in reverse."""

from __future__ import annotations

import logging
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from forge_actors.domain.errors import Refused
from forge_actors.edges.machine import open_files
from forge_actors.edges.node.finding import durable_agent
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.edges import MACHINE
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.handles import Runtime
from forge_actors.runtime.homes import STORE_FILE, refuse_shared
from forge_actors.runtime.in_force import SettingsInForce, resolve
from forge_actors.runtime.orders import allowed_environment
from forge_actors.runtime.ownership import own_home, prepare_home, taken_over
from forge_actors.runtime.parts import Parts
from forge_actors.runtime.readiness import Board
from forge_actors.runtime.release import this_release
from forge_actors.runtime.served_release import serve_release
from forge_actors.runtime.sources import SETTINGS_FILE
from forge_actors.runtime.worktree_folders import discard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.releases import Release
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.edges import Edges
    from forge_actors.runtime.ownership import Incarnation
    from forge_actors.runtime.settings import Settings

log = logging.getLogger(__name__)


class Serving(NamedTuple):
    """What a service gives to its runtime."""

    #: Makes ready where the node agent is found, and says where that is.
    agent_socket: Callable[[], str]
    #: Learns how far the start is.
    board: Board
    #: Called once the home is ours, before anything in it is read.
    owned: Callable[[Incarnation, Release, Settings], Awaitable[None]]


@asynccontextmanager
async def open_runtime(
    home: str | Path | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    stop: StopReason = "cancelled",
) -> AsyncIterator[Runtime]:
    """A runtime for the length of the block. When it ends, so has every process.

    Without a `home` a private temporary one is used, which is removed at the end, or
    kept and named in the error when the block fails; it is kept, too, if it has
    worktrees of jobs, whose work may be nowhere else. `settings` given here are taken
    whole; without them a home's `settings.toml` and the environment count.

    An exception of the block reaches the caller as it is. What `stop` says becomes of
    the jobs that still run at the end: cancelled, or interrupted by a shutdown.

    Raises:
        InvalidInput: a setting is not valid, or the home cannot be used.
        Refused: another runtime owns the home, or jobs of a service run on in it.
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
        _discard(folder)
        raise
    _discard(folder)


def _discard(folder: Path) -> None:
    if not discard(folder):
        log.warning("the home %s is kept: it has worktrees of jobs", folder)


@asynccontextmanager
async def open_on(
    edges: Edges, home: Path, settings: Settings | Mapping[str, Any] | None = None
) -> AsyncIterator[Runtime]:
    """The same as `open_runtime` on other edges than those of this machine.

    Raises:
        InvalidInput, Refused, StoreFailed, LauncherDown: as `open_runtime`.
    """
    async with _open(home, settings, "cancelled", edges=edges) as runtime:
        yield runtime


@asynccontextmanager
async def open_served(home: Path, serving: Serving) -> AsyncIterator[Runtime]:
    """The runtime of a service, with the settings of its home.

    What runs at the end goes on without it, unless the runtime was asked to end it.

    Raises:
        InvalidInput, Refused, StoreFailed, LauncherDown: as `open_runtime`.
        ReleaseRefused: another release is the active one of the home.
    """
    async with _open(home, None, "detached", serving) as runtime:
        yield runtime


@asynccontextmanager
async def _open(
    folder: Path,
    settings: Settings | Mapping[str, Any] | None,
    stop: StopReason,
    serving: Serving | None = None,
    edges: Edges | None = None,
) -> AsyncIterator[Runtime]:
    edges = edges or MACHINE
    board = Board() if serving is None else serving.board
    board.enter("settings")
    refuse_shared(folder)
    home = prepare_home(folder)
    loaded = resolve(home / SETTINGS_FILE, settings)
    limits = loaded.settings.repository_limits()
    host_error: BaseException | None = None
    try:
        board.enter("source")
        clock, release = edges.clock(), this_release()
        board.enter("ownership")
        with own_home(home, release.id) as me:
            served = None
            if serving is not None:
                await serving.owned(me, release, loaded.settings)
                board.enter("release")
                served = serve_release(home, release)
            board.enter("database")
            async with taken_over(
                open_store(
                    home / STORE_FILE,
                    repository_workers=limits.workers,
                    overtake_after=limits.overtake_after,
                    isolates=limits.isolates,
                    known=limits.known,
                    backoff=limits.backoff,
                    lasting=stop != "cancelled",
                    clock=clock,
                ),
                me,
                clock.now(),
            ) as (store, before):
                if serving is None:
                    _leave_alone(home, store)
                board.enter("agent")
                async with (
                    edges.launcher(
                        home,
                        allowed_environment(),
                        owner=store.owner,
                        durable=serving is not None,
                        socket_path=None if serving is None else serving.agent_socket(),
                        files=open_files().of_agent,
                    ) as launcher,
                    trio.open_nursery() as nursery,
                ):
                    board.enter("scheduler")
                    path = home / SETTINGS_FILE if settings is None else None
                    parts = Parts(
                        home,
                        SettingsInForce(loaded, path, store, clock),
                        store,
                        edges,
                        launcher,
                        clock,
                        served,
                        board,
                        embedded=stop == "cancelled",
                    )
                    boot_id = me.process.boot_id
                    mailbox = await parts.start(
                        nursery,
                        # Of whom nothing is known, it could be.
                        same_boot=before is None or before.process.boot_id == boot_id,
                    )
                    control = parts.control(mailbox)
                    nursery.start_soon(control.automation.run)
                    nursery.start_soon(control.trusts.run)
                    if loaded.settings.notify:
                        nursery.start_soon(control.notify, loaded.settings.notify)
                    if hooks := loaded.settings.webhooks:
                        nursery.start_soon(control.tell_webhooks, hooks)
                    if serving is None:
                        board.enter("ready")
                    parts.scope.shield = True
                    try:
                        yield Runtime(home, loaded.settings, control)
                    except BaseException as error:  # noqa: BLE001 - raised again below
                        # Leaving the nursery with it would wrap it in a group, and the
                        # host would not see its own exception.
                        host_error = error
                    if control.ends_jobs:
                        stop = "shutdown"
                    await parts.stop(mailbox, stop)
                    if control.ends_jobs or not store.tally.reserved:
                        launcher.end_all()  # nothing is left that needs an agent
                    elif stop == "detached":
                        _say_what_runs_on(len(store.tally.reserved))
                    control.close()
                    nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_failure(group) from host_error
    if host_error is not None:
        raise host_error


def _say_what_runs_on(jobs: int) -> None:
    """For whoever sent a signal, which is not answered."""
    run = "1 job runs" if jobs == 1 else f"{jobs} jobs run"
    log.info("the service ends; %s on, and the next service takes over", run)


def _leave_alone(home: Path, store: SqliteStore) -> None:
    """Keep a bound runtime, which ends all that runs, from the jobs of a service.

    Raises:
        Refused: there are some.
    """
    pid = durable_agent(home) if store.tally.reserved else None
    if pid is not None:
        raise Refused(
            f"jobs of a service that has stopped run on in {home} (node agent {pid}):"
            " let them end first, with forge-actors serve and drain --stop"
        )
