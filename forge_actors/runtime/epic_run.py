"""Runs of an EPIC in the foreground: no service, and no agent between.

The workers are children of this process and outlive it, also its `kill -9`: they go to
where they settle, and keep the locks until then.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
from msgspec import Struct

from forge_actors.actors import epic
from forge_actors.actors.epic import Context
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.records import ConfigSummary
from forge_actors.domain.epic.workers import OwnSlots
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.spawning import SpawnedWorkers
from forge_actors.edges.machine import Clock
from forge_actors.edges.watch import watch_folders
from forge_actors.runtime.epic_environment import check_programs, worker_environment
from forge_actors.runtime.epic_place import controller_place, locks, opened
from forge_actors.runtime.epic_settings import parallel, with_agent
from forge_actors.runtime.epic_source import open_graph
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forge_actors.domain.epic.graph import Graph
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.records import EpicRef
    from forge_actors.domain.epic.stopping import End
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.domain.epic.workers import Slots, WorkerOrder, Workers
    from forge_actors.edges.epic.root import FolderRoot
    from forge_actors.runtime.epic_settings import EpicSettings
    from forge_actors.runtime.settings import Settings

#: What asks a run to end.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Issues that a refusal names.
MAX_NAMED = 20


class EpicOptions(Struct, frozen=True):
    """What somebody wants to have worked through."""

    #: The URL of an issue, or the path of a plan.
    target: str
    #: A folder in the checkout.
    folder: str
    #: Where secrets are, and the settings if no file of them is given.
    home: Path
    config: Path | None = None
    max_parallel: int | None = None
    #: For the phases that take one.
    agent: str | None = None
    #: Take over claims that an earlier run left open.
    resume: bool = False
    #: The same, and move a record aside that cannot be read.
    force: bool = False
    #: Go on with other settings than the work began with.
    accept_config_change: bool = False


async def run_epic(
    options: EpicOptions,
    out: Callable[[str], None],
    show: Callable[[Callable[[], EpicView | None]], None] = lambda _view: None,
) -> End:
    """Work through an EPIC; `out` prints a line, `show` is given views.

    Raises:
        InvalidInput: the EPIC, the checkout or a setting is not valid.
        Refused: another one has the repository, or left claims open.
        ForgeError: its files cannot be used.
    """
    settings = load_settings(options)
    wanted = with_agent(settings.epic, options.agent)
    limit = parallel(options.max_parallel, wanted)
    graph = open_graph(options.target, settings.github, SecretFolder(options.home))
    try:
        wanted.check_ready()
        check_programs(wanted, worker_environment(wanted))
        place = await controller_place(options.folder)
        folder = await plan_folder(graph, options.target)
        with opened(place) as root:
            workers = SpawnedWorkers(
                root,
                place.checkout,
                worker_environment(wanted),
                partial(worker_command, options, place.checkout, folder),
                folder,
            )
            made = RunSite(options, wanted, limit, graph, root, folder)
            views: list[Callable[[], EpicView | None]] = [lambda: None]

            def passed(view: Callable[[], EpicView | None]) -> None:
                views[0] = view
                show(view)

            context = made.context(
                workers, OwnSlots(), out, signals=counted_signals, passed=passed
            )
            end = await epic.run(context)
            last = views[0]()  # while its files are open
            show(lambda: last)
            return end
    finally:
        await graph.close()


class RunSite(NamedTuple):
    """What a run goes by, wherever its workers come from."""

    options: EpicOptions
    settings: EpicSettings
    limit: int
    graph: Graph
    root: FolderRoot
    folder: Place

    def context(
        self,
        workers: Workers,
        slots: Slots,
        out: Callable[[str], None],
        **others: Any,
    ) -> Context:
        """What its scheduler is given; `others` are fields of the context."""
        options, settings, root, folder = (
            *(self.options, self.settings, self.root, self.folder),
        )
        namespaces = FileNamespaces(root, folder)
        poll, grace = settings.poll_seconds, settings.grace_seconds
        return Context(
            graph=self.graph,
            locks=locks(root, folder),
            namespaces=namespaces,
            workers=workers,
            slots=slots,
            clock=Clock(),
            config=ConfigSummary(self.limit, poll, grace, settings.digest()),
            satisfied_by=settings.satisfied_by,
            worktree=partial(worktree_path, root.path, folder),
            token=partial(secrets.token_hex, 8),
            out=out,
            watch=partial(watch_stop, root.path, folder),
            before_start=partial(
                check_claims,
                namespaces,
                force=options.force,
                resume=options.resume or options.force,
            ),
            **others,
        )


def load_settings(options: EpicOptions) -> Settings:
    """The settings of a run: of its file, else of the home.

    Raises:
        InvalidInput: there is no such file, or it is not valid.
    """
    if options.config is not None and not options.config.is_file():
        raise InvalidInput("--config", f"{options.config} is no file")
    return load(options.config or options.home / SETTINGS_FILE).settings


async def plan_folder(graph: Graph, target: str) -> Place:
    """Where the issues of a plan are kept apart from those of other graphs."""
    return () if "://" in target else (await graph.repository()).folder


def worktree_path(common_dir: str, folder: Place, issue: int) -> str:
    place = places.within(places.worktree(issue), folder)
    return places.path(common_dir, place)


def worker_command(
    options: EpicOptions, checkout: str, folder: Place, order: WorkerOrder
) -> Sequence[str]:
    """The arguments of a worker: of the very interpreter that runs us, which takes
    nothing from the folder that it works in."""
    claim = order.claim
    words = [
        *(sys.executable, "-P", "-m", "forge_actors", "epic-worker"),
        *("--home", str(options.home), "--checkout", checkout),
        *("--config", "" if options.config is None else str(options.config)),
        *("--epic", str(claim.epic.number)),
        *("--issue", str(claim.run_key.issue_number)),
        *("--claim", claim.claim_id, "--generation", str(claim.generation)),
        *("--invocation", claim.invocation_id),
        *("--controller-fd", str(order.controller), "--run-fd", str(order.run)),
    ]
    if folder:
        words += ["--folder", "/".join(folder)]
    if options.agent is not None:
        words += ["--agent", options.agent]
    if options.accept_config_change and claim.kind == "resume":
        words.append("--accept-config-change")
    return words


def check_claims(
    namespaces: FileNamespaces, epic: EpicRef, *, force: bool, resume: bool
) -> None:
    """What has to be so before an EPIC is run.

    Raises:
        OpenClaims: an earlier run has left some, and nobody said to go on.
    """
    if force:
        try:
            namespaces.read_scheduler(epic.number)
        except StateError:
            now = timestamp(Clock().wall())
            namespaces.move_scheduler_aside(epic.number, now)
    if resume:
        return
    left = [
        issue
        for issue in namespaces.issues().issues
        if (kept := namespaces.look(issue)).binding is not None
        and kept.binding.epic == epic
        and kept.open_claim is not None
    ]
    if left:
        names = ", ".join(f"#{issue}" for issue in left[:MAX_NAMED])
        raise OpenClaims(
            f"an earlier run of EPIC #{epic.number} has left claims open ({names}): go"
            " on with them by forge-actors epic resume"
        )


class OpenClaims(Refused):
    """An earlier run has left claims open."""


@contextmanager
def counted_signals(signalled: Callable[[], None]) -> Iterator[None]:
    """Have each signal that asks for the end call this in trio's loop, once each.

    Trio's own receiver makes one of two equal signals that come together, and the
    second one counts here. In another thread than the first one none arrives.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    token = trio.lowlevel.current_trio_token()

    def came(_number: int, _frame: object) -> None:
        token.run_sync_soon(signalled)

    before = {number: signal.signal(number, came) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def watch_stop(
    common_dir: str,
    folder: Place,
    epic: EpicRef,
    changed: Callable[[], None],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """See the context of a run."""
    place = places.within(places.stop(epic.number), folder)
    path = os.path.dirname(places.path(common_dir, place))
    await watch_folders([path], changed, task_status=task_status)
