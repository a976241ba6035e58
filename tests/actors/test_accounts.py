"""Providers that refuse jobs, through the actors; nothing is started."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.domain.accounts import FIRST_TRY, RESET_MARGIN, SERVED_AFTER
from forge_actors.domain.agents import AgentReport, LimitHit
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import World, limits, world

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.agents import LimitKind
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.waiting import Waiting

pytestmark = pytest.mark.mock_clock

TWO = limits(workers=8, agents=8, claude=2, codex=2)

ROOM = {"repository_workers": 300}


def agent(made: World, name: str, provider: str = "claude", **changes: Any) -> Job:
    return made.job(name, kind="agent-run", provider=provider, **changes)


async def refuse(
    made: World, *jobs: str, kind: LimitKind = "usage", after: float | None = None
) -> float:
    """Let the running attempts of these jobs be refused, a moment later."""
    await trio.sleep(0.01)
    retry_at = None if after is None else made.clock.now() + after
    told = AgentReport("claude", ok=False, limit=LimitHit(kind, "enough", retry_at))
    await made.finish(*jobs, exit_code=1, agent=told)
    return (retry_at or 0.0) + RESET_MARGIN


async def waits(made: World, job: str) -> Waiting:
    found = await made.explain(job)
    assert found is not None
    assert found.waiting is not None
    return found.waiting


async def pass_by(seconds: float) -> None:
    await trio.sleep(seconds)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_limit_parks_its_job_and_starts_no_other_of_its_provider() -> None:
    async with world(limits=TWO) as made:
        await made.submit(*(agent(made, name) for name in "abc"))
        await made.submit(agent(made, "x", "codex"))
        assert made.running == ["a", "b", "x"]
        reset = await refuse(made, "a", after=3600.0)
        assert made.running == ["b", "x"]
        assert made.states()["a"] == "waiting_for_limit"
        for job in ("a", "c"):
            waiting = await waits(made, job)
            assert (waiting.kind, waiting.until) == ("limit", reset)
        await made.finish("b", "x")
        await pass_by(3599.0)
        assert made.running == []
        before = trio.current_time()
        await pass_by(1.0 + RESET_MARGIN)
        assert made.running == ["c"]  # the one that has waited longest
        assert trio.current_time() - before < 2.0
        await pass_by(1.5)
        assert made.running == ["c", "a"]
        assert "provider_opened" in made.events()


async def test_a_refused_attempt_does_not_count() -> None:
    async with world(limits=TWO) as made:
        await made.submit(agent(made, "a", max_attempts=1, replay="safe"))
        for _ in range(5):
            await refuse(made, "a", after=30.0)
            await pass_by(31.0)
        assert [o.attempt for o in made.launcher.orders] == [1, 2, 3, 4, 5, 6]
        assert len({o.fence for o in made.launcher.orders}) == 6
        # Its first attempt that counts, and it has no other.
        await made.finish("a", signal="SIGKILL")
        assert made.states()["a"] == "failed"


async def test_a_short_limit_keeps_nobody_else_from_starting() -> None:
    async with world(limits=TWO) as made:
        await made.submit(*(agent(made, name) for name in "abc"))
        await refuse(made, "a", kind="overload")
        assert made.running == ["b", "c"]
        assert (await waits(made, "a")).kind == "limit"
        assert "provider_closed" not in made.events()
        await made.finish("b", "c")
        await pass_by(7.0)
        assert made.running == ["a"]


async def test_a_wrong_login_is_found_out_once_and_waits_for_a_person() -> None:
    async with world(limits=TWO) as made:
        await made.submit(*(agent(made, f"j{number:03}") for number in range(200)))
        await refuse(made, "j000", "j001", kind="auth")
        assert made.running == []
        assert made.events().count("provider_closed") == 1
        await pass_by(20_000.0)
        assert len(made.launched) == 2
        waiting = await waits(made, "j000")
        assert (waiting.kind, waiting.until) == ("agent", None)
        assert set(made.states().values()) == {"queued"}
        await made.pause("provider:claude", on=False)
        assert made.running == ["j002"]
        await pass_by(1.5)
        assert made.running == ["j002", "j003"]


async def test_where_nobody_is_there_what_needs_a_person_fails() -> None:
    async with world(limits=TWO, attended=False) as made:
        await made.submit(agent(made, "a"), agent(made, "b"), agent(made, "c"))
        await refuse(made, "a", kind="auth")
        await refuse(made, "b", after=10.0)
        assert made.states() == {
            "a": "failed",
            "b": "waiting_for_limit",
            "c": "running",
        }
        await made.finish("c")
        await pass_by(12.0)
        await made.finish("b")
        assert made.states()["b"] == "succeeded"


async def test_a_closed_account_outlives_the_runtime(tmp_path: Path) -> None:
    async with world(tmp_path, limits=TWO, stop="detached") as made:
        await made.submit(agent(made, "a"), agent(made, "b"), agent(made, "c"))
        reset = await refuse(made, "a", "b", after=500.0)
    async with world(tmp_path, limits=TWO) as made:
        assert made.running == []
        assert (await waits(made, "c")).until == pytest.approx(reset, abs=0.02)
        assert made.states()["a"] == "waiting_for_limit"
        await pass_by(reset - made.clock.now())
        assert made.running == ["c"]
        await made.stop("detached")
    # What was to return is not forgotten with the runtime.
    async with world(tmp_path, limits=TWO) as made:
        assert len(made.running) == 1


async def test_one_job_tries_an_account_whose_end_nobody_knows() -> None:
    async with world(limits=TWO) as made:
        await made.submit(*(agent(made, name) for name in "abcd"))
        await refuse(made, "a", "b")
        assert made.running == []
        await pass_by(FIRST_TRY)
        assert made.running == ["c"]
        await pass_by(5.0)
        assert made.running == ["c"]
        await refuse(made, "c")
        await pass_by(2 * FIRST_TRY - 1.0)
        assert made.running == []
        await pass_by(1.0)
        assert made.running == ["d"]
        await pass_by(SERVED_AFTER + 1.0)
        assert len(made.running) == 2
        assert made.events().count("provider_opened") == 1


class Timed(FakeLauncher):
    """Remembers when it launched what."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def launch(self, order: LaunchOrder, descriptors: Any = None) -> Any:
        self.times.append(trio.current_time())
        return super().launch(order, descriptors)


