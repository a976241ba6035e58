"""The half of the store in memory that a clean-up needs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from forge_actors.domain.causes import Traits
from forge_actors.domain.changes import (
    AttemptUsed,
    ClassVisited,
    CleanRunChanged,
    EventsForgotten,
    ForgottenJob,
    JobAdded,
    JobEnded,
    JobsForgotten,
)
from forge_actors.domain.day_budgets import DayUse
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.spending import used_before

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from forge_actors.domain.agents import Usage
    from forge_actors.domain.changes import Change
    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.maintenance import ClassVisit, CleanRun
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.spending import AttemptUsage
    from forge_actors.domain.worktrees import Worktree


class KeptRows:
    """What a store holds of what may go, and of those who look for it."""

    jobs: dict[str, Job]
    repositories: dict[str, Repository]
    events: list[Event]
    quarantined: dict[str, Quarantine]
    worktrees: dict[str, Worktree]
    children: dict[str, str]

    def __init__(self) -> None:
        self.created_at: dict[str, float] = {}
        self.traits: dict[str, Traits] = {}
        self.ended_at: dict[str, float] = {}
        #: The jobs that were accepted under a request id, gone ones included.
        self.requests: dict[str, str] = {}
        #: By the job that was made from it: the one that was retried.
        self.retries: dict[str, str] = {}
        #: What was removed, and when.
        self.forgotten: dict[str, float] = {}
        self.visits: dict[CleanClass, ClassVisit] = {}
        #: What attempts of agents used, by job and attempt.
        self.usage: dict[tuple[str, int], AttemptUsage] = {}
        self.run: CleanRun | None = None
        #: The number of the first event that is left.
        self.first_event = 1

    def copy_kept(self, made: KeptRows) -> None:
        """Give another one all of it."""
        made.created_at = self.created_at.copy()
        made.traits = self.traits.copy()
        made.ended_at = self.ended_at.copy()
        made.retries = self.retries.copy()
        made.requests = self.requests.copy()
        made.forgotten = self.forgotten.copy()
        made.visits = self.visits.copy()
        made.usage = self.usage.copy()
        made.run = self.run
        made.first_event = self.first_event

    def keep(self, change: Change) -> None:
        """Note what a change says of what may go."""
        match change:
            case JobAdded(job, _, details):
                self.created_at[job.id] = details.created_at
                self.traits[job.id] = Traits(
                    *(job.id, job.kind, details.name, details.labels, details.origin)
                )
                if details.request_id is not None:
                    self.requests[details.request_id] = job.id
                if details.retry_of is not None:
                    self.retries[job.id] = details.retry_of
            case JobEnded(job=job_id, at=at):
                self.ended_at[job_id] = at
            case JobsForgotten(jobs, at):
                for gone in jobs:
                    self._forget(gone.job)
                    self.forgotten[gone.job] = at
            case EventsForgotten(until):
                self.first_event = max(self.first_event, until)
            case AttemptUsed(row):
                self.usage[row.job, row.attempt] = row
            case ClassVisited(visit):
                self.visits[visit.clean_class] = visit
            case CleanRunChanged(run):
                self.run = run
            case _:
                pass

    def _forget(self, job: str) -> None:
        del self.jobs[job]
        self.traits.pop(job, None)
        for rows in (self.created_at, self.ended_at, self.retries, self.children):
            rows.pop(job, None)

    def refers_to(self, job: str) -> bool:
        """Whether anything here would miss it."""
        tree = self.worktrees.get(job)
        return (
            job in self.quarantined
            or (tree is not None and tree.state != "removed")
            or job in self.retries.values()
            or job in self.children.values()
            or any(
                job in other.after
                for other in self.jobs.values()
                if other.state not in TERMINAL
            )
        )


class KeptMemory:
    """The port `KeptStore`, but for what every store has."""

    durable: KeptRows
    _pending: KeptRows
    _once_ended: Callable[[], object] | None = None
    #: Bytes that the next upkeep frees, and whether each one might vacuum.
    free_bytes = 0
    upkeeps: tuple[bool, ...] = ()
    forgettings = 0

    def session_usage(self, agent: str, session: str) -> Usage | None:
        rows = self._pending.usage.values()
        same = (row for row in rows if (row.agent, row.session) == (agent, session))
        return used_before(same)

    def used_since(self, at: float) -> list[DayUse]:
        rows = self._pending
        uses: dict[tuple[str, str | None], DayUse] = {}
        for row in rows.usage.values():
            if row.at < at:
                continue
            key = (row.repo, row.provider)
            known = uses.get(key)
            cost, tokens = (0.0, 0) if known is None else (known.cost, known.tokens)
            cost += row.usage.cost or 0.0
            tokens += (row.usage.input_tokens or 0) + (row.usage.output_tokens or 0)
            name = rows.repositories[row.repo].name
            uses[key] = DayUse(row.repo, name, row.provider, cost, tokens)
        return list(uses.values())

    def last_end(self) -> float | None:
        return max(self.durable.ended_at.values(), default=None)

    def once_ended(self, notify: Callable[[], object]) -> None:
        self._once_ended = notify

    def _tell_of_end(self) -> None:
        notify, self._once_ended = self._once_ended, None
        if notify is not None:
            notify()

    async def quiet(self) -> None:
        """What is saved is always written at once here."""

    def clean_run(self) -> CleanRun | None:
        return self.durable.run

    def class_visits(self) -> dict[CleanClass, ClassVisit]:
        return self.durable.visits.copy()

    @asynccontextmanager
    async def forgetting(self) -> AsyncGenerator[None, None]:
        yield

    def forgettable(
        self, jobs: Sequence[str], ended_before: float
    ) -> tuple[ForgottenJob, ...]:
        rows = self._pending
        self.forgettings += 1
        return tuple(
            ForgottenJob(job, rows.jobs[job].repo, rows.jobs[job].state)
            for job in jobs
            if rows.ended_at.get(job, ended_before) < ended_before
            and not rows.refers_to(job)
        )

    async def oldest_active(self) -> float | None:
        rows = self.durable
        active = [job.id for job in rows.jobs.values() if job.state not in TERMINAL]
        return min((rows.created_at[job] for job in active), default=None)

    def old_history(
        self, after: int, before: int, rows: int
    ) -> list[tuple[int, int, float]]:
        kept = self.durable
        first = max(after + 1, kept.first_event)
        found = kept.events[first - 1 : before - 1]
        return [(event.seq, event.seq + 1, event.at) for event in found[:rows]]

    def history_range(self) -> tuple[int, int]:
        return self.durable.first_event, max(1, len(self.durable.events))

    async def upkeep(self, *, may_vacuum: bool) -> int:
        self.upkeeps += (may_vacuum,)
        freed, self.free_bytes = self.free_bytes, 0
        return freed
