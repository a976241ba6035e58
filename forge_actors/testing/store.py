"""A store in memory, for tests that decide themselves when something is durable.

    async with MemoryStore().open() as store:
        store.hold("repo")  # nothing of this repository becomes durable
        saved = store.save(changes)
        store.release("repo")
        await saved.wait()

It keeps the contract of `store_contract.py`, which the real store keeps too. `crash`
forgets what was not durable, as a power cut does.
"""

from __future__ import annotations

import copy
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.backoff import DEFAULT, Backoff
from forge_actors.domain.changes import (
    JobEnded,
    Noted,
)
from forge_actors.domain.errors import StaleFence
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import TERMINAL, Job, JobSpec, State
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.ownership import Owner, fenced
from forge_actors.domain.policies import in_force
from forge_actors.domain.scopes import repository_scope
from forge_actors.testing.kept_controllers import ControllersInMemory
from forge_actors.testing.kept_epics import EpicsInMemory
from forge_actors.testing.kept_schedules import SchedulesInMemory
from forge_actors.testing.kept_store import KeptMemory
from forge_actors.testing.kept_workflows import WorkflowsInMemory
from forge_actors.testing.looks import LooksInMemory
from forge_actors.testing.rows import Rows as Rows
from forge_actors.testing.store_move import Move as Move

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from forge_actors.domain.accounts import Account
    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.errors import StoreFailed, WriterFenced
    from forge_actors.domain.inbox import Mark
    from forge_actors.domain.launch import ProcessIdentity
    from forge_actors.domain.policies import Policy
    from forge_actors.domain.webhooks import HookMark
    from forge_actors.domain.worktrees import Worktree

#: Seconds until a lazy move is committed if no other move comes along.
LAZY_SECONDS = 0.25


