"""The controllers actor: each occurrence has its host asked once."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from forge_actors.actors.controllers_messages import Pause, Remove, Resume
from forge_actors.domain.continuation import NotNow
from forge_actors.domain.controller_hosts import HostAnswer
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.testing.store import MemoryStore
from tests.actors.controllers_kit import World
from tests.actors.test_workflow_crashes import Killed, MortalStore

pytestmark = pytest.mark.mock_clock

blocked = trio.testing.wait_all_tasks_blocked


async def test_a_wake_has_a_turn_and_the_same_one_again_has_none() -> None:
    async with World().open() as world:
        await world.add()
        await world.begin("job1")
        told = await world.rouse("w1")
        assert (told.state, told.job, told.number) == ("dispatched", "job1", 1)
        [asked] = world.host.asked
        assert (asked.wake, asked.job, asked.prompt) == (
            "w1",
            "job0",
            "Go on. schedule",
        )
        assert (asked.origin, asked.binding) == ("schedule:s", {"place": "here"})
        assert (await world.rouse("w1")) == told
        with pytest.raises(NotNow, match="job1 has not ended"):
            await world.rouse("w2")
        await world.say("wait", "job1", note="the tests run")
        await world.end("job1")
        now = await world.now()
        assert (now.round, now.waits, now.job, now.rounds) == (None, True, "job1", 1)
        assert world.freed == 1
        with pytest.raises(NotNow, match="active not long ago") as error:
            await world.rouse("w2")
        assert error.value.later == world.clock.wall() + 300
        await trio.sleep(300)
        assert (await world.rouse("w2")).state == "semantic_wait"
        await world.begin("job2")
        assert (await world.rouse("w3", news=True)).job == "job2"
        assert world.wakes() == {
            "w1": "dispatched",
            "w2": "semantic_wait",
            "w3": "dispatched",
        }
        assert [each["outcome"] for each in world.told("controller_woken")] == [
            *("dispatched", "semantic_wait", "dispatched")
        ]
        [said] = world.told("controller_told")
        assert (said["disposition"], said["reason"]) == ("wait", "the tests run")
        events = world.store.durable.events
        [job] = [e.job for e in events if e.kind == "controller_told"]
        assert job == "job1"


async def test_a_turn_that_asks_for_another_has_it_at_once_until_rounds_end() -> None:
    async with World().open() as world:
        await world.add()
        await world.begin("job1")
        await world.rouse("w1", "person")
        for number in range(1, 9):
            await world.begin(f"job{number + 1}")
            await world.say("continue_immediately", f"job{number}")
            await world.end(f"job{number}")
        now = await world.now()
        assert (now.state, now.rounds, now.due) == ("waiting_for_user", 8, None)
        assert len(world.host.asked) == 8
        assert world.host.asked[1].origin == "continuation:fixer"
        told = await world.rouse("w2")
        assert (told.state, len(world.host.asked)) == ("wait_for_user", 8)
        [waits] = world.told("controller_waiting_for_user")
        assert waits["reason"] == "it has had 8 turns since a person looked"
        await world.mailbox.ask(lambda reply: Resume("fixer", reply))
        await trio.sleep(300)
        assert (await world.rouse("w3")).state == "dispatched"


async def test_who_may_say_how_a_turn_ends() -> None:
    async with World().open() as world:
        await world.add()
        with pytest.raises(Refused, match="no turn of controller 'fixer'"):
            await world.say("wait", name="fixer")
        await world.begin("job1")
        await world.rouse("w1")
        with pytest.raises(NotFound, match="no turn of a controller"):
            await world.say("wait", "job9")
        with pytest.raises(Refused, match="job job9 cannot speak"):
            await world.say("wait", "job9", "fixer")
        await world.say("wait", "job1", "fixer")
        # What is said last counts.
        await world.say("goal_complete", name="fixer", note="all green")
        await world.end("job1")
        now = await world.now()
        assert (now.state, now.why) == ("done", "all green")
        told = await world.rouse("w2", "person")
        assert (told.state, told.reason) == (
            "rejected",
            "controller fixer has done its work",
        )
        with pytest.raises(Refused, match="has done its work"):
            await world.mailbox.ask(lambda reply: Pause("fixer", "why", reply))


async def test_stalled_turns_are_gone_on_with_two_at_a_pass() -> None:
    async with World().open() as world:
        names = ["a", "b", "c"]
        for name in names:
            await world.add(name)
            await world.begin(f"{name}1")
            await world.rouse(f"w{name}", name=name)
        for name in names:
            await world.begin(f"{name}2")
            await world.end(f"{name}1")
        await trio.sleep(659)
        assert len(world.host.asked) == 3
        await trio.sleep(2)
        await blocked()
        assert len(world.host.asked) == 5
        await trio.sleep(57)
        assert len(world.host.asked) == 5
        await trio.sleep(3)
        await blocked()
        asked = [one.controller for one in world.host.asked[3:]]
        assert (sorted(asked[:2]), asked[2:]) == (["a", "b"], ["c"])
        assert world.host.asked[3].prompt == "Go on. recovery"


async def test_a_host_without_jobs_ends_its_turn_by_a_word_or_has_stalled() -> None:
    async with World().open() as world:
        await world.add(job=None)
        told = await world.rouse("w1")
        assert (told.job, told.dispatch) == (None, "d1")
        with pytest.raises(NotNow, match="its turn has not ended"):
            await world.rouse("w2", "person")
        await world.say("wait", name="fixer")
        assert (await world.now()).round is None
        await trio.sleep(300)
        await world.rouse("w3", news=True)
        await trio.sleep(600 + 660 + 1)
        await blocked()
        assert [each.wake for each in world.host.asked[:2]] == ["w1", "w3"]
        assert len(world.host.asked) == 3
        world.host.resumes = False
        await trio.sleep(601)
        now = await world.now()
        assert (now.state, len(world.host.asked)) == ("waiting_for_user", 3)


async def test_a_silent_turn_that_cannot_be_asked_again_waits_for_a_person() -> None:
    async with World().open() as world:
        await world.add()
        world.host.resumes = False
        await world.begin("job1")
        await world.rouse("w1", "person")
        await trio.sleep(5)
        await world.end("job1")
        now = await world.now()
        assert (now.state, now.since) == ("waiting_for_user", world.clock.wall())
        assert now.why == "it ended its turn without a word, and cannot be asked again"


async def test_a_pause_and_a_policy_hold_and_what_follows_comes_later() -> None:
    async with World().open() as world:
        await world.add()
        await world.begin("job1")
        await world.rouse("w1")
        await world.begin("job2")
        await world.say("continue_immediately", "job1")
        world.closed = "maintenance"
        await world.end("job1")
        assert len(world.host.asked) == 1
        world.closed = None
        await world.mailbox.ask(lambda reply: Pause("fixer", "later", reply))
        await blocked()
        assert len(world.host.asked) == 1
        with pytest.raises(NotNow, match="is paused"):
            await world.rouse("w2", "person")
        await world.mailbox.ask(lambda reply: Resume("fixer", reply))
        assert (await world.rouse("w2", "person")).job == "job2"
        with pytest.raises(NotFound):
            await world.rouse("w3", name="other")
        await world.mailbox.ask(lambda reply: Remove("fixer", reply))
        assert world.store.durable.controllers == {}
        await world.end("job2")


@pytest.mark.parametrize(
    ("answer", "state", "of"),
    [
        (HostAnswer("wait", "busy"), "semantic_wait", "active"),
        (HostAnswer("wait_for_user", "log in"), "wait_for_user", "waiting_for_user"),
        (HostAnswer("rejected", "never"), "rejected", "active"),
        (RuntimeError("it broke"), "outcome_unknown", "waiting_for_user"),
    ],
)
async def test_what_a_host_answers_is_kept(
    answer: HostAnswer | Exception, state: str, of: str
) -> None:
    async with World().open() as world:
        await world.add()
        world.host.answer = answer
        told = await world.rouse("w1")
        assert (told.state, world.wakes()) == (state, {"w1": state})
        now = await world.now()
        assert (now.state, now.round, now.rounds) == (of, None, 0)
        world.host.answer = None
        assert (await world.rouse("w1")).state == state
        assert len(world.host.asked) == 1


async def test_a_binding_that_leads_elsewhere_and_a_lost_session_wake_nothing() -> None:
    async with World().open() as world:
        await world.add(binding={})
        await world.add("lost", job="job9")
        told = await world.rouse("w1")
        assert (told.state, told.reason) == (
            "rejected",
            "it is bound to something else than it was",
        )
        assert (await world.rouse("w2", name="lost")).state == "rejected"
        assert world.host.asked == []


async def test_one_that_cannot_be_read_is_left_alone() -> None:
    world = World()
    async with world.open():
        await world.add("good")
        await world.add("bad")
    key, name, state, _ = world.store.durable.controllers["id-bad"]
    world.store.durable.controllers["id-bad"] = (key, name, state, b"{")
    again = World(MemoryStore(durable=world.store.durable), world.host)
    async with again.open():
        assert (await again.now("bad")).state == "quarantined"
        await blocked()
        row = again.store.durable.controllers["id-bad"]
        assert row[2:] == ("quarantined", b"{")
        assert (await again.rouse("w", name="good")).state == "dispatched"
        assert (await again.rouse("v", name="bad")).state == "rejected"
        with pytest.raises(Refused, match="set aside"):
            await again.mailbox.ask(lambda reply: Pause("bad", "why", reply))


async def live(world: World) -> None:
    """A schedule that asks until it has an answer, and an agent with two turns."""
    if not any(row[1] == "fixer" for row in world.store.controllers()):
        await world.add()
    while world.store.wake("w1") is None or world.wakes().get("w1") == "prepared":
        await world.rouse("w1")
    while True:
        await blocked()
        now = await world.now()
        if now.round is None or now.round.job is None:
            return
        job = now.round.job
        if world.store.durable.jobs[job].state == "queued":
            if now.round.told is None:
                first = job == "job1"
                await world.say("continue_immediately" if first else "wait", job)
            await world.end(job)


async def whole(life: int, *, after: bool, forgets: bool) -> tuple[World, int]:
    """From the beginning to the end, killed after so many commits."""
    world = World()
    async with world.open():
        for name in ("job1", "job2"):
            await world.begin(name)
    world.host.forgets = forgets
    mortal = World(MortalStore(world.store.durable, life, after=after), world.host)
    while True:
        try:
            async with mortal.open():
                await live(mortal)
            return mortal, mortal.store.commits
        except* Killed:
            store = MortalStore(mortal.store.durable, -1, after=after)
        mortal = World(store, mortal.host)


@pytest.mark.parametrize("forgets", [False, True])
async def test_no_occurrence_is_dispatched_twice_wherever_the_runtime_is_killed(
    forgets: bool,
) -> None:
    world, commits = await whole(-1, after=False, forgets=forgets)
    assert sorted(world.wakes().values()) == ["dispatched", "dispatched"]
    assert commits > 8
    unknown = 0
    for life in range(commits):
        for after in (False, True):
            world, _ = await whole(life, after=after, forgets=forgets)
            asked = [each.wake for each in world.host.asked]
            assert len(asked) == len(set(asked)), (life, after)
            states = world.wakes()
            assert set(asked) <= set(states)
            if "outcome_unknown" not in states.values():
                assert set(states.values()) == {"dispatched"}, (life, after)
                continue
            unknown += 1
            [(_, _, state, _)] = world.store.durable.controllers.values()
            assert state == "waiting_for_user"
            lost = {key for key, what in states.items() if what == "outcome_unknown"}
            # What the host can tell of is known.
            assert forgets or not lost & set(world.host.begun)
    assert unknown > 0
