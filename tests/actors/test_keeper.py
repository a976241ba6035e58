"""Keepers: an actor that fails begins anew, and whoever asks it is never left alone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.kit import (
    ActorStopped,
    Keeper,
    MailboxClosed,
    RestartPolicy,
    open_mailbox,
)
from tests.actors.own_actors import Adder, Bug, Message, Note, Park, Steps, add

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.mock_clock


@asynccontextmanager
async def kept(
    adder: Adder, **options: Any
) -> AsyncGenerator[tuple[Keeper[Message], trio.Nursery], None]:
    keeper: Keeper[Message] = Keeper("the adder", adder.run, **options)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        yield keeper, nursery
        keeper.kill()
    assert keeper.over.is_set()


async def test_one_that_fails_begins_anew_from_what_it_saved() -> None:
    adder = Adder()
    async with kept(adder) as (keeper, _):
        assert await add(keeper, 2) == 2
        # It may have acted, as it had the message in its hands.
        with pytest.raises(ActorStopped) as caught:
            await add(keeper, -1)
        assert not isinstance(caught.value, MailboxClosed)
        assert await add(keeper, 3) == 5
        assert (adder.lives, keeper.failures, keeper.given_up) == (2, 1, None)


async def test_what_waited_behind_the_failure_is_answered_by_the_next() -> None:
    adder = Adder()
    answers: list[int] = []

    async def ask(number: int) -> None:
        answers.append(await add(keeper, number))

    async with kept(adder) as (keeper, nursery):
        await trio.testing.wait_all_tasks_blocked()
        assert keeper.tell(Note("this fails"))
        nursery.start_soon(ask, 4)
        nursery.start_soon(ask, 4)
        await trio.testing.wait_all_tasks_blocked()
        assert (sorted(answers), adder.lives) == ([4, 8], 2)


async def test_an_answer_that_nobody_can_give_any_more_is_not_waited_for() -> None:
    async with kept(Adder()) as (keeper, nursery):

        async def wait() -> None:
            with pytest.raises(ActorStopped):
                await keeper.ask(Park)

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        keeper.tell(Note("this fails"))
        assert await add(keeper, 1) == 1


async def test_a_start_that_fails_is_a_failure_like_any_other() -> None:
    adder = Adder()
    adder.stillborn = {1, 2}
    async with kept(adder) as (keeper, _):
        assert await add(keeper, 1) == 1
        assert (adder.lives, keeper.failures) == (3, 2)


async def test_one_that_fails_too_often_is_given_up_and_says_why() -> None:
    adder = Adder()
    policy = RestartPolicy(intensity=2, period=10)
    async with kept(adder, policy=policy) as (keeper, _):
        for _ in range(3):
            with pytest.raises(ActorStopped):
                await add(keeper, -7)
        await keeper.over.wait()
        assert (adder.lives, keeper.failures) == (3, 3)
        assert keeper.given_up == "Bug: not -7"
        with pytest.raises(MailboxClosed, match="the adder was given up: Bug: not -7"):
            await add(keeper, 1)
        assert not keeper.tell(Note("anything"))


async def test_failures_that_are_far_apart_are_too_few() -> None:
    policy = RestartPolicy(intensity=2, period=10)
    async with kept(Adder(), policy=policy) as (keeper, _):
        for _ in range(6):
            with pytest.raises(ActorStopped):
                await add(keeper, -1)
            await trio.sleep(6)
        assert (keeper.failures, await add(keeper, 1)) == (6, 1)


@pytest.mark.parametrize(
    ("restart", "after_end", "after_failure"),
    [("permanent", 2, 2), ("transient", 1, 2), ("temporary", 1, 1)],
)
async def test_when_it_begins_anew_is_up_to_its_kind(
    restart: str, after_end: int, after_failure: int
) -> None:
    for text, lives in (("end", after_end), ("this fails", after_failure)):
        adder = Adder()
        async with kept(adder, restart=restart) as (keeper, _):
            await trio.testing.wait_all_tasks_blocked()
            keeper.tell(Note(text))
            await trio.testing.wait_all_tasks_blocked()
            assert adder.lives == lives
            assert keeper.over.is_set() == (lives == 1)
            gone = "Bug: a note" if (text, lives) == ("this fails", 1) else None
            assert keeper.given_up == gone


async def test_an_error_that_is_no_failure_ends_it_without_a_word() -> None:
    adder = Adder()
    async with kept(adder, ends_at=(Bug,)) as (keeper, _):
        await trio.testing.wait_all_tasks_blocked()
        keeper.tell(Note("this fails"))
        await keeper.over.wait()
        assert (adder.lives, keeper.failures, keeper.given_up) == (1, 0, None)


async def test_one_that_is_hopeless_is_given_up_at_once() -> None:
    adder = Adder()
    adder.stillborn = {1}
    async with kept(adder, gives_up_at=(Bug,)) as (keeper, _):
        await keeper.over.wait()
        assert adder.lives == 1
        assert keeper.given_up == "Bug: it cannot be loaded"


async def test_a_stop_serves_what_is_queued_and_refuses_what_comes_later() -> None:
    adder = Adder()
    answers: list[int] = []

    async def ask(number: int) -> None:
        answers.append(await add(keeper, number))

    async with kept(adder, restart="permanent") as (keeper, nursery):
        await trio.testing.wait_all_tasks_blocked()
        adder.last_rites = trio.Event()
        keeper.tell(Note("hold"))
        for _ in range(3):
            nursery.start_soon(ask, 1)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(keeper.stop)
        await trio.testing.wait_all_tasks_blocked()
        assert (answers, keeper.over.is_set()) == ([], False)
        with pytest.raises(MailboxClosed):  # though it has not ended yet
            await add(keeper, 1)
        adder.last_rites.set()
        await keeper.over.wait()
    assert (sorted(answers), adder.lives, keeper.given_up) == ([1, 2, 3], 1, None)


@pytest.mark.parametrize("last", ["end", "this fails"])
async def test_one_that_is_told_to_end_does_not_begin_anew(last: str) -> None:
    adder = Adder()
    async with kept(adder, restart="permanent") as (keeper, _):
        assert await add(keeper, 1) == 1
        keeper.stop_by(Note(last))
        with pytest.raises(MailboxClosed):  # though it has not ended yet
            await add(keeper, 1)
        await keeper.over.wait()
    assert adder.lives == 1


async def test_one_that_does_not_run_need_not_be_told_to_end() -> None:
    adder = Adder()
    adder.last_rites = trio.Event()
    async with kept(adder) as (keeper, _):
        await trio.testing.wait_all_tasks_blocked()
        keeper.tell(Note("this fails"))
        await trio.testing.wait_all_tasks_blocked()
        keeper.stop_by(Note("end"))
        adder.last_rites.set()
        await keeper.over.wait()
    assert adder.lives == 1


async def test_who_asks_while_the_last_one_cleans_up_waits_without_turning() -> None:
    adder = Adder()
    adder.last_rites = trio.Event()
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await add(keeper, 5))

    async with kept(adder) as (keeper, nursery):
        await trio.testing.wait_all_tasks_blocked()
        keeper.tell(Note("this fails"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask)
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(steps)
        assert steps.count < 70
        adder.last_rites.set()
        await trio.testing.wait_all_tasks_blocked()
        assert answers == [5]


async def test_a_kill_refuses_every_asker() -> None:
    outcomes: list[type[BaseException]] = []

    async def ask(make: Any) -> None:
        try:
            await keeper.ask(make)
        except ActorStopped as error:
            outcomes.append(type(error))

    async with kept(Adder()) as (keeper, nursery):
        nursery.start_soon(ask, Park)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, Park)
        await trio.lowlevel.checkpoint()
        keeper.kill()
        await keeper.over.wait()
        nursery.start_soon(ask, Park)
    assert outcomes.count(ActorStopped) + outcomes.count(MailboxClosed) == 3
    assert MailboxClosed in outcomes


async def test_a_refusal_of_another_actor_is_passed_on_and_not_tried_again() -> None:
    calls: list[Message] = []

    async def run(*, task_status: trio.TaskStatus[Any]) -> None:
        mailbox, inbox = open_mailbox()
        task_status.started(mailbox)
        async for message in inbox:
            calls.append(message)
            message.reply.refuse(MailboxClosed("another one has ended"))

    keeper: Keeper[Message] = Keeper("it", run)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        with pytest.raises(MailboxClosed, match="another one"):
            await keeper.ask(Park)
        assert len(calls) == 1
        keeper.kill()


async def test_an_asker_that_gives_up_leaves_nothing_behind() -> None:
    async with kept(Adder()) as (keeper, _):
        with trio.move_on_after(1) as scope:
            await keeper.ask(Park)
        assert scope.cancelled_caught
        assert await add(keeper, 1) == 1


async def test_one_that_answers_late_does_so_after_its_end() -> None:
    replies: list[Any] = []

    async def run(*, task_status: trio.TaskStatus[Any]) -> None:
        mailbox, inbox = open_mailbox()
        task_status.started(mailbox)
        replies.append((await inbox.receive()).reply)

    keeper: Keeper[Message] = Keeper("it", run, answers_late=True)
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await keeper.ask(partial(Park)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert keeper.over.is_set()
        replies[0].answer(9)
    assert answers == [9]
