"""Runs of EPICs by a runtime: when one goes on, waits, is set aside, or has ended."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import epic
from forge_actors.domain.epic.errors import LockHeld
from forge_actors.domain.epic.runs import EpicRequest, loaded
from forge_actors.domain.epic.stopping import End
from forge_actors.domain.epic_changes import EpicSaved
from forge_actors.domain.errors import Refused
from forge_actors.runtime import epic_sites
from forge_actors.runtime.epics import RunningEpics
from forge_actors.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

pytestmark = pytest.mark.mock_clock

DONE = End("nothing-admissible")


class Store:
    """Keeps what is saved, at once."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.active: dict[str, bool] = {}
        self.requests: dict[str, str] = {}
        self.kinds: list[str] = []
        #: The jobs of each work, and who wants to hear of their ends.
        self.jobs: list[tuple[str, str]] = []
        self.ends: dict[str, Callable[[Any], None]] = {}

    def save(self, changes: Any, *, then: Callable[[], object] | None = None) -> Any:
        for change in changes:
            if isinstance(change, EpicSaved):
                self.bodies[change.epic] = change.body
                self.active[change.epic] = change.active
                if change.request is not None:
                    self.requests[change.request] = change.epic
            if change.event is not None:
                self.kinds.append(change.event.kind)
        if then is not None:
            then()
        return SimpleNamespace(wait=trio.lowlevel.checkpoint)

    def active_epics(self) -> list[str]:
        return [name for name, active in self.active.items() if active]

    def epic(self, run: str) -> bytes | None:
        return self.bodies.get(run)

    def epic_of_request(self, request: str) -> str | None:
        return self.requests.get(request)

    def read_pending(self, _name: str, _work: str) -> list[tuple[str, str]]:
        return self.jobs

    def when_ended(self, job: str, notify: Callable[[Any], None]) -> None:
        self.ends[job] = notify