class MemoryStore(
    KeptMemory,
    LooksInMemory,
    SchedulesInMemory,
    WorkflowsInMemory,
    ControllersInMemory,
    EpicsInMemory,
):
    """The port `Store`. `commits` counts, `durable` is what a crash leaves."""

    def __init__(
        self,
        *,
        repository_workers: int = 4,
        backoff: Backoff = DEFAULT,
        durable: Rows | None = None,
    ) -> None:
        #: Two stores that are given the same one are two on one file.
        self.durable: Rows = durable or Rows()
        self.owner: Owner | None = None
        self._fence: WriterFenced | None = None
        self.commits = 0
        #: Raised by the next save of any kind.
        self.failure: StoreFailed | None = None
        self._repository_workers = repository_workers
        self._backoff = backoff
        self._pending: Rows = copy.deepcopy(self.durable)
        self._moves: list[Move] = []
        self._held: set[str] = set()
        self._woken = trio.Event()
        self._urgent = trio.Event()
        self._ends: dict[str, list[Callable[[State], None]]] = {}
        self.heard: dict[str, Callable[[], object]] = {}

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MemoryStore, None]:
        """Commit while the block lasts, and once more at its end."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run)
            try:
                yield self
            finally:
                nursery.cancel_scope.cancel()
                self.commit()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            with trio.move_on_after(LAZY_SECONDS):
                await self._urgent.wait()
            await trio.lowlevel.checkpoint()
            self._woken, self._urgent = trio.Event(), trio.Event()
            self.commit()

    def _ready(self) -> list[Move]:
        return [move for move in self._moves if not move.repos & self._held]

    def commit(self) -> None:
        """Make everything durable but the moves of repositories that are held."""
        self._check([])
        moves = self._ready()
        self._moves = [move for move in self._moves if move not in moves]
        self.commits += bool(moves)
        for move in moves:
            for change in move.changes:
                self.durable.apply(change)
        for move in moves:
            for change in move.changes:
                if isinstance(change, JobEnded):
                    for notify in self._ends.pop(change.job, ()):
                        notify(change.state)
                    self._tell_of_end()
                    if change.event.repo in self.heard:
                        self.heard[change.event.repo]()
            move.done.set()
            if move.then is not None:
                move.then()

    def _check(self, changes: Sequence[Change]) -> None:
        """Refuse everything once another store took over what is durable."""
        if self._fence is None and self.durable.owner != self.owner:
            self._fence = fenced(self.owner, self.durable.owner, changes)
        if self._fence is not None:
            moves, self._moves = self._moves, []
            for move in moves:
                move.error = self._fence
                move.done.set()

    def _undo_and_note(self, error: StaleFence, changes: Sequence[Change]) -> None:
        self._pending = copy.deepcopy(self.durable)
        for move in self._moves:
            for change in move.changes:
                self._pending.apply(change)
        about = next(c.event for c in changes if c.event and c.event.job == error.job)
        data = {"reason": error.code, "attempt": error.attempt, "fence": error.fence}
        self.save(
            [Noted(Event("write_refused", about.at, about.repo, error.job, data))]
        )

    # What a test does to it.

    def hold(self, repo: str) -> None:
        """Keep what is saved for this repository from becoming durable."""
        self._held.add(repo)

    def release(self, repo: str) -> None:
        self._held.discard(repo)
        self._woken.set()
        self._urgent.set()

    def crash(self) -> None:
        """Forget what is not durable, and everybody who waits for it."""
        self._moves.clear()
        self._ends.clear()
        self.heard.clear()
        self._held.clear()
        self._pending = copy.deepcopy(self.durable)

    # The port.

    def take_over(
        self, instance: str, process: ProcessIdentity, release: str, now: float
    ) -> Owner:
        last = self.durable.owner
        epoch = 1 if last is None else last.epoch + 1
        self.owner = Owner(epoch, instance, process, release, now)
        self.durable.owner = self._pending.owner = self.owner
        return self.owner

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Move:
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise error
        self._check(changes)
        if self._fence is not None:
            raise self._fence
        move = Move(changes, then)
        try:
            for change in changes:
                self._pending.check(change)
                self._pending.apply(change)
        except StaleFence as error:
            self._undo_and_note(error, changes)
            raise
        self._moves.append(move)
        self._woken.set()
        if not lazy:
            self._urgent.set()
        return move

    def hasten(self) -> None:
        if self._moves:
            self._urgent.set()

    def load(self, repo: str) -> Ledger:
        held = self._pending.repositories[repo]
        return Ledger(
            repo,
            fence=held.fence,
            enabled=held.enabled and held.removed_at is None,
            workers=self._repository_workers,
            pause=self._pending.pauses.get(repository_scope(repo)),
            backoff=self._backoff,
            poisoned=[
                poison
                for (where, _), poison in self._pending.poisoned.items()
                if where == repo
            ],
            quarantined=[
                left for left in self._pending.quarantined.values() if left.repo == repo
            ],
        )

    def load_readable_jobs(
        self, repo: str
    ) -> tuple[list[Job], dict[str, tuple[State, Exception]]]:
        return self.load_jobs(repo), {}

    def load_jobs(self, repo: str) -> list[Job]:
        jobs = [
            copy.copy(job)
            for job in self._pending.jobs.values()
            if job.repo == repo and job.state not in TERMINAL
        ]
        return sorted(jobs, key=lambda job: (job.queued_at, job.id))

    def claims(self, repo: str) -> dict[str, tuple[Claim, ...]]:
        rows = self._pending
        active = [job for job in rows.jobs.values() if job.state not in TERMINAL]
        claims = {job.id: job.claims for job in active if job.repo == repo}
        left = (left for left in rows.quarantined.values() if left.repo == repo)
        return claims | {each.job: each.claims for each in left}

    def spec(self, job: str) -> JobSpec:
        return self._pending.specs[job]

    def accounts(self) -> tuple[Account, ...]:
        """Those of the providers that were closed once."""
        return tuple(self._pending.accounts.values())

    @property
    def policy(self) -> Policy | None:
        return in_force(self._pending.policy)

    def read_policy(self) -> Policy:
        return self._pending.policy

    def child_of(self, job: str) -> str | None:
        return self._pending.children.get(job)

    def worktree(self, job: str) -> Worktree | None:
        return self._pending.worktrees.get(job)

    def inbox_marks(self) -> list[Mark]:
        return list(self._pending.marks.values())

    def webhooks(self) -> list[HookMark]:
        return [mark for _, mark in sorted(self._pending.hooks.items())]

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        held = self.durable.jobs.get(job)
        if held is not None and held.state in TERMINAL:
            notify(held.state)
        elif held is None and job in self.durable.forgotten:
            notify("stale")
        else:
            self._ends.setdefault(job, []).append(notify)
