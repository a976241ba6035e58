"""The policy through the actors, with a launcher that starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors import supervisor, supervisor_messages
from forge_actors.domain.errors import Outdated
from forge_actors.domain.policies import OVER, Policy
from tests.actors.kit import limits, world
from tests.actors.repository_kit import memory
from tests.actors.supervisor_kit import wakes  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.policies import Mode
    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock
WORK = "wf-1"


def told(made: World) -> list[dict[str, object]]:
    """What the history says of policies."""
    events = memory(made).durable.events
    return [event.data for event in events if event.kind == "policy_changed"]


async def test_only_jobs_of_the_one_work_are_started_until_it_ends() -> None:
    async with world(limits=limits(workers=1), repos=("repo", "other")) as made:
        await made.submit(made.job("runs"))
        policy = await made.set_policy("exclusive", work=WORK, reason="release")
        assert (policy.mode, policy.work, policy.revision) == ("exclusive", WORK, 1)
        await made.submit(made.job("waits"), made.job("far", "other"))
        await made.submit(made.job("mine", "other", work=WORK, priority=4))
        assert made.running == ["runs"]
        await made.finish("runs")
        assert made.running == ["mine"]
        await made.finish("mine")
        assert made.running == []
        waits = await made.explain("waits")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.kind == "policy"
        await made.set_policy("normal")
        assert made.running == ["far"]
        await made.finish("far")
        assert made.running == ["waits"]
        assert [one["mode"] for one in told(made)] == ["exclusive", "normal"]
        assert told(made)[0]["reason"] == "release"


async def test_nothing_starts_during_maintenance_and_everything_at_its_end() -> None:
    async with world() as made:
        await made.submit(made.job("a"))
        until = made.clock.wall() + 3602.5  # between two safety passes
        await made.set_policy("maintenance", until=until)
        await made.submit(made.job("b"))
        assert made.running == ["a"]
        await trio.sleep(3602.0)
        assert made.running == ["a"]
        await trio.sleep(1.0)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(made.running) == ["a", "b"]
        assert [(one["mode"], one.get("reason")) for one in told(made)] == [
            ("maintenance", None),
            ("normal", OVER),
        ]
        assert memory(made).durable.policy.revision == 2
        last = [e for e in memory(made).durable.events if e.kind == "policy_changed"]
        assert last[-1].at == pytest.approx(until, abs=0.1)


async def test_its_end_follows_the_clock_on_the_wall() -> None:
    async with world() as made:
        await made.set_policy("maintenance", until=made.clock.wall() + 3600.0)
        await made.submit(made.job("a"))
        made.clock.set_wall(-1800.0)
        await trio.sleep(3700.0)
        assert made.running == []
        await trio.sleep(1800.0)
        assert made.running == ["a"]


async def test_a_machine_that_slept_through_its_end_ends_it_at_the_next_pass() -> None:
    async with world() as made:
        await made.set_policy("maintenance", until=made.clock.wall() + 3600.0)
        await made.submit(made.job("a"))
        made.clock.shift(7200.0)
        await trio.sleep(supervisor.IDLE_PASS_SECONDS + 1.0)
        assert made.running == ["a"]


async def test_it_holds_before_the_first_dispatch_of_the_next_runtime(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("runs"), made.job("waits"))
        await made.submit(made.job("mine", work=WORK))
        await made.set_policy("exclusive", work=WORK)
        await made.crash()  # also an actor that begins anew goes by it
        await made.stop("detached")
    async with world(tmp_path, limits=limits(workers=4)) as made:
        assert made.launched == ["mine"]
        await made.set_policy("normal")
        assert made.launched == ["mine", "waits"]


async def test_one_that_ended_while_nothing_ran_is_over_at_the_start() -> None:
    async with world(started=False) as made:
        policy = Policy("maintenance", until=made.clock.wall() - 1.0, revision=7)
        rows = memory(made)
        rows.durable.policy = rows._pending.policy = policy
        await made.save(made.job("a"))
        async with trio.open_nursery() as nursery:
            await made.start(nursery)
            await trio.testing.wait_all_tasks_blocked()
            assert made.running == ["a"]
            assert rows.durable.policy.revision == 8
            await made.stop()


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("mode", ["exclusive", "maintenance"])
async def test_a_job_that_is_offered_when_it_begins_does_not_start_after_it(
    mode: Mode, turns: int
) -> None:
    """Wherever its grant is: no dispatch follows the policy in the event log."""
    async with world() as made:
        job = made.job("a")
        await made.save(job)
        made.mailbox.tell(supervisor.Submitted("repo", (job,)))
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        await made.set_policy(mode, work=WORK if mode == "exclusive" else None)
        kinds = made.events()
        assert "job_dispatched" not in kinds[kinds.index("policy_changed") :]
        await made.set_policy("normal")
        assert made.running == ["a"]


async def test_a_policy_of_another_revision_is_not_changed() -> None:
    async with world() as made:
        await made.set_policy("convergence", revision=0)
        with pytest.raises(Outdated, match="of revision 1 now, is not as it"):
            await made.set_policy("maintenance", revision=0)
        assert (await made.set_policy("convergence")).revision == 1
        assert (await made.set_policy("maintenance", revision=1)).revision == 2


async def test_who_wants_what_is_so_already_is_answered_when_it_is_durable() -> None:
    async with world() as made:
        durable: list[Mode] = []

        async def ask() -> None:
            wanted = Policy("maintenance")
            await made.mailbox.ask(
                lambda reply: supervisor_messages.SetPolicy(
                    wanted, None, narrows=False, reply=reply
                )
            )
            durable.append(memory(made).durable.policy.mode)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
        assert durable == ["maintenance"] * 2


async def test_what_converges_is_started() -> None:
    async with world(limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"))
        await made.set_policy("convergence")
        await made.finish("a")
        assert made.running == ["b"]


async def test_without_an_end_nobody_is_woken(wakes: list[float]) -> None:
    async with world() as made:
        await made.set_policy("exclusive", work=WORK)
        await made.submit(made.job("a"))
        before = len(wakes)
        await trio.sleep(supervisor.BUSY_PASS_SECONDS * 10)
        # The safety passes, and nothing besides.
        assert len(wakes) - before <= 11
