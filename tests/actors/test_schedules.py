"""The schedules: what they submit, when, and what is left of it after a crash."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.schedules_messages import (
    Put,
    RunNow,
    Tell,
)
from forge_actors.domain.errors import (
    ActorStopped,
    ForgeError,
    NotFound,
    Refused,
)
from forge_actors.domain.schedule_changes import ScheduleSaved
from forge_actors.domain.triggers import Every, Manual, Once
from forge_actors.testing.clock import START
from tests.actors.schedules_kit import World, made

pytestmark = pytest.mark.mock_clock
#: After this what was due has been done.
SOON = 1.0


async def test_a_job_is_submitted_at_each_moment_and_never_twice() -> None:
    async with World().open() as world:
        await world.add()
        for number in range(1, 4):
            await trio.sleep(60)
            await trio.sleep(SOON)
            assert len(world.requests) == number
            world.end(f"job{number - 1}")
        assert [one.decision for one in await world.told()] == ["run"] * 3
        assert world.decided() == ["run"] * 3
        request = world.requests["job0"]
        assert (request.origin, request.argv) == ("schedule:s", ["true"])
        assert request.request_id == (await world.told())[0].id


async def test_it_sleeps_until_the_next_moment_of_any() -> None:
    async with World().open() as world:
        for number in range(50):
            await world.add(f"s{number}", Once(START + 1000.0 + number))
        await trio.testing.wait_all_tasks_blocked()
        waits = world.timer.waits
        await trio.sleep(900)
        assert world.timer.waits == waits
        await trio.sleep(100 + 100)
        assert len(world.requests) == 50
        # One for what rang, one for what is next.
        assert world.timer.waits <= waits + 2 * 50 + 2


async def test_many_that_are_due_at_once_are_all_decided() -> None:
    async with World().open() as world:
        world.takes = 0.1
        for number in range(500):
            await world.add(f"s{number}", Once(START + 2000.0))
        await trio.sleep(2000)
        await trio.sleep(2)
        assert len(world.requests) == 500
        states = {one.state for one in await world.mailbox.ask(Tell)}
        assert states == {"done"}


async def test_a_slow_submission_holds_up_no_other_schedule() -> None:
    async with World().open() as world:
        slow = world._submit

        async def submit(request: object) -> str:
            if request.origin == "schedule:slow":  # type: ignore[attr-defined]
                await trio.sleep(500)
            return await slow(request)  # type: ignore[arg-type]

        world._submit = submit  # type: ignore[method-assign]
    async with world.open():
        await world.add("slow", Once(world.clock.wall() + 10))
        await world.add("quick", Once(world.clock.wall() + 12))
        await trio.sleep(15)
        assert [r.origin for r in world.requests.values()] == ["schedule:quick"]
        await trio.sleep(600)
        assert len(world.requests) == 2


async def test_an_overlap_waits_for_the_end_of_the_job() -> None:
    async with World().open() as world:
        await world.add(overlap="queue")
        await trio.sleep(150)
        assert len(world.requests) == 1
        [_, waiting] = await world.told()
        assert (waiting.decision, "job0" in waiting.reason) == ("deferred", True)
        world.end("job0")
        await trio.sleep(SOON)
        assert len(world.requests) == 2


async def test_an_overlap_ends_the_job_that_is_there() -> None:
    async with World().open() as world:
        await world.add(overlap="cancel")
        await trio.sleep(130)
        assert world.cancelled == ["job0"]
        assert len(world.requests) == 2


async def test_an_overlap_leaves_a_window_out_and_says_so() -> None:
    async with World().open() as world:
        await world.add()
        await trio.sleep(130)
        assert [one.decision for one in await world.told()] == ["run", "overlapped"]
        assert world.decided() == ["run", "overlapped"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_around_a_submission_makes_no_second_job(when: str) -> None:
    world = World()
    async with world.open():
        await world.add()
        await trio.sleep(59)
        world.takes = 5.0 if when == "before" else 0.0
        saved = world.store.durable.schedules.copy()
        await trio.sleep(2)
        jobs = len(world.requests)
        assert jobs == (0 if when == "before" else 1)
        world.store.crash()
        # Its job is there, and nothing of the schedule that was saved with it.
        world.store.durable.schedules = saved
        world.store.durable.occurrences.clear()
        world.store.crash()
    world.takes = 0.0
    async with world.open():
        await trio.sleep(10)
        assert len(world.requests) == 1
        [told] = await world.told()
        assert (told.decision, told.job) == ("run", "job0")
        world.end("job0")
        await trio.sleep(60)
        assert len(world.requests) == 2


async def test_a_window_that_waits_for_an_end_outlives_a_crash() -> None:
    world = World()
    async with world.open():
        await world.add(overlap="queue")
        await trio.sleep(130)
        [waiting] = (await world.now()).progress.pending
        world.store.crash()
    async with world.open():
        schedule = await world.now()
        assert (schedule.state, schedule.progress.pending) == ("active", (waiting,))
        world.end("job0")
        await trio.sleep(1)
        assert len(world.requests) == 2


async def test_what_was_due_while_nobody_was_there_is_caught_up_once() -> None:
    world = World()
    async with world.open():
        await world.add("s", Every(600.0))
    world.clock.shift(3 * 3600 + 300)
    async with world.open():
        await trio.sleep(70)
        assert len(world.requests) == 1
        told = {one.decision: one for one in await world.told()}
        assert told["missed"].count == 17
        assert "caught up" in told["run"].reason


async def test_a_clock_that_is_set_is_noticed_at_once() -> None:
    async with World().open() as world:
        await world.add("s", Once(world.clock.wall() + 7200))
        await trio.sleep(5)
        world.timer.set(7300)
        await trio.sleep(70)
        assert len(world.requests) == 1
        await world.add("often")
        world.timer.set(-6000)
        await trio.sleep(125)
        assert len(world.requests) >= 2, "it does not wait for the old time to come"


@pytest.mark.parametrize("refusal", [Refused("the queue is full"), ActorStopped()])
async def test_a_job_that_is_refused_for_now_is_tried_again(
    refusal: ForgeError,
) -> None:
    async with World().open() as world:
        world.refusal = refusal
        await world.add("s", Once(world.clock.wall() + 10))
        await trio.sleep(15)
        [told] = await world.told()
        assert (told.decision, str(refusal) in told.reason) == ("deferred", True)
        world.refusal = None
        await trio.sleep(31)
        assert [one.decision for one in await world.told()] == ["run"]


async def test_a_job_that_is_wrong_has_failed_and_is_told() -> None:
    async with World().open() as world:
        world.refusal = NotFound("no repository is called 'app'")
        await world.add(max_failures=2)
        await trio.sleep(200)
        told = await world.told()
        assert [one.decision for one in told] == ["failed", "failed", "stopped"]
        schedule = await world.now()
        assert (schedule.state, "failed" in str(schedule.why)) == ("paused", True)


async def test_a_bug_sets_one_schedule_aside_and_no_other() -> None:
    async with World().open() as world:
        world.refusal = RuntimeError("a bug")
        await world.add("bad", Once(world.clock.wall() + 10))
        await trio.sleep(20)
        assert (await world.now("bad")).state == "quarantined"
        world.refusal = None
        await world.add("good")
        await trio.sleep(70)
        assert len(world.requests) == 1


class Undecided(World):
    """A world that fails when it is looked at, while it is `broken`."""

    broken = False

    @property
    def closed(self) -> str | None:
        if self.broken:
            raise RuntimeError("nobody knows")
        return None

    @closed.setter
    def closed(self, _: str | None) -> None:
        """It is never closed."""


async def test_one_that_cannot_be_decided_is_set_aside_with_the_reason() -> None:
    async with Undecided().open() as world:
        assert isinstance(world, Undecided)
        await world.add("bad", Once(world.clock.wall() + 10))
        world.broken = True
        await trio.sleep(20)
        bad = await world.now("bad")
        assert bad.state == "quarantined"
        assert "RuntimeError: nobody knows" in str(bad.why)
        assert not world.requests


async def test_one_that_cannot_be_read_is_set_aside_and_no_other() -> None:
    world = World()
    async with world.open():
        await world.add("good")
        world.store.save([ScheduleSaved("x", "bad", b"{nothing")])
        await trio.sleep(SOON)
    async with world.open():
        bad = await world.now("bad")
        assert (bad.state, bool(bad.why)) == ("quarantined", True)
        with pytest.raises(Refused, match="set aside"):
            await world.mailbox.ask(partial(RunNow, "bad", "asked-1"))
        await trio.sleep(70)
        assert len(world.requests) == 1
        await world.mailbox.ask(partial(Put, made("bad", Manual()), 0))
        assert (await world.now("bad")).state == "active"


async def test_one_for_a_single_job_is_gone_once_that_is_over() -> None:
    async with World().open() as world:
        once = structs.replace(made("s", Once(START + 10)), transient=True)
        await world.mailbox.ask(partial(Put, once, None))
        await trio.sleep(10 + SOON)
        assert (await world.now()).state == "done"
        world.end("job0")
        await trio.sleep(SOON)
        assert await world.mailbox.ask(Tell) == []
