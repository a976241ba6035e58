"""Looks at EPICs from outside of their runs: what would begin, and what is known.

Nothing is written, no lock is taken but for the moment of a look, and nobody is in the
way of a run.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs, to_builtins

from forge_actors.domain.epic import places, telling
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.namespace import Expected, classify
from forge_actors.domain.epic.plan_file import repository_of
from forge_actors.domain.epic.reconciling import survey
from forge_actors.domain.epic.records import (
    MAX_ASSIGNMENT,
    Assignment,
    StopRequest,
    decode,
)
from forge_actors.domain.epic.standalone import held_issue
from forge_actors.domain.epic.verdicts import evaluate
from forge_actors.domain.epic.views import (
    child_view,
    epic_view,
    kept_view,
    recorded_view,
    title,
)
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.epic.ends import ended, start_time
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.machine import Clock
from forge_actors.edges.watch import watch_folders
from forge_actors.runtime.epic_place import controller_place, locks, opened
from forge_actors.runtime.epic_plan import plan_key
from forge_actors.runtime.epic_run import (
    OpenClaims,
    check_claims,
    load_settings,
    plan_folder,
)
from forge_actors.runtime.epic_source import epic_at, open_graph
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.secrets import SecretFolder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from typing import Literal

    from forge_actors.domain.epic.namespace import Namespace
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Locks
    from forge_actors.domain.epic.records import EpicRef, Invocation, Scheduler
    from forge_actors.domain.epic.verdicts import Fact
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.domain.github.places import IssueAt
    from forge_actors.edges.epic.root import FolderRoot
    from forge_actors.runtime.epic_run import EpicOptions
    from forge_actors.runtime.github_settings import GitHubSettings

#: EPICs of one repository that are listed.
MAX_EPICS = 1000


async def plan_epic(
    options: EpicOptions, say: Callable[[str], None] = lambda _line: None
) -> EpicView:
    """The graph as it is, and what a run would make of each issue; `say` is told what
    would keep it from beginning any.

    Raises:
        SnapshotRefused: it cannot be read as a whole.
        InvalidInput, Refused: as of a run.
    """
    settings = load_settings(options)
    graph = open_graph(options.target, settings.github, SecretFolder(options.home))
    try:
        place = await controller_place(options.folder)
        folder = await plan_folder(graph, options.target)
        repository = await graph.repository()
        await graph.epic()
        snapshot = await graph.snapshot()
    except SnapshotRefused as error:
        again = telling.after(error.wait, Clock().wall())
        if not again:
            raise
        told = f"{error}; ask again{again}"
        raise SnapshotRefused(error.reason, told, wait=error.wait) from None
    finally:
        await graph.close()
    with opened(place) as root:
        namespaces, held = FileNamespaces(root, folder), locks(root, folder)
        expected = Expected(
            repository.id, snapshot.place.owner, snapshot.place.name, snapshot.ids
        )
        kept = {issue: namespaces.look(issue) for issue in namespaces.issues().issues}
        facts: dict[int, Fact] = {}
        with suppress(StateError):  # that cannot be read holds nothing
            standalone = held_issue(namespaces.standalone(), expected)
            if standalone is not None:
                facts[standalone] = "standalone-state"
        for issue, found in kept.items():
            fact = _fact(found, held, snapshot.epic.ref, expected)
            if fact is not None:
                facts[issue] = fact
        _, problems = survey(namespaces, snapshot.epic.ref, expected)
        try:
            check_claims(namespaces, snapshot.epic.ref, force=False, resume=False)
        except OpenClaims as error:
            say(str(error))
    for problem in problems:
        say(telling.line(f"nothing can be admitted: {problem}"))
    verdicts = evaluate(snapshot, facts, satisfied_by=settings.epic.satisfied_by)
    children = [
        child_view(
            node,
            verdict,
            kept.get(node.number) if node.place == snapshot.place else None,
        )
        for node, verdict in zip(snapshot.children, verdicts, strict=True)
    ]
    by = settings.epic.satisfied_by
    view = epic_view(snapshot, children, None, satisfied_by=by)
    if problems:
        degraded = {"admission": "degraded", "reason": "epic-not-admissible"}
        view = structs.replace(view, **degraded)
    return view


def _fact(
    found: Namespace, held: Locks, epic: EpicRef, expected: Expected
) -> Fact | None:
    """What is known here of an issue that a run would go by."""
    try:
        if held.is_busy(found.issue):
            return "owned"
    except StateError:
        return "uncertain"
    if found.is_of_another(epic):
        return "other-epic"
    kind = classify(found, expected).kind
    if kind == "settled":
        return "settled-namespace"
    return "uncertain" if kind == "uncertain" else None


def as_json(view: EpicView) -> dict[str, Any]:
    """A view as JSON has it."""
    found: dict[str, Any] = to_builtins(view)
    return found


class Kept:
    """What the files of one repository tell of one EPIC."""

    def __init__(
        self, root: FolderRoot, folder: Place, number: int, at: IssueAt | None = None
    ) -> None:
        """`at` is how somebody has named it, if that was as an issue."""
        self._at = at
        self._root = root
        self._folder = folder
        self._locks = locks(root, folder)
        self._namespaces = FileNamespaces(root, folder)
        self.number = number

    def record(self) -> Scheduler:
        """What is told of its last run.

        Raises:
            NotFound: there was none.
            StateError: it cannot be read.
        """
        record = self._namespaces.read_scheduler(self.number)
        if record is None:
            raise NotFound(f"no run of EPIC #{self.number} is known in this repository")
        here, at = record.repository, self._at
        named = (
            (here.owner, here.name) if at is None else (at.place.owner, at.place.name)
        )
        if not Expected(0, *named).is_named(here.owner, here.name):
            raise NotFound(
                f"the last run of EPIC #{self.number} in this repository was of"
                f" {here.owner}/{here.name}, and not of {named[0]}/{named[1]}"
            )
        return record

    @property
    def is_alive(self) -> bool:
        """Whether its scheduler runs, or a worker of it does."""
        return self.has_scheduler or bool(self._working())

    @property
    def has_scheduler(self) -> bool:
        """Whether the scheduler of the record runs."""
        run = self.record().invocation
        if run.ended_at is not None or self._controller() is None:
            return False
        return all(other.started_at <= run.started_at for other in self._unended())

    def _controller(self) -> int | None:
        """The process that schedules now, of whichever EPIC."""
        holder = self._locks.controller()
        return None if holder is None or holder.ended else holder.pid

    def _unended(self) -> Iterator[Invocation]:
        """Runs of any EPIC of the repository of which no end is known: one at most
        goes on, and that is the last one."""
        for folder, number in _known(self._root):
            with suppress(StateError):
                found = FileNamespaces(self._root, folder).read_scheduler(number)
                if found is not None and found.invocation.ended_at is None:
                    yield found.invocation

    def view(self) -> EpicView:
        """
        Raises:
            NotFound, StateError: as `record`.
        """
        record, children = self.record(), []
        for found in self._namespaces_of(record.epic):
            view = kept_view(found, busy=self._is_busy(found.issue))
            children.append(structs.replace(view, title=self._title(found.issue)))
        return recorded_view(
            record, children, alive=self.has_scheduler, plan=bool(self._folder)
        )

    def _namespaces_of(self, epic: EpicRef) -> Iterator[Namespace]:
        for issue in self._namespaces.issues().issues:
            found = self._namespaces.look(issue)
            if found.binding is not None and found.binding.epic == epic:
                yield found

    def _title(self, issue: int) -> str:
        """What the issue was called when its last worker began."""
        place = places.within(places.assignment(issue), self._folder)
        with suppress(StateError):
            data = self._root.read(place, MAX_ASSIGNMENT)
            if data is not None:
                return title(decode(Assignment, data, MAX_ASSIGNMENT).title)
        return ""

    def _working(self) -> list[Namespace]:
        """The issues that somebody has, a worker in all likelihood."""
        epic = self.record().epic
        return [each for each in self._namespaces_of(epic) if self._is_busy(each.issue)]

    def _is_busy(self, issue: int) -> bool:
        try:
            return self._locks.is_busy(issue)
        except StateError:
            return False

    def ask_to_stop(self, mode: Literal["drain", "now"]) -> str:
        """Ask the run that goes on to end, or the workers that one has left; its
        invocation.

        Raises:
            Refused: nobody is there.
            NotFound, StateError: as `record`.
        """
        run = self.record().invocation
        if not self.is_alive:
            how = run.end_reason or "it was killed"
            raise Refused(f"no run of EPIC #{self.number} goes on: {how}")
        now = timestamp(Clock().wall())
        request = StopRequest(mode=mode, invocation_id=run.id, requested_at=now)
        self._namespaces.write_stop(self.number, request)
        return run.id

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """What waits until something may have changed since this began."""
        bell = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                paths = [places.path(self._root.path, each) for each in self._watched()]
                await nursery.start(watch_folders, paths, bell.set)
                for pid in self._processes():
                    nursery.start_soon(_then, ended, pid, bell.set)
                yield bell.wait
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise only_failure(group) from None

    def _processes(self) -> list[int]:
        """Whose end changes something that no file tells."""
        found = [self._controller()] if self.has_scheduler else []
        for namespace in self._working():
            claim = namespace.latest
            worker = None if claim is None else claim.worker
            if worker is not None and worker.start_time == start_time(worker.pid):
                found.append(worker.pid)
        return [pid for pid in found if pid is not None and hasattr(os, "pidfd_open")]

    def _watched(self) -> list[Place]:
        at = partial(places.within, folder=self._folder)
        found = [at(places.scheduler(self.number))[:-1]]
        found += [at(places.ISSUES)[:-1], at(places.ISSUES)]
        for issue in self._namespaces.issues().issues:
            found += [at(places.namespace(issue)), at(places.claims(issue))]
            found += [at(places.state(issue))[:-1]]
        return [each for each in found if self._root.entries(each) is not None]


async def _then(
    wait: Callable[[int], Awaitable[None]], pid: int, then: Callable[[], object]
) -> None:
    await wait(pid)
    then()


async def known_epics(folder: str) -> list[tuple[Place, int]]:
    """The EPICs of a repository that were ever run: with the folder of a plan.

    Raises:
        LockFailed: the folder is in no repository.
    """
    with opened(await controller_place(folder)) as root:
        return _known(root)


def _known(root: FolderRoot) -> list[tuple[Place, int]]:
    plans = root.entries((places.FOLDER, "plans")) or []
    inside: list[Place] = [(), *(("plans", each.name) for each in plans)]
    found = []
    for each in inside:
        entries = root.entries(places.within(places.EPICS, each)) or []
        numbers = sorted(int(e.name) for e in entries if e.name.isdecimal())
        found += [(each, number) for number in numbers]
    return found[:MAX_EPICS]


async def _planned(options: EpicOptions, settings: GitHubSettings) -> tuple[Place, int]:
    """The EPIC of a plan; of one that cannot be read now, that which was run."""
    graph = open_graph(options.target, settings, SecretFolder(options.home))
    try:
        return (await graph.repository()).folder, (await graph.epic()).number
    except SnapshotRefused:
        folder = repository_of(plan_key(Path(options.target).absolute())).folder
        known = await known_epics(options.folder)
        found = [each for each in known if each[0] == folder]
        if len(found) != 1:
            raise
        return found[0]


@asynccontextmanager
async def kept_epic(
    options: EpicOptions, known: tuple[Place, int] | None = None
) -> AsyncIterator[Kept]:
    """What is kept of the EPIC of the options, or of one that is known.

    Raises:
        InvalidInput: the target means no EPIC.
        LockFailed: the folder is in no repository.
    """
    at = None
    if known is None:
        settings = load_settings(options).github
        if "://" in options.target:
            at = epic_at(options.target, settings)
            known = (), at.number
        else:
            known = await _planned(options, settings)
    with opened(await controller_place(options.folder)) as root:
        yield Kept(root, *known, at)
