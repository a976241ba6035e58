"""The events alone tell the whole history: who held what, at every point."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from forge_actors.domain.claims import Claim
from forge_actors.domain.events import EventView
from forge_actors.domain.history import History
from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.requests import JobEdit, JobRequest
from forge_actors.runtime.runtime import open_runtime
from forge_actors.runtime.views import event_view
from tests.runtime.kit import make_repository, settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.recovery import StopReason
    from forge_actors.edges.sqlite.store import SqliteStore

LIMITS: dict[str, Any] = {
    "limits": {"workers": 3, "active_repositories": 2, "heavy_checks": 1, "agents": 2},
    "providers": {"local": {"limit": 1}, "other": {"limit": 2}},
}
_claims = msgspec.json.Decoder(tuple[Claim, ...])
_texts = msgspec.json.Decoder(tuple[str, ...])


class Auditor:
    """Folds the events of a store while they come, and compares after each commit."""

    def __init__(self) -> None:
        self.history = History()
        self.looks = 0
        self._looked = trio.Event()
        self.kinds: set[str] = set()
        #: What each job went through.
        self.states: dict[str, list[str]] = {}

    async def watch(self, store: SqliteStore) -> None:
        while True:
            await store.committed.wait_value(lambda last: last > self.history.seq)
            self.look(store)

    def look(self, store: SqliteStore) -> None:
        """Nothing is committed meanwhile: there is no pause in here."""
        for event in store.events(self.history.seq, 1 << 30):
            line = msgspec.json.encode(event_view(event, {}))
            told = msgspec.json.decode(line, type=EventView)
            self.history.apply(told)
            self.kinds.add(told.kind)
            if told.job is not None:
                self.states.setdefault(told.job, []).append(told.kind)
            if told.kind == "job_dispatched":
                assert told.job is not None
                assert self.history.faults(told.job) == []
        self.looks += 1
        self._compare_jobs(store)
        self._compare_repositories(store)
        self._looked.set()
        self._looked = trio.Event()

    async def until(self, holds: Callable[[], object]) -> None:
        while not holds():
            await self._looked.wait()

    def suspended(self) -> set[str]:
        return {job.id for job in self.history.jobs.values() if job.suspended}

    def _compare_jobs(self, store: SqliteStore) -> None:
        rows = store.reader.execute(
            "SELECT id, repo, state, kind, priority, provider, claims, after, name,"
            " labels, retry_of, origin, attempt, fence, held_at IS NOT NULL FROM job"
        ).fetchall()
        assert {row[0] for row in rows} == self.history.jobs.keys()
        leases: dict[str, dict[str, tuple[Claim, ...]]] = {}
        tokens: dict[str, set[str]] = {}
        for row in rows:
            job = self.history.jobs[row[0]]
            assert (job.repo, job.state, job.kind) == row[1:4]
            assert (PRIORITIES.index(job.priority), job.provider) == row[4:6]
            assert job.claims == _claims.decode(row[6])
            assert job.after == _texts.decode(row[7])
            assert (job.name, job.retry_of, job.origin) == (row[8], row[10], row[11])
            assert job.labels == _texts.decode(row[9])
            assert job.attempt == row[12]
            assert job.held == bool(row[14])
            reserved = job.state in RESERVED
            assert job.fence == (row[13] if reserved else None)
            if reserved:
                leases.setdefault(job.repo, {})[job.id] = job.claims
                # Of one that waits for the end of another they are what it is to get.
                for token in () if job.ahead else job.tokens:
                    tokens.setdefault(token, set()).add(job.id)
        assert self.history.leases == leases
        held = {kind: set(jobs) for kind, jobs in self.history.tokens.items() if jobs}
        assert held == tokens

    def _compare_repositories(self, store: SqliteStore) -> None:
        rows = store.reader.execute(
            "SELECT id, name, path, enabled, removed_at IS NOT NULL, fence"
            " FROM repository"
        ).fetchall()
        known = {
            repo.id: (repo.id, repo.name, repo.path, repo.enabled, repo.removed)
            for repo in self.history.repositories.values()
        }
        assert known == {row[0]: (*row[:3], bool(row[3]), bool(row[4])) for row in rows}
        for row in rows:
            assert self.history.repositories[row[0]].fence == row[5]
        pauses = store.reader.execute("SELECT scope, jobs FROM pause").fetchall()
        assert self.history.pauses == {scope: bool(jobs) for scope, jobs in pauses}

    async def compare_use(self, runtime: Runtime) -> None:
        """What the supervisor counts at this moment, while nothing moves."""
        await self.until(lambda: self.history.seq == runtime.control.last_event)
        status = await runtime.status()
        capacity, providers = status["capacity"], status["providers"]
        assert isinstance(capacity, dict)
        assert isinstance(providers, dict)
        active = capacity.pop("active_repositories")
        assert active["used"] == len(self.history.leases)
        assert active["limit"] == self.history.active_repositories
        uses = {
            **capacity,
            **{f"provider:{name}": use for name, use in providers.items()},
        }
        assert uses.keys() == self.history.limits.keys()
        for token, use in uses.items():
            assert set(use["jobs"]) == set(self.history.holders(token))
            assert use["limit"] == self.history.limits[token]


@asynccontextmanager
async def audited(
    home: Path, auditor: Auditor, *, stop: StopReason = "cancelled", **tables: Any
) -> AsyncGenerator[Runtime, None]:
    async with open_runtime(home, settings(**tables), stop=stop) as runtime:
        store = runtime.control._store
        async with trio.open_nursery() as nursery:
            nursery.start_soon(auditor.watch, store)
            yield runtime
            nursery.cancel_scope.cancel()
        auditor.look(store)


async def begun(runtime: Runtime, *jobs: str, after: int = 0) -> None:
    """Wait until each of the jobs runs, or has run since an event."""
    left = set(jobs)
    async for told in runtime.events(after=after):
        if told.kind == "job_running" and told.job in left:
            left.discard(told.job)
            if not left:
                return


async def submit(runtime: Runtime, repo: str, *argv: str, **options: Any) -> str:
    request = JobRequest(repo, list(argv) or ["true"], **options)
    [accepted] = await runtime.control.submit([request])
    return accepted.id


async def ways_to_end(runtime: Runtime, home: Path) -> list[str]:
    """Jobs of every kind of end that needs nobody's help."""
    flag = home / "flag"
    twice = f"test -e {flag} || {{ touch {flag}; kill -9 $$; }}"
    bad = await submit(runtime, "a", "false", name="bad", labels=["l", "m"])
    jobs = [
        bad,
        await submit(runtime, "a", after=[bad]),
        await submit(runtime, "a", "no-such-program", priority="P0"),
        await submit(runtime, "b", "sh", "-c", twice, replay="safe"),
        await submit(runtime, "b", "false", replay="always", max_attempts=2),
        await submit(runtime, "b", "sleep", "600", timeout=1),
        await submit(runtime, "c", "sh", "-c", "kill -9 $$"),
    ]
    batch = [
        JobRequest(repo, ["true"], kind=kind, claims=claims, provider=provider)
        for repo in "abc"
        for kind, claims in (
            ("check", []),
            ("repository-command", ["write:path:src/x", "read:git-refs"]),
            ("repository-command", ["exclusive:repo-content:*"]),
            ("agent-run", ["read:path:src"]),
        )
        for provider in (None, "local", "other")
    ]
    jobs += [entry.id for entry in await runtime.control.submit(batch)]
    first, second = await runtime.control.submit(
        [
            JobRequest("c", ["true"], name="first", read_only=True),
            JobRequest("b", ["true"], name="second", after=["first"], priority="P4"),
        ]
    )
    return [*jobs, first.id, second.id]


