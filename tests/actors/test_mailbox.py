"""Mailboxes: every asker gets an answer or an error, whatever becomes of the actor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors.mailbox import (
    MAILBOX_SIZE,
    Inbox,
    Mailbox,
    Reply,
    ask_together,
    open_mailbox,
    serving,
)
from forge_actors.domain.errors import ActorStopped, MailboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.mock_clock


@dataclass(frozen=True)
class Double:
    number: int
    reply: Reply[int]


@dataclass(frozen=True)
class Note:
    text: str


Message = Double | Note


class Bug(Exception):
    pass


def pair() -> tuple[Mailbox[Message], Inbox[Message]]:
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    return mailbox, inbox


async def double(mailbox: Mailbox[Message], number: int) -> int:
    return await mailbox.ask(partial(Double, number))


async def serve(inbox: Inbox[Message]) -> None:
    """An actor that doubles, and fails at 13 with the reply in hand."""
    with serving(inbox):
        while True:
            match await inbox.receive():
                case Double(number, reply):
                    with reply:
                        if number == 13:
                            raise Bug
                        reply.answer(2 * number)
                case Note("stop"):
                    return
                case Note():
                    pass


async def outcome_of(ask: Callable[[], object], into: list[object]) -> None:
    try:
        into.append(await ask())  # type: ignore[misc]
    except (ActorStopped, Bug) as error:
        into.append(type(error))


async def test_an_ask_is_answered() -> None:
    mailbox, inbox = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, inbox)
        assert await double(mailbox, 4) == 8
        mailbox.tell(Note("stop"))


async def test_nobody_hangs_when_the_actor_fails_at_a_request() -> None:
    mailbox, inbox = pair()
    answers: list[object] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as askers:
            for number in (1, 13, 2, 3):
                askers.start_soon(outcome_of, partial(double, mailbox, number), answers)
                await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(Bug):
                await serve(inbox)
    # The one in hand may have acted; those behind it certainly did not.
    assert sorted(answers, key=str) == [2, ActorStopped, MailboxClosed, MailboxClosed]


async def test_nobody_hangs_when_the_actor_is_killed() -> None:
    mailbox, inbox = pair()
    answers: list[object] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as askers, trio.open_nursery() as actor:
            actor.start_soon(serve, inbox)
            await trio.testing.wait_all_tasks_blocked()
            actor.cancel_scope.cancel()
            for number in range(3):
                ask = partial(double, mailbox, number)
                askers.start_soon(outcome_of, ask, answers)
    assert answers == [MailboxClosed] * 3


async def test_who_asks_a_stopped_actor_learns_that_it_did_not_act() -> None:
    mailbox, inbox = pair()
    mailbox.tell(Note("stop"))
    await serve(inbox)
    with pytest.raises(MailboxClosed):
        await double(mailbox, 1)
    with pytest.raises(MailboxClosed):
        mailbox.tell(Note("hello"))
    assert issubclass(MailboxClosed, ActorStopped)


async def test_what_was_queued_before_a_stop_is_served() -> None:
    mailbox, inbox = pair()
    answers: list[object] = []
    async with trio.open_nursery() as nursery:
        for number in range(3):
            ask = partial(double, mailbox, number)
            nursery.start_soon(outcome_of, ask, answers)
        await trio.testing.wait_all_tasks_blocked()
        mailbox.tell(Note("stop"))
        nursery.start_soon(serve, inbox)
    assert sorted(answers) == [0, 2, 4]  # type: ignore[type-var]


async def test_an_answer_tells_whether_it_was_heard() -> None:
    mailbox, inbox = pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(double, mailbox, 1)
        heard = await inbox.receive()
        assert isinstance(heard, Double)
        assert heard.reply.answer(2)

        scope = trio.CancelScope()

        async def give_up() -> None:
            with scope:
                await double(mailbox, 1)

        nursery.start_soon(give_up)
        unheard = await inbox.receive()
        assert isinstance(unheard, Double)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert not unheard.reply.answer(2)
        assert not unheard.reply.refuse(Bug())


async def test_an_asker_that_gave_up_before_it_was_served_is_not_heard() -> None:
    mailbox, inbox = pair()
    with trio.move_on_after(1):
        await double(mailbox, 1)
    message = inbox.receive_nowait()
    assert isinstance(message, Double)
    with message.reply as reply:
        assert not reply.answer(2)
    assert inbox.empty


async def test_a_refusal_reaches_the_asker_as_it_is() -> None:
    mailbox, inbox = pair()
    bug = Bug("no")
    async with trio.open_nursery() as nursery:

        async def refuse() -> None:
            message = await inbox.receive()
            assert isinstance(message, Double)
            with message.reply as reply:
                assert reply.refuse(bug)

        nursery.start_soon(refuse)
        with pytest.raises(Bug) as caught:
            await double(mailbox, 1)
        assert caught.value is bug


async def test_an_actor_may_answer_later() -> None:
    mailbox, inbox = pair()
    async with trio.open_nursery() as nursery:

        async def answer_later() -> None:
            message = await inbox.receive()
            assert isinstance(message, Double)
            with message.reply:
                pass  # to be answered when it is durable
            await trio.sleep(5)
            assert message.reply.answer(7)

        nursery.start_soon(answer_later)
        assert await double(mailbox, 1) == 7
        assert trio.current_time() == pytest.approx(5)


async def test_open_asks_are_bounded_and_first_come_first_served() -> None:
    mailbox, inbox = pair()
    async with trio.open_nursery() as nursery:
        for number in range(MAILBOX_SIZE + 20):
            nursery.start_soon(double, mailbox, number)
            await trio.testing.wait_all_tasks_blocked()
        seen = []
        while (message := inbox.receive_nowait()) is not None:
            seen.append(message)
        assert len(seen) == MAILBOX_SIZE
        for expected in range(MAILBOX_SIZE + 20):
            while (message := inbox.receive_nowait()) is not None:
                seen.append(message)
            message = seen[expected]
            assert isinstance(message, Double)
            assert message.number == expected
            message.reply.answer(0)
            await trio.testing.wait_all_tasks_blocked()


async def test_a_place_is_free_again_however_an_ask_ends() -> None:
    mailbox, inbox = pair()
    for _ in range(MAILBOX_SIZE):
        with trio.move_on_after(1):
            await double(mailbox, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, inbox)
        assert await double(mailbox, 5) == 10
        mailbox.tell(Note("stop"))
    for _ in range(MAILBOX_SIZE + 1):
        with pytest.raises(MailboxClosed):
            await double(mailbox, 1)


async def test_a_notice_never_waits() -> None:
    mailbox, inbox = pair()
    async with trio.open_nursery() as nursery:
        for number in range(MAILBOX_SIZE + 1):
            nursery.start_soon(double, mailbox, number)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(10 * MAILBOX_SIZE):
            mailbox.tell(Note("news"))
        nursery.cancel_scope.cancel()
    del inbox


async def test_what_a_dropped_message_carries_is_put_back() -> None:
    mailbox, inbox = pair()
    dropped: list[Message] = []
    for text in "abc":
        mailbox.tell(Note(text))
    with pytest.raises(Bug), serving(inbox, dropped.append):  # noqa: PT012
        assert inbox.receive_nowait() == Note("a")
        raise Bug
    assert dropped == [Note("b"), Note("c")]


async def test_several_actors_are_asked_together() -> None:
    mailboxes = []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            mailbox, inbox = pair()
            mailboxes.append(mailbox)
            nursery.start_soon(serve, inbox)
        closed, inbox = pair()
        inbox.close()
        asks = [(each, partial(Double, n)) for n, each in enumerate(mailboxes)]
        asks.insert(1, (closed, partial(Double, 5)))
        first, gone, *others = await ask_together(asks)
        assert [first, *others] == [0, 2, 4]
        assert isinstance(gone, MailboxClosed)
        nothing: list[tuple[Mailbox[Message], Callable[[Reply[int]], Message]]] = []
        assert await ask_together(nothing) == []
        for mailbox in mailboxes:
            mailbox.tell(Note("stop"))


async def test_one_that_fails_meanwhile_keeps_nobody_from_the_others() -> None:
    (good, served), (bad, failing) = pair(), pair()
    found: list[object] = []

    async def ask() -> None:
        asks = [(good, partial(Double, 4)), (bad, partial(Double, 13))]
        found.extend(await ask_together(asks))

    async with trio.open_nursery() as askers:
        askers.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Bug):
            await serve(failing)
        assert found == []
        askers.start_soon(serve, served)
        await trio.testing.wait_all_tasks_blocked()
        good.tell(Note("stop"))
    told, failed = found
    assert told == 8
    assert isinstance(failed, ActorStopped)


async def test_who_leaves_while_several_are_asked_is_told_nothing() -> None:
    mailboxes, replies = [], []
    async with trio.open_nursery() as nursery:
        pairs = [pair() for _ in range(2)]
        mailboxes = [mailbox for mailbox, _ in pairs]
        asks = [(mailbox, partial(Double, 1)) for mailbox in mailboxes]
        nursery.start_soon(ask_together, asks)
        await trio.testing.wait_all_tasks_blocked()
        replies = [inbox.receive_nowait() for _, inbox in pairs]
        nursery.cancel_scope.cancel()
    asked = [each for each in replies if isinstance(each, Double)]
    assert [each.reply.answer(2) for each in asked] == [False, False]
    # And it takes no place of others.
    for mailbox in mailboxes:
        for _ in range(MAILBOX_SIZE):
            with trio.fail_after(1):
                await mailbox.enter()