class World:
    """The sites and schedulers are scripted: each takes the next of `script`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = Store()
        self.clock = FakeClock()
        self.script: list[End | Exception | trio.Event] = []
        #: The requests with which schedulers began, and when.
        self.began: list[tuple[EpicRequest, float]] = []
        self.names = iter(f"run{number}" for number in range(100))
        world = self

        class Site:
            issues = SimpleNamespace(close=lambda: None)
            common_dir = "/repo/.git"

            def __init__(self, _served: Any, run: Any) -> None:
                self.run = run
                self.jobs: dict[int, str] = {}

            @asynccontextmanager
            async def opened(self) -> AsyncIterator[None]:
                yield

            def context(self, _nursery: Any, **_others: Any) -> Any:
                return self.run

            def ask_to_stop(self, _mode: str) -> bool:
                return False

        async def run(kept: Any) -> End:
            world.began.append((kept.request, trio.current_time()))
            step = world.script.pop(0) if world.script else DONE
            if isinstance(step, trio.Event):
                await step.wait()
                step = DONE
            await trio.lowlevel.checkpoint()
            if isinstance(step, Exception):
                raise step
            return step

        monkeypatch.setattr(epic_sites, "JobSite", Site)
        monkeypatch.setattr(epic_sites, "checked", lambda _served, _request: None)
        monkeypatch.setattr(epic, "run", run)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningEpics]:
        served: Any = SimpleNamespace(
            store=self.store,
            clock=self.clock,
            candidates=SimpleNamespace(serving=lambda *_: nullcontext()),
            new_id=lambda: next(self.names),
        )
        async with trio.open_nursery() as nursery:
            epics = RunningEpics(served)
            nursery.start_soon(epics.run)
            yield epics
            epics.stop_all()

    def known(self, run: str) -> Any:
        return loaded(self.store.bodies[run])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    return World(monkeypatch)  # type: ignore[return-value]


def request(name: str = "plan.toml", **more: Any) -> EpicRequest:
    return EpicRequest(name, "app", **more)


async def test_the_same_request_is_one_run_and_the_same_epic_runs_once(
    world: World,
) -> None:
    gate = trio.Event()
    world.script = [gate]
    async with world.open() as epics:
        run = await epics.begin(request(request_id="once"), "repo", "cli")
        again = await epics.begin(request(request_id="once"), "repo", "cli")
        assert run.id == again.id
        with pytest.raises(Refused, match="already"):
            await epics.begin(request(), "repo", "cli")
        gate.set()
        await epics.wait(run.id)
        other = await epics.begin(request(), "repo", "cli")
        await epics.wait(other.id)
    assert [world.known(each).reason for each in (run.id, other.id)] == [
        "nothing-admissible"
    ] * 2
    assert world.store.active == {run.id: False, other.id: False}


async def test_after_a_limit_it_goes_on_when_that_is_over(world: World) -> None:
    world.script = [End("degraded", wait=3600.0), End(None, wait=60.0), DONE]
    async with world.open() as epics:
        run = await epics.begin(request(), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
        assert epics.known(run.id).state == "waiting"
        assert "GitHub is asked again at" in str(epics.known(run.id).why)
        await epics.wait(run.id)
    moments = [moment - world.began[0][1] for _, moment in world.began]
    assert moments == [0.0, 3600.0, 3660.0]
    # What the first one left open is taken over.
    assert [each.resume for each, _ in world.began] == [False, True, True]
    assert world.known(run.id).state == "ended"


async def test_a_run_that_waits_can_be_stopped(world: World) -> None:
    world.script = [End("degraded", wait=3600.0)]
    async with world.open() as epics:
        run = await epics.begin(request(), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
        await epics.stop(run.id, "drain")
        await epics.wait(run.id)
        with pytest.raises(Refused, match="has ended"):
            await epics.stop(run.id, "now")
    assert (world.known(run.id).why, len(world.began)) == ("it was stopped", 1)


async def test_workers_of_before_are_waited_for_and_others_are_not(
    world: World,
) -> None:
    world.script = [LockHeld("workers have it"), DONE, LockHeld("pid 7 has it")]
    world.store.jobs = [("job1", "running"), ("job2", "succeeded")]
    async with world.open() as epics:
        run = await epics.begin(request(), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
        assert "1 workers of before" in str(epics.known(run.id).why)
        assert list(world.store.ends) == ["job1"]
        world.store.ends["job1"]("succeeded")
        await epics.wait(run.id)
        world.store.jobs = []
        other = await epics.begin(request(), "repo", "cli")
        await epics.wait(other.id)
    assert world.known(run.id).reason == "nothing-admissible"
    assert world.known(other.id).why == "pid 7 has it"
    assert world.store.kinds.count("epic_waiting") == 1


async def test_two_epics_of_a_repository_run_one_after_the_other(world: World) -> None:
    gate = trio.Event()
    world.script = [gate]
    async with world.open() as epics:
        one = await epics.begin(request("one.toml"), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
        two = await epics.begin(request("two.toml"), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
        assert len(world.began) == 1
        assert one.id in str(epics.known(two.id).why)
        gate.set()
        await epics.wait(two.id)
    assert [each.epic for each, _ in world.began] == ["one.toml", "two.toml"]


async def test_one_that_fails_over_and_over_is_set_aside_alone(world: World) -> None:
    gate = trio.Event()
    async with world.open() as epics:
        world.script = [RuntimeError("a bug")] * 50
        run = await epics.begin(request("bad.toml"), "repo", "cli")
        await epics.wait(run.id)
        world.script = [gate]
        other = await epics.begin(request("good.toml"), "repo", "cli")
        gate.set()
        await epics.wait(other.id)
    assert "a bug" in str(world.known(run.id).why)
    assert world.known(other.id).reason == "nothing-admissible"


async def test_the_next_runtime_goes_on_with_what_has_not_ended(world: World) -> None:
    world.script = [trio.Event()]
    async with world.open() as epics:
        run = await epics.begin(request(), "repo", "cli")
        await trio.testing.wait_all_tasks_blocked()
    assert world.store.active[run.id]
    async with world.open() as epics:
        await epics.wait(run.id)
    assert [each.resume for each, _ in world.began] == [False, True]
    assert not world.store.active[run.id]