async def test_the_events_alone_rebuild_every_moment_of_a_varied_run(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    auditor = Auditor()
    async with audited(home, auditor, **LIMITS) as runtime:
        control = runtime.control
        for name in "abc":
            await runtime.add_repository(make_repository(tmp_path / name))
        ended = await ways_to_end(runtime, home)
        await control.wait(ended)
        again = await control.retry(ended[:2], origin="cli")
        await control.wait([made.id for made in again])
        # Three that run, one that waits for a claim, one for a token.
        running = [
            await submit(runtime, "a", "sleep", "600", provider="local"),
            await submit(runtime, "b", "sleep", "600", kind="check", name="long"),
            await submit(
                runtime, "b", "sleep", "600", kind="agent-run", claims=["read:path:x"]
            ),
        ]
        waiting = [
            await submit(runtime, "a", name="behind"),
            await submit(runtime, "c", kind="check", after=[running[1]]),
            await submit(runtime, "b", provider="local"),
        ]
        await begun(runtime, *running)
        await auditor.compare_use(runtime)
        assert len(auditor.history.holders("agents")) == 2
        await control.edit(waiting[2], JobEdit(priority="P0", claims=["read:path:y"]))
        await control.hold(waiting[2])
        await control.pause_job(running[0])
        await control.pause("all", jobs=True)
        await control.pause("provider:local")
        await auditor.until(lambda: auditor.suspended() == set(running))
        await control.resume_job(running[0])
        await auditor.until(lambda: not auditor.history.jobs[running[0]].held)
        assert auditor.suspended() == set(running), "by the pause it is, still"
        await control.resume("all")
        await control.unhold(waiting[2])
        await control.pause("repo:a", jobs=True)
        await auditor.until(lambda: auditor.suspended() == {running[0]})
        await control.enable_repository("a", enabled=False)
        for job in (waiting[0], running[1]):
            await control.cancel(job)
        await control.wait([waiting[0], *waiting[1:2], running[1]])
        await control.enable_repository("a", enabled=True)
        (tmp_path / "a").rename(tmp_path / "moved")
        await runtime.add_repository(tmp_path / "moved")
        await control.remove_repository("a", cancel=True)
        make_repository(tmp_path / "a")
        await runtime.add_repository(tmp_path / "a")
        for job in (running[2], waiting[2]):
            await control.cancel(job)
        await control.wait([*running, *waiting])
        await auditor.compare_use(runtime)
        assert auditor.history.tokens == {kind: {} for kind in auditor.history.tokens}
    assert auditor.looks > 20
    states = {job.state for job in auditor.history.jobs.values()}
    ends = {"succeeded", "failed", "timed_out", "cancelled", "human_attention_required"}
    assert states == ends
    assert {"job_queued", "repository_moved", "repository_enabled"} <= auditor.kinds


async def test_the_history_goes_on_over_a_restart_with_other_limits(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    auditor = Auditor()
    async with audited(home, auditor, stop="shutdown", **LIMITS) as runtime:
        await runtime.add_repository(make_repository(tmp_path / "a"))
        again = await submit(
            runtime, "a", "sleep", "600", replay="safe", claims=["read:path:x"]
        )
        once = await submit(runtime, "a", "sleep", "600", claims=["read:path:y"])
        await begun(runtime, again, once)
        await auditor.until(lambda: auditor.history.jobs[once].state == "running")
        assert auditor.history.runtime is not None
        assert auditor.history.ready
    smaller = {"limits": {"workers": 1}, "providers": {"local": {"limit": 4}}}
    async with audited(home, auditor, **smaller) as runtime:
        await begun(runtime, again, after=auditor.history.seq)
        await auditor.until(lambda: auditor.history.jobs[again].state == "running")
        assert auditor.history.limits["workers"] == 1
        assert "provider:other" not in auditor.history.limits
        await auditor.compare_use(runtime)
        await runtime.control.cancel(again)
        await runtime.control.wait([again])
        assert auditor.history.jobs[again].attempt == 2
    assert auditor.states[once][-1] == "job_human_attention_required"
    ran = ["job_queued", "job_dispatched", "job_running"]
    waited = ["job_waiting_for_retry"]
    assert auditor.states[again] == [*ran, *waited, *ran, "job_cancelled"]
