"""The supervisor: pressure, failures, stopping, and what others see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors import repository, supervisor
from forge_actors.actors.supervisor import BUSY_PASS_SECONDS
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.restarts import RestartPolicy
from forge_actors.testing.launcher import FakeLauncher, Outcome
from tests.actors.kit import BROKEN, limits, world

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.mock_clock


# Pressure


async def test_under_pressure_one_job_runs_and_no_agent_starts(tmp_path: Path) -> None:
    set_to = limits(workers=4, claude=2)
    async with world(tmp_path, limits=set_to, pressure="no memory") as made:
        await made.submit(made.job("agent", kind="agent-run", provider="claude"))
        assert made.running == []
        waiting = await made.place("agent")
        assert waiting.kind == "pressure"
        assert "no memory" in waiting.detail
        await made.submit(made.job("a"), made.job("b"))
        assert made.running == ["a"]
        await made.finish("a")
        assert made.running == ["b"]
        assert (await made.survey()).pressure == "no memory"
        made.pressure = None
        await trio.sleep(2 * BUSY_PASS_SECONDS)
        assert set(made.running) == {"b", "agent"}
        assert (await made.survey()).pressure is None
        events = [kind for kind in made.events() if kind.startswith("pressure")]
        assert events == ["pressure_began", "pressure_ended"]


async def test_pressure_stops_nothing_that_runs(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(*(made.job(f"j{n}") for n in range(3)))
        made.pressure = "load"
        await trio.sleep(30)
        await made.submit(made.job("late"))
        assert set(made.running) == {"j0", "j1", "j2"}
        await made.finish(*made.running)
        assert made.running == ["late"]


async def test_the_machine_is_looked_at_only_while_work_waits(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"))
        seen = made.samples
        await trio.sleep(600)
        assert made.samples == seen
        await made.submit(made.job("b"))
        seen = made.samples
        await trio.sleep(60)
        assert 11 <= made.samples - seen <= 13


# Failing children


async def test_a_crashed_repository_disturbs_no_other(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("bad", "good")) as made:
        await made.submit(made.job("b", "bad"), made.job("g", "good"))
        await made.crash("bad")
        assert set(made.running) == {"b", "g"}
        await made.finish("b")
        assert made.states()["b"] == "succeeded"
        await made.submit(made.job("b2", "bad"))
        await made.finish("b2", "g")
        assert made.states()["b2"] == made.states()["g"] == "succeeded"


async def test_what_runs_keeps_its_tokens_over_a_crash(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("bad", "good"), limits=limits(workers=1)) as made:
        await made.submit(made.job("b", "bad"))
        await made.submit(made.job("g", "good"))
        assert made.running == ["b"]
        await made.crash("bad")
        assert made.running == ["b"]
        assert (await made.survey()).tokens["workers"].jobs == ("b",)
        await made.finish("b")
        assert made.running == ["g"]


async def test_an_actor_without_work_is_restarted_too(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.open()
        await made.crash()
        await made.submit(made.job("a"))
        assert made.running == ["a"]


async def test_failures_long_ago_are_forgiven(tmp_path: Path) -> None:
    async with world(tmp_path, restarts=RestartPolicy(2, 60.0)) as made:
        for _ in range(8):
            await made.crash()
            await trio.sleep(31)
        await made.submit(made.job("a"))
        assert made.running == ["a"]


async def test_a_crash_costs_no_token(tmp_path: Path) -> None:
    async with world(tmp_path, restarts=RestartPolicy(100, 60.0)) as made:
        for number in range(20):
            await made.submit(made.job(f"j{number}", replay="safe", max_attempts=50))
            await made.crash()
        survey = await made.survey()
        assert survey.tokens["workers"].used == len(made.running) == 4
        while made.running:
            await made.finish(*made.running)
        assert set(made.states().values()) == {"succeeded"}
        assert (await made.survey()).tokens["workers"].used == 0


async def test_a_second_bug_in_one_batch_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        actor = await made.open()
        actor.tell(BROKEN)
        actor.tell(BROKEN)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(MailboxClosed):
            actor.tell(BROKEN)
        assert made.running == ["a"]


# Stopping


async def test_a_shutdown_repeats_what_is_safe_and_keeps_what_waits(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=2), stop="shutdown") as made:
        await made.submit(made.job("safe", replay="safe"), made.job("never"))
        await made.submit(made.job("waits"), made.job("after", after=("waits",)))
    async with world(tmp_path, started=False) as again:
        assert again.states() == {
            "safe": "queued",
            "never": "human_attention_required",
            "waits": "queued",
            "after": "waiting_for_dependency",
        }
    async with world(tmp_path) as again:
        assert set(again.running) == {"safe", "waits"}


async def test_a_stop_that_cancels_ends_what_runs_and_keeps_what_waits(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=2), stop="cancelled") as made:
        await made.submit(made.job("safe", replay="safe"), made.job("never"))
        await made.submit(made.job("waits"))
    async with world(tmp_path, started=False) as again:
        assert again.states() == {
            "safe": "cancelled",
            "never": "cancelled",
            "waits": "queued",
        }


async def test_a_stop_waits_for_every_tree(tmp_path: Path) -> None:
    launcher = FakeLauncher(obeys_stop=False)
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a"))
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await trio.sleep(100)
        assert not made.ended.is_set()
        assert [stop.job for stop in launcher.stops] == ["a"]
        await made.finish("a")
        assert made.ended.is_set()
        assert made.states() == {"a": "succeeded"}
        with pytest.raises(MailboxClosed):
            await made.survey()


async def test_nothing_starts_after_a_stop(tmp_path: Path) -> None:
    launcher = FakeLauncher(obeys_stop=False)
    async with world(
        tmp_path, repos=("repo", "other"), launcher=launcher, limits=limits(workers=1)
    ) as made:
        await made.submit(made.job("a"), made.job("b"))
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await made.submit(made.job("c"), made.job("d", "other"))
        await made.finish("a")
        assert made.ended.is_set()
        assert made.launched == ["a"]
        assert made.states() == {
            "a": "succeeded",
            "b": "queued",
            "c": "queued",
            "d": "queued",
        }


async def test_a_job_cancelled_before_the_stop_is_cancelled(tmp_path: Path) -> None:
    launcher = FakeLauncher(obeys_stop=False)
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a", replay="safe"))
        await made.cancel("a")
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await made.finish("a", signal="SIGTERM", ending="stop")
        assert made.states() == {"a": "cancelled"}


async def test_a_stop_of_an_idle_supervisor_is_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        began = trio.current_time()
        await made.open()
        await made.stop()
        assert trio.current_time() == began


async def test_kill_ends_every_tree_and_leaves_clean_news(tmp_path: Path) -> None:
    """Cancelled from outside: one `Cancelled`, no error of an actor beside it."""
    for number in range(10):
        async with world(tmp_path, repos=("a", "b"), started=False) as made:
            await made.save(*(made.job(f"{r}{number}", r) for r in "ab"))
            async with trio.open_nursery() as nursery:
                await made.start(nursery)
                await trio.testing.wait_all_tasks_blocked()
                assert made.running
                made.launcher.finish(made.running[0])
                nursery.cancel_scope.cancel()
            assert made.running == []


async def test_an_asker_of_a_killed_supervisor_is_told(tmp_path: Path) -> None:
    async with world(tmp_path, started=False) as made:
        async with trio.open_nursery() as nursery:
            await made.start(nursery)
            nursery.cancel_scope.cancel()
        with pytest.raises(MailboxClosed):
            await made.survey()


# What others see


async def test_a_survey_counts_what_waits_and_what_is_awake(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("a", "b"), limits=limits(workers=1)) as made:
        await made.submit(made.job("a1", "a"), made.job("b1", "b"))
        survey = await made.survey()
        assert survey.awake == 2
        assert survey.waiting == 1
        assert survey.active_repositories == 1
        assert survey.tokens["workers"].limit == 1
        waits = "b" if made.running == ["a1"] else "a"
        await made.cancel(f"{waits}1", waits)
        assert (await made.survey()).waiting == 0


async def test_an_offer_that_expired_at_a_pass_is_forgotten(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"))
        await trio.sleep(BUSY_PASS_SECONDS / 2)
        # It runs out exactly when the pass comes.
        await made.submit(made.job("b", queue_budget=BUSY_PASS_SECONDS / 2))
        actor = await made.open()
        made.clock.shift(10.0)
        actor.tell(repository.Pass())
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["b"] == "timed_out"
        assert (await made.survey()).waiting == 0


async def test_opening_a_repository_twice_gives_one_actor(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        opened: list[object] = []

        async def open_() -> None:
            opened.append(await made.open())

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(open_)
        assert len(set(map(id, opened))) == 1
        assert (await made.survey()).awake == 1


async def test_a_cross_repository_chain_runs_in_order(tmp_path: Path) -> None:
    launcher = FakeLauncher(auto=lambda _: Outcome())
    repos = tuple("abc")
    async with world(tmp_path, repos=repos, launcher=launcher) as made:
        jobs = [
            made.job(f"j{n:02}", repos[n % 3], after=(f"j{n - 1:02}",) if n else ())
            for n in range(30)
        ]
        await made.submit(*jobs)
        assert made.launched == [f"j{n:02}" for n in range(30)]
