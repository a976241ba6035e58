"""The simulated store: one of the runtime that runs, over a disk that outlives it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.changes import JobEnded, Noted
from forge_actors.domain.clock_steps import shifted, take_in
from forge_actors.domain.errors import NotFound, StaleFence, StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.ownership import fenced
from forge_actors.edges.sqlite.move import Move
from forge_actors.testing.simulation.rows import SimulatedRows
from forge_actors.testing.store import LAZY_SECONDS, MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job, JobSpec, State
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.looking import Look
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Repository
    from forge_actors.testing.simulation.world import World

#: As the real one: turns of the loop a commit waits for more moves to join it.
SETTLE_TURNS = 2
#: Seconds between two tries to save what the disk would not take.
RETRY_SECONDS = 1.0

_json = msgspec.json.Encoder()


class SimulatedMove(Move):
    """A move, and what of it is written: moments are those of the wall clock there."""

    __slots__ = ("saved",)

    def __init__(
        self, changes: Sequence[Change], then: Callable[[], object] | None
    ) -> None:
        super().__init__(changes, then)
        self.saved = changes


class SimulatedStore(MemoryStore):
    """The port `Store`, and of the real store what admission and registry ask.

    Once its runtime has crashed it takes everything and does nothing.
    """

    durable: SimulatedRows
    _pending: SimulatedRows
    _moves: list[SimulatedMove]  # type: ignore[assignment]

    def __init__(self, world: World, limits: RepositoryLimits, clock: Clock) -> None:
        super().__init__(repository_workers=limits.workers, durable=world.rows)
        self.limits = limits
        self._clock = clock
        self.dead = False
        #: Told of the repository of every job that ends.
        self.ended_in: Callable[[str | None], object] = lambda _: None
        #: Another one took over what is durable.
        self.fenced = trio.Event()
        #: Why nothing can be saved now.
        self.trouble: str | None = None
        self._world = world

    # -- saving ----------------------------------------------------------------------

    def save(  # type: ignore[override]
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> SimulatedMove:
        move = SimulatedMove(changes, then)
        if self.dead:
            return move
        self._check(changes)
        if self._fence is not None:
            raise self._fence.with_traceback(None)
        if self.trouble is not None and move.refusable:
            raise self._refusal()
        ahead = self._clock.ahead()
        if ahead:
            changes = [shifted(change, ahead) for change in changes]
        move.saved = changes
        try:
            for change in changes:
                self._pending.check(change)
                self._pending.apply(change)
        except StaleFence as error:
            self._undo_and_note(error, move.changes)
            raise
        self._moves.append(move)
        self._woken.set()
        if not lazy:
            self._urgent.set()
        return move

    async def run(self) -> None:
        """Commit, whenever something was saved, as long as it may."""
        while self._fence is None:
            await self._woken.wait()
            if not self._urgent.is_set():
                with trio.move_on_after(LAZY_SECONDS):
                    await self._urgent.wait()
            for _ in range(SETTLE_TURNS):
                await trio.lowlevel.checkpoint()
            await self._commit()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[SimulatedStore, None]:
        """Commit while the block lasts, and once more at its end."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()
                self._check([])
                self._make_durable(())
                self.dead = True

    async def _commit(self) -> None:
        points = list(
            dict.fromkeys(
                f"commit {type(change).__name__}"
                for move in self._moves
                for change in move.changes
            )
        )
        until = trio.current_time()
        for point in points:
            fault = self._world.faults.before(point)
            if self.dead:
                return
            if fault is None:
                continue
            self._world.note(fault.kind, point)
            if fault.kind == "slow":
                await trio.sleep(fault.amount)
            elif fault.kind == "fail":
                until = max(until, trio.current_time() + fault.amount)
        if until > trio.current_time():
            self._hold_back()
            while trio.current_time() < until:
                await trio.sleep(RETRY_SECONDS)
            self.trouble = None
        self._check([])
        if self._fence is None and not self.dead:
            self._make_durable(points)

    def _check(self, changes: Sequence[Change]) -> None:
        """Refuse everything from the moment another one owns what is durable."""
        if self._fence is None and self.durable.owner != self.owner:
            self._fence = fenced(self.owner, self.durable.owner, changes)
            moves, self._moves = self._moves, []
            for move in moves:
                move.settle(self._fence)
            self.fenced.set()

    def _make_durable(self, points: Sequence[str]) -> None:
        moves, self._moves = self._moves, []
        self._woken, self._urgent = trio.Event(), trio.Event()
        self._disk_takes(moves)
        for point in points:
            self._world.faults.after(point)
        if not self.dead:
            self._publish(moves)

    def _disk_takes(self, moves: Sequence[SimulatedMove]) -> None:
        world = self._world
        epoch = 0 if self.owner is None else self.owner.epoch
        for move in moves:
            for change, saved in zip(move.changes, move.saved, strict=True):
                self.durable.apply(saved)
                world.referee.saved(change, epoch)
            world.referee.moved()
        self.commits += 1
        world.changed()

    def _publish(self, moves: Sequence[SimulatedMove]) -> None:
        for move in moves:
            for change in move.changes:
                if type(change) is JobEnded:
                    for notify in self._ends.pop(change.job, ()):
                        notify(change.state)
                    self._tell_of_end()
                    self.ended_in(change.event.repo)
                    if change.event.repo in self.heard:
                        self.heard[change.event.repo]()
        for move in moves:
            if self.dead:
                return
            move.settle()
            if move.then is not None:
                move.then()

    def _hold_back(self) -> None:
        """The disk takes nothing: refuse what is new, keep the rest for later."""
        self.trouble = "the simulated disk is full"
        kept = []
        for move in self._moves:
            if move.refusable:
                move.settle(self._refusal())
            else:
                kept.append(move)
        self._moves = kept
        self._begin_again()

    def _undo_and_note(self, error: StaleFence, changes: Sequence[Change]) -> None:
        self._begin_again()
        about = next(c.event for c in changes if c.event and c.event.job == error.job)
        data = {"reason": error.code, "attempt": error.attempt, "fence": error.fence}
        event = Event("write_refused", about.at, about.repo, error.job, data)
        self.save([Noted(event)])

    def _begin_again(self) -> None:
        """What is pending is what the moves say that are left."""
        self._pending = self.durable.copy()
        for move in self._moves:
            for change in move.saved:
                self._pending.apply(change)

    def _refusal(self) -> StoreFailed:
        return StoreFailed(f"nothing can be saved now: {self.trouble}")

    # -- the port: reading -----------------------------------------------------------

    def load_jobs(self, repo: str) -> list[Job]:
        self._may_fail("read jobs", repo)
        jobs = super().load_jobs(repo)
        ahead, now = self._clock.ahead(), self._clock.now()
        for job in jobs:
            take_in(job, ahead, now)
        if self.owner == self.durable.owner:
            self._world.referee.reloaded(jobs)
        return jobs

    def look(self, repo: str) -> Look | None:
        look = super().look(repo)
        return None if look is None else self._taken_in(look)

    def unfinished_looks(self) -> list[Look]:
        return list(map(self._taken_in, super().unfinished_looks()))

    def _taken_in(self, look: Look) -> Look:
        return look.taken_in(self._clock.ahead(), self._clock.now())

    def spec(self, job: str) -> JobSpec:
        self._may_fail("read spec", self._pending.jobs[job].repo)
        return super().spec(job)

    def _may_fail(self, point: str, repo: str) -> None:
        fault = self._world.faults.before(point)
        if fault is not None and not self.dead:
            self._world.note("error", point)
            self._world.books.failed.add(repo)
            raise OSError(f"simulated: {point}")

    def load(self, repo: str) -> Ledger:
        ledger = super().load(repo)
        ledger.set_limits(self.limits)
        return ledger

    # -- what admission and the registry ask -----------------------------------------

    @property
    def active(self) -> int:
        """Jobs without an end, those included that are not durable yet."""
        return sum(job.state not in TERMINAL for job in self._pending.jobs.values())

    @property
    def busy(self) -> tuple[str, ...]:
        """The repositories with jobs that have not ended, or with kept claims."""
        rows = self.durable
        active = [j.repo for j in rows.jobs.values() if j.state not in TERMINAL]
        kept = [left.repo for left in rows.quarantined.values()]
        return tuple(dict.fromkeys(active + kept))

    @property
    def reserved(self) -> list[Job]:
        """The jobs that are dispatched or running."""
        return [job for job in self.durable.jobs.values() if job.state in RESERVED]

    def holds(self, job: str) -> bool:
        """Whether a job is held, as what is not durable yet says."""
        return self._pending.jobs[job].held_at is not None

    def repositories(self) -> list[Repository]:
        known = self.durable.repositories.values()
        return [repo for repo in known if repo.removed_at is None]

    def match(self, selector: str) -> str:
        if selector not in self.durable.jobs:
            raise NotFound(f"no job has the id {selector!r}")
        return selector

    def read(self, name: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._rows(self.durable, name, values)

    def read_pending(self, name: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._rows(self._pending, name, values)

    def _rows(
        self, rows: SimulatedRows, name: str, values: tuple[Any, ...]
    ) -> list[tuple[Any, ...]]:
        match name:
            case "job_attempt":
                job = rows.jobs.get(values[0])
                if job is None:
                    return []
                return [(job.state, job.attempt, job.fence, job.repo)]
            case "job_state":
                job = rows.jobs.get(values[0])
                return [] if job is None else [(job.state,)]
            case "job_spec":
                spec = rows.specs.get(values[0])
                return [] if spec is None else [(_json.encode(spec),)]
            case "by_request":
                return [
                    (job, details.digest)
                    for job, details in rows.details.items()
                    if details.request_id == values[0]
                ]
            case "by_unique":
                return [
                    (job.id,)
                    for job in rows.jobs.values()
                    if job.repo == values[0]
                    and rows.details[job.id].unique == values[1]
                    and job.state not in TERMINAL
                ]
            case "active_of_repository":
                jobs = [job for job in rows.jobs.values() if job.repo == values[0]]
                return [(sum(job.state not in TERMINAL for job in jobs),)]
            case "forgotten_request":
                return []  # no run of the simulation forgets jobs with an id
            case "newest_retries":
                newest: dict[str, str] = {}
                for job_id, details in rows.details.items():
                    if details.retry_of is not None:
                        newest[details.retry_of] = job_id
                return list(newest.items())
            case "retry_jobs":
                return [self._retry_row(rows, job) for job in json.loads(values[0])]
            case _:
                raise LookupError(f"the simulated store has no query {name}")

    def _retry_row(self, rows: SimulatedRows, job_id: str) -> tuple[Any, ...]:
        job, details = rows.jobs[job_id], rows.details[job_id]
        return (
            job.id,
            job.kind,
            job.state,
            job.priority,
            details.provider,
            _json.encode(job.claims).decode(),
            _json.encode(job.after).decode(),
            job.replay,
            job.attempt,
            job.max_attempts,
            job.fence,
            job.queued_at,
            job.started_at,
            None,
            None,
            _json.encode(rows.specs[job_id]).decode(),
            job.repo,
            details.name,
            _json.encode(details.labels).decode(),
            details.unique,
            details.created_at,
            details.origin,
            rows.repositories[job.repo].name,
        )

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        if not self.dead:
            super().when_ended(job, notify)
