"""The supervisor: limits hold, grants are fair, nobody waits for anybody, all stops."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import supervisor
from forge_actors.actors.supervisor import BUSY_PASS_SECONDS, IDLE_PASS_SECONDS
from forge_actors.testing.launcher import FakeLauncher, Outcome
from forge_actors.testing.store import MemoryStore
from tests.actors.kit import WRITE, limits, world

if TYPE_CHECKING:
    from pathlib import Path


from tests.actors.supervisor_kit import (
    Watched,
    passes,  # noqa: F401 - a fixture
    wakes,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.mock_clock


# Limits


async def test_no_limit_is_ever_passed_and_everything_is_used(tmp_path: Path) -> None:
    launcher = Watched()
    repos = tuple(f"r{number}" for number in range(6))
    set_to = limits(workers=5, repositories=3, heavy=2, agents=2, claude=1, codex=2)
    async with world(tmp_path, repos=repos, launcher=launcher, limits=set_to) as made:
        kinds: list[dict[str, Any]] = [
            {},
            {"kind": "check"},
            {"kind": "agent-run", "provider": "claude"},
            {"kind": "dispatch-task", "provider": "codex"},
            {"provider": "claude", "kind": "check"},
        ]
        jobs = [
            made.job(f"j{n}", repos[n % 6], **kinds[n % 5].copy()) for n in range(120)
        ]
        launcher.tokens = {job.id: job.tokens for job in jobs}
        await made.submit(*jobs)
        while made.running:
            survey = await made.survey()
            for kind, use in survey.tokens.items():
                assert use.used <= use.limit, kind
                assert len(use.jobs) == use.used
            assert survey.active_repositories <= 3
            await made.finish(made.running[len(made.running) // 2])
        assert set(made.states().values()) == {"succeeded"}
        survey = await made.survey()
        assert not any(use.used for use in survey.tokens.values())
        assert survey.active_repositories == 0
    most = launcher.most
    assert (most["workers"], most["active_repositories"]) == (5, 3)
    assert (most["heavy_checks"], most["agents"]) == (2, 2)
    assert most["provider:claude"] == 1
    assert most["provider:codex"] <= 2


async def test_a_job_gets_all_of_its_tokens_or_none(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=3, heavy=1, claude=1)) as made:
        await made.submit(made.job("claude", kind="agent-run", provider="claude"))
        await made.submit(made.job("both", kind="check", provider="claude", priority=0))
        await made.submit(made.job("heavy", kind="check", priority=4))
        # `both` takes no heavy token while it waits for the provider's.
        assert set(made.running) == {"claude", "heavy"}
        survey = await made.survey()
        assert survey.tokens["heavy_checks"].jobs == ("heavy",)
        await made.finish("claude")
        assert made.running == ["heavy"]
        await made.finish("heavy")
        assert made.running == ["both"]


async def test_a_job_that_lacks_a_token_blocks_none_behind_it(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=4, claude=1)) as made:
        await made.submit(made.job("a", kind="agent-run", provider="claude"))
        await made.submit(
            made.job("b", kind="agent-run", provider="claude", priority=0)
        )
        await made.submit(made.job("c", priority=4))
        assert set(made.running) == {"a", "c"}


async def test_one_grant_a_round_between_equals(tmp_path: Path) -> None:
    repos = ("a", "b", "c")
    async with world(
        tmp_path, repos=repos, limits=limits(workers=1, repositories=3)
    ) as made:
        jobs = [made.job(f"{repo}{n}", repo) for repo in repos for n in range(4)]
        await made.submit(*jobs)
        turns = []
        while made.running:
            [running] = made.running
            turns.append(running[0])
            await trio.sleep(1)
            await made.finish(running)
        rounds = ["".join(turns[at : at + 3]) for at in range(0, 12, 3)]
        assert [set(each) for each in rounds] == [{"a", "b", "c"}] * 4
        assert len(set(rounds)) == 1


async def test_a_more_urgent_job_goes_first_wherever_it_is(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("a", "b"), limits=limits(workers=1)) as made:
        await made.submit(made.job("first", "a"))
        await made.submit(made.job("late", "a", priority=3))
        await trio.sleep(1)
        await made.submit(made.job("urgent", "b", priority=0))
        await made.finish("first")
        assert made.running == ["urgent"]


async def test_fairness_outlives_a_restart(tmp_path: Path) -> None:
    only_one = limits(workers=1)
    async with world(tmp_path, repos=("a", "b"), limits=only_one) as made:
        await made.submit(made.job("b0", "b"))
        await made.finish("b0")
        await trio.sleep(5)
        await made.submit(made.job("a0", "a"))
        await made.finish("a0")
    async with world(
        tmp_path, repos=("a", "b"), limits=only_one, started=False
    ) as made:
        # `a` was served last, so although its job is older it is not its turn.
        older = made.clock.now() - 60
        await made.save(made.job("a1", "a", queued_at=older), made.job("b1", "b"))
        async with trio.open_nursery() as nursery:
            await made.start(nursery)
            await trio.testing.wait_all_tasks_blocked()
            assert made.running == ["b1"]
            await made.stop()


async def test_repository_that_may_run_again_does_not_wait_for_a_free_place(
    tmp_path: Path,
) -> None:
    async with world(
        tmp_path, repos=("a", "b"), limits=limits(workers=3, repositories=1)
    ) as made:
        await made.submit(made.job("a1", "a"))
        await made.submit(made.job("b1", "b", priority=0))
        await made.submit(made.job("a2", "a"))
        assert set(made.running) == {"a1", "a2"}
        waiting = await made.place("b1", "b")
        assert waiting.resource == "active_repositories"
        assert (waiting.used, waiting.limit) == (1, 1)
        assert set(waiting.holders) == {"a1", "a2"}
        await made.finish("a1", "a2")
        assert made.running == ["b1"]


async def test_why_names_what_is_lacking_and_who_has_it(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("a", "b"), limits=limits(workers=2)) as made:
        await made.submit(made.job("a1", "a"), made.job("a2", "a"))
        await made.submit(made.job("b1", "b"), made.job("b2", "b"))
        await trio.sleep(1)
        await made.submit(made.job("a3", "a"))
        first, second = await made.place("b1", "b"), await made.place("b2", "b")
        assert (first.kind, first.resource) == ("token", "workers")
        assert (first.used, first.limit) == (2, 2)
        assert set(first.holders) == {"a1", "a2"}
        assert "2 of 2 workers are in use" in first.detail
        assert (first.position, second.position) == (1, 2)


# Nobody waits for anybody


async def test_a_repository_stuck_in_a_save_delays_nobody() -> None:
    auto = {"fast": Outcome()}
    launcher = FakeLauncher(auto=lambda order: auto.get(order.repo))
    async with world(
        repos=("stuck", "fast"), launcher=launcher, limits=limits(workers=2)
    ) as made:
        assert isinstance(made.store, MemoryStore)
        await made.save(made.job("s1", "stuck"), made.job("s2", "stuck"))
        made.store.hold("stuck")
        await made.open("stuck")
        await trio.testing.wait_all_tasks_blocked()
        assert made.launched == []
        auto["stuck"] = Outcome()
        # Its dispatches hold both tokens: the work of others waits for these, but not
        # for the actor, which still answers.
        waits = await made.explain("s1", "stuck")
        assert waits is not None
        made.store.release("stuck")
        await trio.testing.wait_all_tasks_blocked()
        made.store.hold("stuck")
        with trio.fail_after(1):
            await made.submit(*(made.job(f"f{n}", "fast") for n in range(50)))
        states = made.states()
        assert {states[f"f{n}"] for n in range(50)} == {"succeeded"}


async def test_ten_thousand_repositories_asleep_have_no_task(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(100):
            await made.add_repository(f"sleeper{number}")
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert (await made.survey()).awake == 0


# Passes


async def test_an_idle_supervisor_wakes_twice_a_minute(
    tmp_path: Path, passes: list[float], wakes: list[float]
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        await made.finish("a")
        await trio.sleep(60)
        passes.clear()
        wakes.clear()
        await trio.sleep(3600)
        assert len(passes) == 3600 / IDLE_PASS_SECONDS
        assert wakes == passes
        assert made.samples <= 3  # the machine is looked at only while work waits


async def test_a_busy_supervisor_passes_every_five_seconds(
    tmp_path: Path, passes: list[float]
) -> None:
    async with world(tmp_path) as made:
        await trio.sleep(IDLE_PASS_SECONDS * 1.5)
        passes.clear()
        began = trio.current_time()
        await made.submit(made.job("a"))
        await trio.sleep(60)
        assert passes[0] <= began + BUSY_PASS_SECONDS
        gaps = {round(b - a, 3) for a, b in pairwise(passes)}
        assert gaps == {BUSY_PASS_SECONDS}
        await made.finish("a")
        await trio.sleep(IDLE_PASS_SECONDS)
        passes.clear()
        await trio.sleep(600)
        assert len(passes) == 600 / IDLE_PASS_SECONDS


async def test_what_it_saves_itself_wakes_nobody(
    tmp_path: Path, wakes: list[float]
) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a", claims=WRITE), made.job("b", claims=WRITE))
        await trio.sleep(11)  # both passes have announced what is waited for
        wakes.clear()
        await trio.sleep(50)
        # A pass, and then the answer of the one repository that is awake.
        assert len(wakes) <= 2 * 50 / BUSY_PASS_SECONDS


async def test_a_wake_in_the_middle_of_a_pass_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        original = supervisor._Supervisor._make_pass
        late = ["late"]

        def during(self: supervisor._Supervisor) -> None:
            original(self)
            if late:
                job = made.job(late.pop())
                made.store.save([made.added(job)])
                self._mailbox.tell(supervisor.Submitted("repo", (job,)))

        monkeypatch.setattr(supervisor._Supervisor, "_make_pass", during)
        await trio.sleep(BUSY_PASS_SECONDS + 0.5)
        assert set(made.running) == {"a", "late"}


async def test_the_pass_finds_what_a_lost_notice_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"))
        with monkeypatch.context() as patch:
            patch.setattr(supervisor._Supervisor, "_notice", lambda *_: None)
            await made.submit(made.job("b"))
            assert made.running == ["a"]
        await trio.sleep(BUSY_PASS_SECONDS + 0.1)
        assert set(made.running) == {"a", "b"}
