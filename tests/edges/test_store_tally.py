"""The tally, kept in memory, is what counting the rows would say at every commit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.changes import JobRequeued, JobWaits
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    ended_waiting,
    job,
    ran,
    repository,
)
from tests.edges.store_kit import opened, path

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import State
    from forge_actors.edges.sqlite.store import SqliteStore

__all__ = ["path"]

REPOS = ("one", "two", "three")


def waits(name: str, repo: str, state: State) -> JobWaits:
    return JobWaits(name, state, Event(f"job_{state}", 5.0, repo, name))


def requeued(name: str, repo: str, state: State, fence: int) -> JobRequeued:
    event = Event(f"job_{state}", 5.0, repo, name)
    return JobRequeued(name, 1, fence, state, None, 5.0, event)


class Jobs:
    """Random moves of a few jobs; each is a legal one."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._jobs: dict[str, tuple[str, State]] = {}
        self._fence = 0
        self._fences: dict[str, int] = {}

    def move(self) -> Change:
        chance = self._chance
        living = [n for n, (_, state) in self._jobs.items() if state not in TERMINAL]
        if not living or chance.random() < 0.3:
            name, repo = f"job{len(self._jobs)}", chance.choice(REPOS)
            state: State = chance.choice(["queued", "waiting_for_dependency"])
            self._jobs[name] = (repo, state)
            return job(name, repo, state=state)
        name = chance.choice(living)
        repo, state = self._jobs[name]
        change, now = self._next(name, repo, state)
        self._jobs[name] = (repo, now)
        return change

    def _next(self, name: str, repo: str, state: State) -> tuple[Change, State]:
        chance = self._chance
        end: State = chance.choice(["succeeded", "failed", "cancelled"])
        other: State = chance.choice(["queued", "waiting_for_workspace"])
        fence = self._fences.get(name, 0)
        if chance.random() < 0.2:
            if state in RESERVED:
                return ended(name, repo, end, fence=fence), end
            return ended_waiting(name, repo, end), end
        if state == "dispatched" and chance.random() < 0.6:
            return ran(name, repo, fence=fence), "running"
        if state in RESERVED:
            return requeued(name, repo, other, fence), other
        if chance.random() < 0.4:
            return waits(name, repo, other), other
        self._fence += 1
        self._fences[name] = self._fence
        return dispatched(name, repo, fence=self._fence), "dispatched"


def counted(store: SqliteStore) -> dict[str, Any]:
    """What the rows say."""
    rows = store.reader.execute("SELECT id, repo, state FROM job").fetchall()
    by_state: dict[str, int] = {}
    by_repo: dict[str, dict[str, int]] = {}
    waiting_and_running: dict[str, list[int]] = {}
    for _, repo, state in rows:
        by_state[state] = by_state.get(state, 0) + 1
        there = by_repo.setdefault(repo, {})
        there[state] = there.get(state, 0) + 1
        if state not in TERMINAL:
            waiting_and_running.setdefault(repo, [0, 0])[state in RESERVED] += 1
    return {
        "by_state": by_state,
        "by_repo": by_repo,
        "waiting_and_running": {r: tuple(n) for r, n in waiting_and_running.items()},
        "running": sorted(name for name, _, state in rows if state in RESERVED),
        "active": sum(state not in TERMINAL for _, _, state in rows),
    }


def tallied(store: SqliteStore) -> dict[str, Any]:
    tally = store.tally
    by_repo = {repo: tally.of_repository(repo) for repo in REPOS}
    running = [name for repo in REPOS for name in tally.running_of(repo)]
    assert sorted(running) == sorted(tally.reserved)
    assert set(tally.busy) == set(tally.waiting_and_running())
    assert sum(map(tally.active_of, REPOS)) == tally.active
    return {
        "by_state": tally.by_state(),
        "by_repo": {repo: counts for repo, counts in by_repo.items() if counts},
        "waiting_and_running": tally.waiting_and_running(),
        "running": sorted(running),
        "active": tally.active,
    }


@pytest.mark.mock_clock
@pytest.mark.parametrize("seed", range(5))
async def test_after_any_moves_it_is_that_of_the_rows(path: Path, seed: int) -> None:
    jobs = Jobs(seed)
    async with opened(path) as store:
        await store.save([repository(repo) for repo in REPOS]).wait()
        for _ in range(40):
            await store.save([jobs.move() for _ in range(5)]).wait()
            assert tallied(store) == counted(store)
        before = counted(store)
    async with opened(path) as store:
        assert tallied(store) == before


async def test_what_is_not_durable_is_not_counted(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a")]).wait()
        saved = store.save([dispatched("a"), job("b")])
        assert store.tally.by_state() == {"queued": 1}
        await saved.wait()
        assert store.tally.by_state() == {"queued": 1, "dispatched": 1}
