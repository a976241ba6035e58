"""What the nouns of the control share: the parts of one runtime, and its actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio
from msgspec import structs

from forge_actors.actors.repository_messages import Cancel
from forge_actors.actors.supervisor_messages import Open
from forge_actors.domain.capacity import provider_token
from forge_actors.domain.changes import JobEnded, TakenBack
from forge_actors.domain.errors import MailboxClosed, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import RESERVED, WAITING, JobError
from forge_actors.domain.pauses import Pauses
from forge_actors.domain.scopes import describe, repository_of
from forge_actors.domain.worktrees import worktree_view
from forge_actors.edges.sqlite.rows import (
    pause_from,
    poison_from,
    spec_from,
    worktree_from,
)
from forge_actors.runtime.endings import Endings
from forge_actors.runtime.event_log import EventLog
from forge_actors.runtime.held import Held
from forge_actors.runtime.own_templates import OwnTemplates
from forge_actors.runtime.trusts import Trusts
from forge_actors.runtime.views import pause_view, roots_of, view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from forge_actors.actors import repository_messages as repository
    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.supervisor_messages import Message, RepositoryMailbox
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.pauses import PauseView
    from forge_actors.domain.poison import Poison
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.scopes import Pause
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.admission import Admission
    from forge_actors.runtime.agent_programs import AgentPrograms
    from forge_actors.runtime.automation import Automation
    from forge_actors.runtime.disk_watch import DiskWatch
    from forge_actors.runtime.edges import JobLauncher
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.looking import Looking
    from forge_actors.runtime.readiness import Board
    from forge_actors.runtime.registry import Registry
    from forge_actors.runtime.served_release import ServedRelease

A = TypeVar("A")
#: Actors that are remembered, so that the supervisor need not be asked for them.
MAX_KNOWN = 1000


class ControlBase:
    """The parts of one runtime; a class for each noun adds what can be asked of it."""

    def __init__(
        self,
        *,
        home: Path,
        store: SqliteStore,
        launcher: JobLauncher,
        clock: Clock,
        settings: SettingsInForce,
        registry: Registry,
        admission: Admission,
        mailbox: Mailbox[Message],
        looking: Looking,
        disk: DiskWatch,
        served: ServedRelease | None = None,
        programs: AgentPrograms | None = None,
        session: Callable[[str, int], str | None] = lambda job, attempt: None,
        board: Board,
        automation: Automation,
    ) -> None:
        self._home = home
        self._roots = roots_of(home)
        self._store = store
        self._launcher = launcher
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._admission = admission
        self._supervisor = mailbox
        self._looking = looking
        self._disk = disk
        #: None in an embedded runtime, which is of no release but its program's.
        self._served = served
        self._programs = programs
        #: That of an attempt that runs, once it is known.
        self._session = session
        self.board = board
        self.automation = automation
        self.scheduling = automation.scheduling
        self.running_workflows = automation.workflows
        self.controllers = automation.controllers
        self.running_epics = automation.epics
        #: Actors of repositories that were found before, and to which no jobs are on
        #: their way; and how often some were.
        self._actors: dict[str, RepositoryMailbox] = {}
        self._submissions = 0
        self.trusts = Trusts(store, clock, registry.get)
        self.own_templates = OwnTemplates(home)
        self._started_at = clock.wall()
        self._endings = Endings(store)
        #: Set once an orderly stop was asked for, or another release serves.
        self.stop_requested = trio.Event()
        #: Whether the stop is to end what runs, where that could go on without us.
        self.ends_jobs = False
        #: Where it is served over TCP, as a URL.
        self.endpoint: str | None = None
        #: What there is for agents; the service says so once it knows.
        self.mcp_view: Callable[[], dict[str, object]] = _no_service
        self._held = Held()
        self._events = EventLog(store, registry, clock, self._held, self._roots)

    def submitted(self, repo: str) -> None:
        """Jobs are on their way to the actor of a repository, through the supervisor:
        what is asked about them has to go the same way, or it is there before them."""
        self._actors.pop(repo, None)
        self._submissions += 1

    async def _open(self, repo: str) -> RepositoryMailbox:
        before = self._submissions
        actor: RepositoryMailbox = await self._supervisor.ask(
            lambda reply: Open(repo, reply)
        )
        if len(self._actors) >= MAX_KNOWN:
            self._actors.clear()
        if self._submissions == before:
            self._actors[repo] = actor
        return actor

    async def _actor(self, repo: str) -> RepositoryMailbox:
        """The actor of a repository, which may have ended since it was found."""
        return self._actors.get(repo) or await self._open(repo)

    async def _ask(
        self, repo: str, make: Callable[[Reply[A]], repository.Message]
    ) -> A:
        """What the actor of a repository answers to the message that `make` builds."""
        while True:
            actor = await self._actor(repo)
            try:
                return await actor.ask(make)
            except MailboxClosed:
                # It has ended, or fell asleep before our message came: wake it.
                self._actors.pop(repo, None)

    async def _cancel(
        self, jobs: tuple[str, ...], repo: str, grace: float | None
    ) -> None:
        aside = self._aside(repo)
        if aside:
            jobs = await self._cancel_aside(jobs, repo, aside)
        if jobs:
            await self._ask(repo, lambda reply: Cancel(jobs, grace, reply))

    def _aside(self, repo: str) -> dict[str, Poison]:
        """What was set aside of a repository, by job; all of it under no name."""
        poisons = map(poison_from, self._store.read("poisons_of", repo))
        return {poison.job: poison for poison in poisons}

    async def _cancel_aside(
        self, jobs: tuple[str, ...], repo: str, aside: dict[str, Poison]
    ) -> tuple[str, ...]:
        """End those that were set aside, which no actor does; the others come back.

        Raises:
            Refused: one may run.
        """
        changes: list[Change] = []
        rest: list[str] = []
        for job in jobs:
            if job not in aside and "" not in aside:
                rest.append(job)
                continue
            [(state, attempt, _, _)] = self._store.read_pending("job_attempt", job)
            if state in RESERVED:
                known = self._registry.get(repo)
                name = known.name if known else repo
                raise Refused(
                    f"job {job} was set aside while it ran, and nobody can tell what it"
                    f" came to: forge-actors repo enable {name} tries again"
                )
            if state in WAITING:
                changes += self._ended_aside(job, repo, attempt)
        if changes:
            await self._store.save(changes).wait()
        return tuple(rest)

    def _ended_aside(self, job: str, repo: str, attempt: int) -> list[Change]:
        now = self._clock.now()
        error = JobError("CANCELLED", "it was cancelled after it had been set aside")
        data: dict[str, object] = {"attempt": attempt, "error": error}
        event = Event("job_cancelled", now, repo, job, data)
        ended = JobEnded(job, attempt, None, "cancelled", error, now, None, event)
        back = Event("repository_taken_back", now, repo, job)
        return [ended, TakenBack(repo, back, job)]

    def _row(self, job_id: str) -> tuple[Any, ...]:
        rows = self._store.read("view_job", job_id)
        if not rows:
            raise self._store.not_found(job_id)
        return rows[0]

    def _view(self, row: tuple[Any, ...]) -> JobView:
        job = view(row, self._roots)
        if job.worktree is not None:
            job = structs.replace(job, worktree=self._worktree_view(row))
        if job.agent is not None and job.state in RESERVED:
            session = self._session(job.id, job.attempt) or job.agent.session
            agent = structs.replace(job.agent, session=session)
            job = structs.replace(job, agent=agent)
        if self._suspended(row) is None:
            return job
        return structs.replace(job, paused=True)

    def _worktree_view(self, row: tuple[Any, ...]) -> dict[str, object] | None:
        isolation = spec_from((row[5],)).isolation
        if isolation is None:
            return None
        rows = self._store.read("worktree", isolation.of or row[0])
        known = worktree_from(rows[0]) if rows else None
        return worktree_view(isolation, known, str(self._home.absolute()))

    def _suspended(self, row: tuple[Any, ...]) -> tuple[str, float] | None:
        """Why a job that runs stands still and since when; None if it does not."""
        job_id, state, provider, repo, held_at = row[0], row[1], row[12], *row[25:27]
        if state not in RESERVED:
            return None
        if held_at is not None:
            resume = f"forge-actors resume {job_id} lets it go on"
            return f"somebody paused it; {resume}", held_at
        tokens = () if provider is None else (provider_token(provider),)
        here = (p for p in self._pauses() if repository_of(p.scope) in (None, repo))
        pause = Pauses(here).suspending(tokens)
        return None if pause is None else (describe(pause.scope), pause.since)

    def _pauses(self) -> list[Pause]:
        return [pause_from(row) for row in self._store.read("pauses")]

    def _pause_views(self) -> list[PauseView]:
        views = []
        for pause in self._pauses():
            repo = repository_of(pause.scope)
            known = None if repo is None else self._registry.get(repo)
            views.append(pause_view(pause, known.name if known else repo))
        return views


def _no_service() -> dict[str, object]:
    return {"available": False, "note": "only a service serves agents"}
