"""The records of EPIC runs, as files below a root: the port `Namespaces`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from forge_actors.domain.epic import claims as claiming
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.namespace import MAX_CLAIMS, Namespace, Saved
from forge_actors.domain.epic.record_ports import Listing, StopFound
from forge_actors.domain.epic.records import (
    MAX_ASSIGNMENT,
    MAX_RECORD,
    Assignment,
    Binding,
    Claim,
    EngineState,
    Scheduler,
    StopRequest,
    checked,
    decode,
    detail,
)
from forge_actors.domain.github.places import MAX_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Root, RunLock
    from forge_actors.domain.epic.records import (
        Closed,
        Moment,
        R,
        WorkerDiagnostics,
    )

#: Names that are tried for a scheduler.json of one moment.
MAX_ASIDE = 100
#: Lines about what is in the folder of the issues and can be none.
MAX_STRANGERS = 100
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_CLAIM = re.compile(r"([1-9][0-9]{0,9})\.json")

T = TypeVar("T")


class FileNamespaces:
    """The port `Namespaces` on the files of a root.

    `folder` keeps them apart from those of other graphs: see `RepositoryNode.folder`.
    """

    def __init__(self, root: Root, folder: Place = ()) -> None:
        self._root = root
        self._folder = folder

    # -- issues ----------------------------------------------------------------------

    def issues(self) -> Listing:
        folder = self._at(places.ISSUES)
        try:
            entries = self._root.entries(folder) or []
        except StateError as error:
            return Listing(problems=(f"the issues cannot be listed: {error}",))
        found: list[int] = []
        problems: list[str] = []
        for entry in entries:
            canonical = _NUMBER.fullmatch(entry.name) is not None
            if canonical and entry.kind == "folder" and int(entry.name) < MAX_NUMBER:
                found.append(int(entry.name))
            elif len(problems) < MAX_STRANGERS:
                where = places.told((*folder, entry.name))
                problems.append(f"{where} is no folder of an issue")
        return Listing(tuple(sorted(found)), tuple(problems))

    def binding(self, issue: int) -> Binding | None:
        return self._record(Binding, self._at(places.binding(issue)))

    def look(self, issue: int) -> Namespace:
        problems: list[str] = []
        found = _tried(problems, lambda: self._is_used(issue))
        binding = _tried(problems, lambda: self.binding(issue))
        saved = _tried(problems, lambda: self._saved(issue))
        claims = _tried(problems, lambda: self._claims(issue))
        return Namespace(
            issue,
            found=bool(found),
            binding=binding,
            saved=saved,
            claims=claims or (),
            problem=problems[0] if problems else None,
        )

    def read(self, lock: RunLock, issue: int) -> Namespace:
        _shown(lock, issue)
        return self.look(issue)

    def bind(self, lock: RunLock, binding: Binding) -> None:
        issue = binding.run_key.issue_number
        _shown(lock, issue)
        self._root.create(self._at(places.binding(issue)), checked(binding))

    def assign(self, lock: RunLock, assignment: Assignment) -> None:
        issue = assignment.run_key.issue_number
        _shown(lock, issue)
        place = self._at(places.assignment(issue))
        self._root.write(place, checked(assignment, MAX_ASSIGNMENT))

    def open_claim(
        self, lock: RunLock, claim: Claim, supersede: Claim | None = None
    ) -> None:
        issue = claim.run_key.issue_number
        namespace = self.read(lock, issue)
        claiming.check_open(namespace, claim, supersede)
        for left in namespace.outrun:
            self._take_over(namespace.claims, left, claim)
        self._root.create(
            self._at(places.claim(issue, claim.generation)), checked(claim)
        )
        if supersede is not None:
            self._take_over((*namespace.claims, claim), supersede, claim)

    def _take_over(self, claims: tuple[Claim, ...], earlier: Claim, by: Claim) -> None:
        closing = claiming.superseded(claims, earlier, by.opened_at)
        closed = claiming.closed(claims, earlier, closing)
        self._replace(by.run_key.issue_number, closed)

    def close_claim(self, lock: RunLock, claim: Claim, closing: Closed) -> Claim:
        issue = claim.run_key.issue_number
        _shown(lock, issue)
        closed = claiming.closed(self._claims(issue), claim, closing)
        self._replace(issue, closed)
        return closed

    def note_worker(
        self, lock: RunLock, claim: Claim, worker: WorkerDiagnostics
    ) -> Claim:
        issue = claim.run_key.issue_number
        _shown(lock, issue)
        noted = claiming.noted(self._claims(issue), claim, worker)
        self._replace(issue, noted)
        return noted

    def _replace(self, issue: int, claim: Claim) -> None:
        self._root.write(
            self._at(places.claim(issue, claim.generation)), checked(claim)
        )

    def _at(self, place: Place) -> Place:
        return places.within(place, self._folder)

    def _is_used(self, issue: int) -> bool:
        entries = self._root.entries(self._at(places.namespace(issue))) or []
        return any(entry.name != places.RUN_LOCK for entry in entries)

    def _saved(self, issue: int) -> Saved | None:
        place = self._at(places.state(issue))
        data = self._root.read(place, MAX_RECORD)
        return None if data is None else Saved(data, _decoded(EngineState, data, place))

    def _claims(self, issue: int) -> tuple[Claim, ...]:
        folder = self._at(places.claims(issue))
        entries = self._root.entries(folder) or []
        if len(entries) > MAX_CLAIMS:
            raise StateError(f"{places.told(folder)} has more than {MAX_CLAIMS} claims")
        generations = []
        for entry in entries:
            match = _CLAIM.fullmatch(entry.name)
            if match is None:
                where = places.told((*folder, entry.name))
                raise StateError(f"{where} is no claim")
            generations.append(int(match[1]))
        return tuple(self._claim(issue, each) for each in sorted(generations))

    def _claim(self, issue: int, generation: int) -> Claim:
        place = self._at(places.claim(issue, generation))
        claim = self._record(Claim, place)
        if claim is None or claim.generation != generation:
            raise StateError(f"{places.told(place)} is not the claim {generation}")
        return claim

    # -- the run ---------------------------------------------------------------------

    def read_scheduler(self, epic: int) -> Scheduler | None:
        return self._record(Scheduler, self._at(places.scheduler(epic)))

    def write_scheduler(self, scheduler: Scheduler) -> None:
        self._root.write(
            self._at(places.scheduler(scheduler.epic.number)), checked(scheduler)
        )

    def move_scheduler_aside(self, epic: int, now: Moment) -> str | None:
        place = self._at(places.scheduler(epic))
        name = f"{place[-1]}.{now.replace(':', '-')}"
        taken = {entry.name for entry in self._root.entries(place[:-1]) or ()}
        names = (name, *(f"{name}-{each}" for each in range(2, MAX_ASIDE + 1)))
        for each in names:
            if each not in taken:
                return each if self._root.move(place, each) else None
        raise StateError(f"{places.told(place)} was moved aside {MAX_ASIDE} times")

    def read_stop(self, epic: int) -> StopFound:
        place = self._at(places.stop(epic))
        try:
            data = self._root.read(place, MAX_RECORD)
        except StateError as error:
            return StopFound("unreadable", detail=detail(str(error)))
        if data is None:
            return StopFound("none")
        try:
            return StopFound("request", _decoded(StopRequest, data, place))
        except StateError as error:
            return StopFound("unparsable", detail=detail(str(error)))

    def write_stop(self, epic: int, request: StopRequest) -> None:
        self._root.write(self._at(places.stop(epic)), checked(request))

    def remove_stop(self, epic: int) -> bool:
        return self._root.remove(self._at(places.stop(epic)))

    # -- other runs ------------------------------------------------------------------

    def standalone(self) -> EngineState | None:
        return self._record(EngineState, places.STANDALONE)

    def _record(self, kind: type[R], place: Place) -> R | None:
        data = self._root.read(place, MAX_RECORD)
        return None if data is None else _decoded(kind, data, place)


def _decoded(kind: type[R], data: bytes, place: Place) -> R:
    try:
        return decode(kind, data)
    except StateError as error:
        raise StateError(f"{places.told(place)}: {error}") from None


def _tried(problems: list[str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except StateError as error:
        problems.append(str(error))
        return None


def _shown(lock: RunLock, issue: int) -> None:
    if lock.issue != issue or not lock.held:
        raise RuntimeError(f"the lock of issue {issue} is not held")
