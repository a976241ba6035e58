"""Supervisors of a user's own actors: they live as long as the block, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from forge_actors.kit import (
    ActorStopped,
    Keeper,
    MailboxClosed,
    RestartIntensityReached,
    RestartPolicy,
    open_mailbox,
    open_supervisor,
    serving,
)
from tests.actors.own_actors import Adder, Bug, Message, Note, add

pytestmark = pytest.mark.mock_clock

ONCE = RestartPolicy(intensity=1, period=60)


async def test_actors_end_with_the_block_the_last_one_first() -> None:
    adders = [Adder() for _ in range(3)]
    order: list[str] = []
    async with open_supervisor() as supervisor:
        for number, adder in enumerate(adders):
            adder.order, adder.name = order, str(number)
            keeper = await supervisor.start(adder.run, name=f"adder {number}")
            assert await add(keeper, number) == number
    assert order == ["2", "1", "0"]
    with pytest.raises(MailboxClosed, match="adder 2 has ended"):
        await add(keeper, 1)


async def test_what_the_block_raises_is_raised_as_it_is_and_kills_them() -> None:
    adder, bug = Adder(), Bug("mine")

    async def block() -> None:
        async with open_supervisor() as supervisor:
            keepers.append(await supervisor.start(adder.run, name="adder"))
            raise bug

    keepers: list[Keeper[Message]] = []
    with pytest.raises(Bug) as caught:
        await block()
    assert caught.value is bug
    assert keepers[0].over.is_set()


async def test_a_deadline_around_the_block_is_its_own() -> None:
    with trio.move_on_after(1) as scope:
        async with open_supervisor() as supervisor:
            await supervisor.start(Adder().run, name="adder")
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_a_failure_past_the_limit_travels_up_and_ends_the_others() -> None:
    bad, good = Adder(), Adder()
    keepers: list[Keeper[Message]] = []

    async def block() -> None:
        async with open_supervisor() as supervisor:
            keepers.append(await supervisor.start(good.run, name="good"))
            keeper = await supervisor.start(bad.run, name="bad", policy=ONCE)
            for _ in range(2):
                with pytest.raises(ActorStopped):
                    await add(keeper, -1)
            await trio.sleep_forever()

    with pytest.raises(RestartIntensityReached, match="bad was given up: Bug") as e:
        await block()
    assert isinstance(e.value.__cause__, ExceptionGroup)
    assert (bad.lives, keepers[0].over.is_set()) == (2, True)


async def test_one_that_is_not_essential_is_given_up_alone() -> None:
    async with open_supervisor() as supervisor:
        other = await supervisor.start(Adder().run, name="good")
        keeper = await supervisor.start(
            Adder().run, name="bad", restart="temporary", essential=False
        )
        with pytest.raises(ActorStopped):
            await add(keeper, -1)
        await keeper.over.wait()
        assert keeper.given_up == "Bug: not -1"
        assert await add(other, 1) == 1


async def test_a_first_start_that_fails_is_the_callers() -> None:
    adder = Adder()
    adder.stillborn = {1}
    async with open_supervisor() as supervisor:
        with pytest.raises(Bug, match="cannot be loaded"):
            await supervisor.start(adder.run, name="adder", restart="permanent")
        assert adder.lives == 1
        keeper = await supervisor.start(adder.run, name="adder")
        assert await add(keeper, 1) == 1


async def test_one_that_ends_by_itself_is_waited_for_no_more() -> None:
    adder = Adder()
    async with open_supervisor() as supervisor:
        keeper = await supervisor.start(adder.run, name="adder")
        keeper.tell(Note("end"))
        await keeper.over.wait()
    assert adder.lives == 1


async def test_actors_of_one_nursery_begin_anew_together() -> None:
    """Several that depend on each other are one to their keeper."""
    first, second = Adder(), Adder()

    async def both(*, task_status: trio.TaskStatus[Any]) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(first.run)
            task_status.started(await nursery.start(second.run))

    async with open_supervisor() as supervisor:
        keeper = await supervisor.start(both, name="both")
        with pytest.raises(ActorStopped):
            await add(keeper, -1)
        assert await add(keeper, 1) == 1
        assert (first.lives, second.lives) == (2, 2)
        keeper.kill()


async def test_messages_of_one_sender_arrive_in_their_order() -> None:
    heard: list[object] = []

    async def listen(*, task_status: trio.TaskStatus[Any]) -> None:
        mailbox, inbox = open_mailbox()
        with serving(inbox):
            task_status.started(mailbox)
            heard.extend([message async for message in inbox])

    async with open_supervisor() as supervisor:
        keeper = await supervisor.start(listen, name="listener")
        told = [Note(str(number)) for number in range(200)]
        for note in told:
            assert keeper.tell(note)
    assert heard == told
