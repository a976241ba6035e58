"""What people ask of schedules, and what of them is set aside."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import submissions
from forge_actors.actors.schedules_messages import (
    Pause,
    Put,
    Remove,
    RepositoryGone,
    Resume,
    RunNow,
    Tell,
)
from forge_actors.domain.errors import (
    InvalidInput,
    NotFound,
    Refused,
)
from forge_actors.domain.schedule_changes import ScheduleSaved
from forge_actors.domain.schedule_records import encoded
from forge_actors.domain.triggers import Cron, Every, Manual, Once
from tests.actors.schedules_kit import World, made

pytestmark = pytest.mark.mock_clock
#: After this what was due has been done.
SOON = 1.0


async def test_a_pause_lasts_over_a_restart_and_what_passed_in_it_is_gone() -> None:
    world = World()
    async with world.open():
        await world.add()
        await world.mailbox.ask(partial(Pause, "s", "it is a holiday"))
    async with world.open():
        await trio.sleep(1000)
        assert not world.requests
        assert (await world.now()).why == "it is a holiday"
        await world.mailbox.ask(partial(Resume, "s"))
        await trio.sleep(50)
        assert len(world.requests) <= 1
        await trio.sleep(20)
        assert len(world.requests) == 1
    told = [
        (event.kind, event.data["schedule"], event.data.get("reason"))
        for event in world.store.durable.events
        if event.kind in ("schedule_paused", "schedule_resumed")
    ]
    assert told == [
        ("schedule_paused", "s", "it is a holiday"),
        ("schedule_resumed", "s", None),
    ]


async def test_it_runs_when_somebody_asks_once_for_each_wish() -> None:
    async with World().open() as world:
        await world.add("s", Manual())
        told = await world.mailbox.ask(partial(RunNow, "s", "asked-1"))
        await trio.sleep(SOON)
        assert len(world.requests) == 1
        with pytest.raises(Refused, match="has not ended"):
            await world.mailbox.ask(partial(RunNow, "s", "asked-2"))
        same = await world.mailbox.ask(partial(RunNow, "s", "asked-1"))
        assert (same.id, same.job) == (told.id, "job0")
        world.end("job0")
        await trio.sleep(SOON)
        again = await world.mailbox.ask(partial(RunNow, "s", "asked-1"))
        await trio.sleep(SOON)
        assert (again.id, len(world.requests)) == (told.id, 1)
        assert (again.decision, again.job) == ("run", "job0")
        assert (await world.now()).progress.runs == 1


async def test_changes_are_refused_when_somebody_else_made_one() -> None:
    async with World().open() as world:
        await world.add()
        with pytest.raises(Refused, match="already"):
            await world.add()
        changed = await world.mailbox.ask(partial(Put, made(jitter=5.0), 1))
        assert "schedule_changed" in [e.kind for e in world.store.durable.events]
        assert changed.revision == 2
        with pytest.raises(Refused, match="revision 2"):
            await world.mailbox.ask(partial(Put, made(), 1))
        with pytest.raises(NotFound):
            await world.mailbox.ask(partial(Put, made("other"), 0))


async def test_another_time_counts_from_the_change_on() -> None:
    async with World().open() as world:
        await world.add()
        await trio.sleep(50)
        later = made("s", Once(world.clock.wall() + 100))
        await world.mailbox.ask(partial(Put, later, 0))
        await trio.sleep(90)
        assert not world.requests
        await trio.sleep(20)
        assert len(world.requests) == 1


@pytest.mark.parametrize("other", [Every(30.0), "once"])
async def test_another_time_is_no_window_that_had_its_job(other: Every | str) -> None:
    async with World().open() as world:
        first = Every(60.0) if other != "once" else Once(world.clock.wall() + 60)
        await world.add("s", first)
        await trio.sleep(60 + SOON)
        world.end("job0")
        await trio.sleep(SOON)
        then = Once(world.clock.wall() + 30) if isinstance(other, str) else other
        await world.mailbox.ask(partial(Put, made("s", then), 0))
        await trio.sleep(30 + SOON)
        assert len(world.requests) == 2
        assert (await world.told())[-1].job == "job1"


async def test_what_is_asked_for_runs_in_a_pause_and_is_kept_by_its_end() -> None:
    async with World().open() as world:
        await world.add(overlap="queue")
        await world.mailbox.ask(partial(Pause, "s", "for a test"))
        await world.mailbox.ask(partial(RunNow, "s", "asked-1"))
        await trio.sleep(SOON)
        assert len(world.requests) == 1
        await world.mailbox.ask(partial(RunNow, "s", "asked-2"))
        await trio.sleep(100)
        await world.mailbox.ask(partial(Resume, "s"))
        world.end("job0")
        await trio.sleep(SOON)
        assert [r.request_id for r in world.requests.values()] == [
            one.id for one in await world.told()
        ]
        assert len(world.requests) == 2


async def test_one_whose_next_time_cannot_be_told_is_set_aside() -> None:
    world = World()
    async with world.open():
        await world.add("bad", Manual())
        await world.add("good")
        wrong = made("bad", Cron("61 * * * *", "UTC"))
        schedule = structs.replace(await world.now("bad"), definition=wrong)
        world.store.save([ScheduleSaved(schedule.id, "bad", encoded(schedule))])
        await trio.sleep(SOON)
    async with world.open():
        assert (await world.now("bad")).state == "quarantined"
        await trio.sleep(70)
        assert len(world.requests) == 1


async def test_one_that_cannot_be_read_is_never_written_over() -> None:
    world = World()
    async with world.open():
        await world.add()
        world.store.save([ScheduleSaved("x", "bad", b"{nothing")])
        await trio.sleep(SOON)
    saved = world.store.durable.schedules["x"]
    async with world.open():
        for ask in (partial(Pause, "bad", "x"), partial(Resume, "bad")):
            with pytest.raises(Refused, match="schedule edit bad"):
                await world.mailbox.ask(ask)
        await trio.sleep(10)
        world.timer.set(-3600)
        await trio.sleep(SOON)
        assert world.store.durable.schedules["x"] == saved


async def test_a_moment_that_is_missed_ends_what_comes_once() -> None:
    world = World()
    async with world.open():
        await world.add("s", Once(world.clock.wall() + 60), catch_up=0.0)
    await trio.sleep(1000)
    async with world.open():
        await trio.sleep(SOON)
        schedule = await world.now()
        assert (schedule.state, schedule.why) == ("done", "its moment has passed")


async def test_what_is_stopped_before_its_turn_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submissions, "PARALLEL", 1)
    async with World().open() as world:
        world.takes = 20.0
        for name in ("a", "b", "c"):
            await world.add(name, Once(world.clock.wall() + 10))
        await trio.sleep(15)
        await world.mailbox.ask(partial(Pause, "b", "for a test"))
        later = made("c", Once(world.clock.wall() + 1000))
        await world.mailbox.ask(partial(Put, later, 0))
        await trio.sleep(100)
        assert [r.origin for r in world.requests.values()] == ["schedule:a"]
        await trio.sleep(1000)
        assert len(world.requests) == 2


async def test_one_of_a_file_stays_one_of_it() -> None:
    async with World().open() as world:
        of_file = structs.replace(made(), source="/some/file.toml")
        await world.mailbox.ask(partial(Put, of_file, None))
        changed = await world.mailbox.ask(partial(Put, made(jitter=5.0), 1))
        assert changed.definition.source == "/some/file.toml"
        assert changed.definition.policies.jitter == 5.0


async def test_what_is_removed_runs_no_more() -> None:
    async with World().open() as world:
        await world.add()
        await world.add("other")
        await world.mailbox.ask(partial(Remove, "s"))
        with pytest.raises(NotFound):
            await world.mailbox.ask(partial(Remove, "s"))
        world.mailbox.tell(RepositoryGone("repo"))
        assert await world.mailbox.ask(Tell) == []
        await trio.sleep(200)
        assert not world.requests
        assert not world.store.durable.schedules
        await world.add()


async def test_a_budget_counts_what_its_jobs_ran() -> None:
    async with World().open() as world:
        await world.add(daily_budget=5.0)
        await trio.sleep(61)
        world.run_job("job0", 1)
        await trio.sleep(SOON)
        schedule = await world.now()
        assert schedule.progress.spent == 0
        world.end("job0")
        await trio.sleep(SOON)
        assert (await world.now()).progress.spent == pytest.approx(9.0)
        await trio.sleep(60)
        assert (await world.told())[-1].reason.startswith("its jobs ran 9 s")


def test_a_definition_names_what_is_wrong() -> None:
    with pytest.raises(InvalidInput, match="misfire"):
        made(misfire="all").policies.check()
