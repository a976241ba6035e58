"""What the tests of the actors share: a supervisor over a real store, no processes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import (
    repository,
    repository_messages,
    supervisor,
    supervisor_messages,
)
from forge_actors.actors.isolating import Isolating
from forge_actors.actors.mailbox import Mailbox, Reply
from forge_actors.domain.admissions import AdmissionWanted
from forge_actors.domain.backoff import Backoff
from forge_actors.domain.capacity import Limits, tokens_for
from forge_actors.domain.changes import JobAdded, JobDetails, RepositoryAdded
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import Refused
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Budgets, Job, JobSpec
from forge_actors.domain.launch import LaunchOrder, Receipt
from forge_actors.domain.place import Waits
from forge_actors.domain.policies import Policy
from forge_actors.domain.repositories import Repository
from forge_actors.domain.restarts import RestartPolicy
from forge_actors.domain.scopes import repository_of
from forge_actors.edges.sqlite.rows import account_from, pause_from
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.testing.admissions import FakeAdmissions
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.launcher import FakeLauncher
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.worktrees import FakeWorktrees

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.domain.edits import Edit
    from forge_actors.domain.policies import Mode
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.steering import Steering
    from forge_actors.domain.waiting import Waiting

AT_ONCE = Backoff(0.0, 0.0)
#: The work of jobs that have to be admitted.
CANDIDATE = "epic:1"
WRITE = (Claim("write", "repo-content", "*"),)


def order_of(job: str, *, attempt: int = 1, fence: int = 1) -> LaunchOrder:
    return LaunchOrder(
        job=job,
        repo="repo",
        attempt=attempt,
        fence=fence,
        argv=("true",),
        cwd="/",
        env={},
        stdin=None,
        log="/nowhere",
        output_limit=1 << 20,
        wall=None,
        idle=None,
        stop_signal="SIGTERM",
        grace=10.0,
        keep_leftovers=False,
    )


def limits(
    workers: int = 4,
    *,
    repositories: int = 4,
    heavy: int = 2,
    agents: int = 4,
    **providers: int,
) -> Limits:
    tokens = {"workers": workers, "heavy_checks": heavy, "agents": agents}
    tokens |= {f"provider:{name}": count for name, count in providers.items()}
    return Limits(tokens=tokens, active_repositories=repositories)


class World:
    """One runtime without edges: what a test needs to submit, look and break things."""

    def __init__(
        self, store: SqliteStore | MemoryStore, launcher: FakeLauncher
    ) -> None:
        self.store = store
        self.launcher = launcher
        self.clock = FakeClock()
        self.pressure: str | None = None
        self.samples = 0
        self.limits = limits()
        self.restarts = RestartPolicy()
        self.attended = True
        #: Who admits jobs of the work `CANDIDATE`.
        self.admissions = FakeAdmissions()
        self.unclaimed: dict[tuple[str, int], Receipt] = {}
        self.mailbox: Mailbox[supervisor.Message]
        self.ended = trio.Event()
        self._made = 0

    # Before the start

    async def add_repository(self, name: str, **changes: Any) -> None:
        self._made += 1
        added = Repository(
            id=name,
            name=name,
            path=f"/{name}",
            common_dir=f"/{name}/.git",
            device=1,
            inode=self._made,
            added_at=self.clock.now(),
        )
        added = structs.replace(added, **changes)
        event = Event("repository_added", self.clock.now(), name)
        await self.store.save([RepositoryAdded(added, event)]).wait()

    async def start(self, nursery: trio.Nursery) -> None:
        self.mailbox = await nursery.start(self._supervise)

    async def _supervise(
        self, *, task_status: trio.TaskStatus[Mailbox[supervisor.Message]]
    ) -> None:
        try:
            await supervisor.run(self._context(), task_status=task_status)
        finally:
            self.ended.set()

    def _context(self) -> supervisor.Context:
        if isinstance(self.store, SqliteStore):
            busy = self.store.tally.busy
            last = dict(self.store.read("last_dispatches"))
            pauses = [pause_from(row) for row in self.store.read("pauses")]
            accounts = tuple(map(account_from, self.store.read("accounts")))
        else:
            rows_held = self.store.durable
            pauses = list(rows_held.pauses.values())
            accounts = tuple(rows_held.accounts.values())
            active = {j.repo for j in rows_held.jobs.values() if j.state not in ENDED}
            busy = tuple(sorted(active))
            last = {
                repo.id: repo.last_dispatch
                for repo in rows_held.repositories.values()
                if repo.last_dispatch
            }
        return supervisor.Context(
            limits=self.limits,
            store=self.store,
            launcher=self.launcher,
            clock=self.clock,
            pressure=self._sample,
            gone=lambda repo: None,
            make_order=self._order,
            isolating=Isolating(
                self.store, FakeWorktrees(), self.clock, admissions=self.admissions
            ),
            unclaimed=self.unclaimed,
            last_dispatch=last,
            busy=busy,
            accounts=accounts,
            policy=self.store.read_policy(),
            attended=self.attended,
            pauses=tuple(p for p in pauses if repository_of(p.scope) is None),
            restarts=self.restarts,
        )

    def _order(self, job: Job) -> LaunchOrder:
        order = order_of(job.id, attempt=job.attempt, fence=job.fence or 0)
        wanted = self.store.spec(job.id).admission
        return structs.replace(
            order, repo=job.repo, admission=wanted, lasting=wanted is not None
        )

    def _sample(self) -> str | None:
        self.samples += 1
        return self.pressure

    # While it runs

    def job(self, job_id: str, repo: str = "repo", **changes: Any) -> Job:
        kind = changes.get("kind", "repository-command")
        provider = changes.pop("provider", None)
        values: dict[str, Any] = {
            "id": job_id,
            "repo": repo,
            "kind": kind,
            "priority": 2,
            "claims": (),
            "tokens": tokens_for(kind, provider),
            "queued_at": self.clock.now(),
        }
        values |= changes
        if values.get("after"):
            values.setdefault("state", "waiting_for_dependency")
        return Job(**values)

    async def save(self, *jobs: Job) -> None:
        await self.store.save([self.added(job) for job in jobs]).wait()

    def added(self, job: Job) -> JobAdded:
        now = self.clock.now()
        spec = JobSpec(
            argv=("true",),
            cwd="/",
            exit_attempts=job.exit_attempts,
            budgets=Budgets(admission=job.admission_budget, queue=job.queue_budget),
            work=job.work,
            admission=AdmissionWanted(CANDIDATE, 7) if job.work == CANDIDATE else None,
        )
        provider = next(
            (t.partition(":")[2] for t in job.tokens if t.startswith("provider:")), None
        )
        details = JobDetails(created_at=now, origin="test", provider=provider)
        event = Event(f"job_{job.state}", now, job.repo, job.id)
        return JobAdded(job, spec, details, event)

    async def submit(self, *jobs: Job) -> None:
        """Accept the jobs as admission does, and let everybody act on it."""
        by_repo: dict[str, list[Job]] = {}
        for job in jobs:
            by_repo.setdefault(job.repo, []).append(job)

        def submitted() -> None:
            for repo, added in by_repo.items():
                self.mailbox.tell(supervisor.Submitted(repo, tuple(added)))

        changes = [self.added(job) for job in jobs]
        await self.store.save(changes, then=submitted).wait()
        await trio.testing.wait_all_tasks_blocked()

    async def finish(self, *jobs: str, **how: Any) -> None:
        for job in jobs:
            self.launcher.finish(job, **how)
        await trio.testing.wait_all_tasks_blocked()

    async def open(self, repo: str = "repo") -> Mailbox[repository.Message]:
        return await self.mailbox.ask(lambda reply: supervisor.Open(repo, reply))

    async def survey(self) -> supervisor.Survey:
        return await self.mailbox.ask(supervisor.Count)

    async def explain(self, job: str, repo: str = "repo") -> Waits | None:
        actor = await self.open(repo)
        answers = await actor.ask(lambda reply: repository.Explain((job,), reply))
        return answers.get(job)

    async def place(self, job: str, repo: str = "repo") -> Waiting:
        waits = await self.explain(job, repo)
        assert waits is not None
        assert waits.offer is not None
        assert waits.waiting is not None
        offer, ahead, since = waits.offer, waits.ahead, waits.waiting.since
        places: list[Waiting] = await self.mailbox.ask(
            lambda reply: supervisor.Place(((offer, ahead, since),), reply)
        )
        return places[0]

    async def cancel(self, job: str, repo: str = "repo") -> bool:
        actor = await self.open(repo)

        def make(reply: Reply[list[str]]) -> repository.Cancel:
            return repository.Cancel((job,), None, reply)

        return await actor.ask(make) == [job]

    async def steer(self, job: str, how: Steering, repo: str = "repo") -> None:
        actor = await self.open(repo)
        problems: dict[str, str] = await actor.ask(
            lambda reply: repository.Steer((job,), how, reply)
        )
        if problems:
            raise Refused(problems[job])

    async def edit(self, job: str, edit: Edit, repo: str = "repo") -> None:
        actor = await self.open(repo)
        await actor.ask(lambda reply: repository_messages.EditJob(job, edit, reply))

    async def pause(self, scope: str, *, on: bool = True, jobs: bool = False) -> None:
        """Begin or end a pause of the supervisor's, or one of the repository `repo`."""
        if scope == "repo":
            actor = await self.open()
            await actor.ask(lambda reply: repository.PauseHere(on, jobs, reply))
        else:
            await self.mailbox.ask(
                lambda reply: supervisor.SetPause(scope, on, jobs, reply)
            )
        await trio.testing.wait_all_tasks_blocked()

    async def set_policy(
        self, mode: Mode, *, revision: int | None = None, **policy: Any
    ) -> Policy:
        wanted = Policy(mode, **policy)
        made: Policy = await self.mailbox.ask(
            lambda reply: supervisor_messages.SetPolicy(
                wanted, revision, narrows=False, reply=reply
            )
        )
        await trio.testing.wait_all_tasks_blocked()
        return made

    async def crash(self, repo: str = "repo") -> None:
        """Make the actor of a repository fail, as a bug in it would."""
        (await self.open(repo)).tell(BROKEN)
        await trio.testing.wait_all_tasks_blocked()

    async def stop(self, reason: StopReason = "shutdown") -> None:
        self.mailbox.tell(supervisor.Stop(reason))
        await self.ended.wait()

    @property
    def running(self) -> list[str]:
        return [attempt.order.job for attempt in self.launcher.running]

    @property
    def launched(self) -> list[str]:
        return [order.job for order in self.launcher.orders]

    @property
    def paused(self) -> list[str]:
        return [attempt.order.job for attempt in self.launcher.paused]

    def states(self) -> dict[str, str]:
        """The durable state of every job."""
        if isinstance(self.store, MemoryStore):
            return {j.id: j.state for j in self.store.durable.jobs.values()}
        rows = self.store.reader.execute("SELECT id, state FROM job").fetchall()
        return dict(rows)

    def events(self) -> list[str]:
        if isinstance(self.store, MemoryStore):
            return [event.kind for event in self.store.durable.events]
        return [event.kind for event in self.store.events(0, 10_000)]