async def test_thirty_jobs_against_five_starts_a_minute_all_finish(
    tmp_path: Path,
) -> None:
    launcher = Timed()
    many = limits(workers=40, agents=40, claude=40)
    async with world(tmp_path, limits=many, launcher=launcher, **ROOM) as made:
        await made.submit(*(agent(made, f"j{number:02}") for number in range(30)))
        await refuse(made, *made.running, after=60.0)
        first = len(launcher.times)
        assert first == 30
        window: list[float] = []
        while set(made.states().values()) != {"succeeded"}:
            for job in made.running:
                now = trio.current_time()
                window = [at for at in window if at > now - 60.0]
                if len(window) < 5:
                    window.append(now)
                    await made.finish(job)
                else:
                    await refuse(made, job, after=60.0 - (now - window[0]))
            await pass_by(0.25)
        later = launcher.times[first:]
        assert min(b - a for a, b in pairwise(later)) >= 0.74
        assert len(later) <= 30 + 7  # one is refused for each five that are served


async def test_two_hundred_parked_jobs_return_once_each(tmp_path: Path) -> None:
    launcher = Timed()
    wide = limits(workers=300, agents=300, claude=300)
    async with world(tmp_path, limits=wide, launcher=launcher, **ROOM) as made:
        await made.submit(*(agent(made, f"j{number:03}") for number in range(200)))
        began = trio.current_time()
        await refuse(made, *made.running, after=100.0)
        assert set(made.states().values()) == {"waiting_for_limit"}
        await pass_by(100.0)
        assert made.running == []
        await pass_by(300.0)
        again = launcher.times[200:]
        assert began + 100.0 <= again[0] <= began + 101.0
        assert len(again) == len(set(made.running)) == 200
        assert all(0.74 <= b - a <= 1.26 for a, b in pairwise(again))


async def test_a_grant_on_its_way_is_not_used_once_its_provider_is_closed() -> None:
    async with world(limits=TWO) as made:
        await made.submit(agent(made, "a"), agent(made, "b"), agent(made, "c"))
        told = AgentReport("claude", ok=False, limit=LimitHit("usage"))
        made.launcher.finish("a", exit_code=1, agent=told)
        made.launcher.finish("b", exit_code=0)
        await trio.testing.wait_all_tasks_blocked()
        assert made.running == []
        assert made.launched == ["a", "b"]


async def test_the_queue_budget_stands_still_while_its_account_is_closed() -> None:
    async with world(limits=limits(claude=1)) as made:
        await made.submit(agent(made, "a"), agent(made, "b", queue_budget=50.0))
        await refuse(made, "a", after=1000.0)
        await pass_by(1000.0)
        assert made.states()["b"] in ("queued", "waiting_for_limit")
        await pass_by(1.0)
        assert made.running == ["b"]