ENDED = {"succeeded", "failed", "timed_out", "cancelled", "human_attention_required"}


#: A message whose handling fails, as a bug in the actor would.
BROKEN = repository.Cancel(None, None, None)  # type: ignore[arg-type]


@asynccontextmanager
async def world(
    path: Path | None = None,
    *,
    repos: tuple[str, ...] = ("repo",),
    launcher: FakeLauncher | None = None,
    started: bool = True,
    stop: StopReason = "shutdown",
    backoff: Backoff = AT_ONCE,
    **settings: Any,
) -> AsyncGenerator[World, None]:
    """A running supervisor; a store at `path`, or in memory without one."""
    fake = launcher or FakeLauncher()
    if path is None:
        opening = MemoryStore(backoff=backoff).open()
    else:
        opening = open_store(
            path / "store.sqlite",
            repository_workers=settings.pop("repository_workers", 100),
            overtake_after=settings.pop("overtake_after", 1800.0),
            backoff=backoff,
        )  # type: ignore[assignment]
    async with opening as store, fake.open():
        made = World(store, fake)
        for name, value in settings.items():
            setattr(made, name, value)
        known = (
            {repo.id for repo in store.repositories()}
            if isinstance(store, SqliteStore)
            else set()
        )
        made._made = len(known)
        for repo in repos:
            if repo not in known:
                await made.add_repository(repo)
        if not started:
            yield made
            return
        async with trio.open_nursery() as nursery:
            await made.start(nursery)
            await trio.testing.wait_all_tasks_blocked()
            yield made
            if not made.ended.is_set():
                await made.stop(stop)
