"""Mailboxes: ask with a reply, tell without, and what happens to both at the end.

Requests go downward, from an owner to what it owns, and may wait; notices go upward and
never do. A mailbox therefore takes every notice (each actor sends a bounded number of
them, see its module) and makes askers wait in line when `MAILBOX_SIZE` asks are open.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import outcome
import trio

from forge_actors.actors.pulse import CURRENT, UNWATCHED
from forge_actors.domain.errors import ActorStopped, MailboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forge_actors.actors.pulse import Pulse

#: Asks that may be open at one actor; further askers wait their turn.
MAILBOX_SIZE = 64

M = TypeVar("M")
A = TypeVar("A")


class Reply(Generic[A]):
    """Where the answer to one ask goes. Used once; made only by `Mailbox.ask`.

    Invariant: `_task is not None` exactly while the asker waits, so `answer` knows
    whether its value reaches somebody's hands.
    """

    __slots__ = ("_settled", "_task")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
        self._settled = False

    def answer(self, value: A) -> bool:
        """Give the asker its answer; False if it has left."""
        return self._settle(outcome.Value(value))

    def refuse(self, error: Exception) -> bool:
        """Make the ask raise `error`; False if the asker has left."""
        return self._settle(outcome.Error(error))

    def _settle(self, result: outcome.Outcome[A]) -> bool:
        self._settled = True
        task, self._task = self._task, None
        if task is None:
            return False
        trio.lowlevel.reschedule(task, result)
        return True

    def __enter__(self) -> Reply[A]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """An actor that fails with the reply in hand leaves nobody hanging.

        One that leaves without answering does so later, when the change is durable.
        """
        if kind is not None and not self._settled:
            self.refuse(ActorStopped())

    async def wait(self) -> A:
        """What the asker does: wait until it is settled."""

        def abandon(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        answer: A = await trio.lowlevel.wait_task_rescheduled(abandon)
        return answer


class Mailbox(Generic[M]):
    """The sending end of one actor's channel."""

    def __init__(
        self, channel: trio.MemorySendChannel[M], pulse: Pulse = UNWATCHED
    ) -> None:
        self._channel = channel
        self._room = trio.Semaphore(MAILBOX_SIZE)
        self._pulse = pulse
        #: Messages that were sent so far.
        self.sent = 0

    @property
    def closed(self) -> bool:
        """Nobody takes another message: the actor is stopping, or has ended."""
        found = self._channel.statistics()
        return found.open_send_channels == 0 or found.open_receive_channels == 0

    def close(self) -> None:
        """Have the actor end once it has served what is queued: it is sent no more."""
        self._channel.close()
        self._pulse.wake()

    @property
    def depth(self) -> int:
        """How many messages nobody has read yet."""
        return self._channel.statistics().current_buffer_used

    def tell(self, message: M) -> None:
        """Send without waiting.

        Raises:
            MailboxClosed: the actor has stopped and will not act.
        """
        try:
            self._channel.send_nowait(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise MailboxClosed from None
        self.sent += 1
        if self._pulse.asleep:
            self._pulse.wake()

    async def ask(self, make: Callable[[Reply[A]], M]) -> A:
        """Send the message that `make` builds around a reply, and wait for the answer.

        Raises:
            MailboxClosed: the actor had stopped, so it did not act.
            ActorStopped: it stopped without answering; whether it acted is unknown.
        """
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            await self._room.acquire()
        try:
            reply: Reply[A] = Reply()
            self.tell(make(reply))
            return await reply.wait()
        finally:
            self._room.release()

    async def enter(self) -> None:
        """Take part in `ask_together`, once there is room for another ask."""
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            await self._room.acquire()

    def leave(self) -> None:
        """That is over."""
        self._room.release()


def told(mailbox: Mailbox[M], message: M) -> bool:
    """Tell an actor; False if it has just ended, which it reports itself."""
    try:
        mailbox.tell(message)
    except MailboxClosed:
        return False
    return True


class _Part(Reply[A]):
    """The answer of one of several actors that were asked together."""

    __slots__ = ("_answers", "_place")

    def __init__(self, answers: _Answers[A], place: int) -> None:
        self._settled = False
        self._task = None
        self._answers = answers
        self._place = place

    def _settle(self, result: outcome.Outcome[A]) -> bool:
        self._settled = True
        return self._answers.settle(self._place, result)


class _Answers(Generic[A]):
    """The answers that one task waits for together; the last one wakes it."""

    def __init__(self, count: int) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._left = True
        self._found: dict[int, A | Exception] = {}
        self._count = count

    def settle(self, place: int, result: outcome.Outcome[A]) -> bool:
        self._found[place] = _plain(result)
        task = self._task
        if task is not None and len(self._found) == self._count:
            self._task = None
            trio.lowlevel.reschedule(task)
        return self._left

    async def wait(self) -> list[A | Exception]:
        def abandon(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._task, self._left = None, False
            return trio.lowlevel.Abort.SUCCEEDED

        if len(self._found) < self._count:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(abandon)
        else:
            await trio.lowlevel.checkpoint()
        return [self._found[place] for place in range(self._count)]


def _plain(result: outcome.Outcome[A]) -> A | Exception:
    try:
        return result.unwrap()
    except Exception as error:  # noqa: BLE001 - whoever asked looks at it
        return error


async def ask_together(
    asks: Sequence[tuple[Mailbox[M], Callable[[Reply[A]], M]]],
) -> list[A | Exception]:
    """Ask several actors at once; what each `Mailbox.ask` would return, or raise.

    It costs one turn of the loop and not one for each of them.
    """
    answers: _Answers[A] = _Answers(len(asks))
    taken: list[Mailbox[M]] = []
    try:
        for mailbox, _ in asks:
            await mailbox.enter()
            taken.append(mailbox)
        for place, (mailbox, make) in enumerate(asks):
            try:
                mailbox.tell(make(_Part(answers, place)))
            except MailboxClosed as error:
                answers.settle(place, outcome.Error(error))
        return await answers.wait()
    finally:
        for mailbox in taken:
            mailbox.leave()


class Inbox(Generic[M]):
    """The receiving end; exactly one task reads it."""

    def __init__(
        self,
        channel: trio.MemoryReceiveChannel[M],
        mailbox: Mailbox[M],
        pulse: Pulse = UNWATCHED,
    ) -> None:
        self._channel = channel
        self._mailbox = mailbox
        #: Messages that were taken out so far.
        self._taken = 0
        self._pulse = pulse

    async def receive(self) -> M:
        """Wait for the next message.

        Raises:
            trio.EndOfChannel: all were taken, and the mailbox is closed.
        """
        message = await self._channel.receive()
        self._taken += 1
        return message

    def __aiter__(self) -> Inbox[M]:
        """The messages until the mailbox is closed and all of them were taken."""
        return self

    async def __anext__(self) -> M:
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    def receive_nowait(self) -> M | None:
        """The next message, or None if none is there."""
        # A channel that has none raises, which costs as much as handling a message.
        if self._taken == self._mailbox.sent:
            return None
        message = self._channel.receive_nowait()
        self._taken += 1
        return message

    @property
    def empty(self) -> bool:
        """Every message that was sent was taken."""
        return self._taken == self._mailbox.sent

    def load(self) -> tuple[int, bool]:
        """How many messages lie in it, and whether the actor waits for another one."""
        found = self._channel.statistics()
        return found.current_buffer_used, found.tasks_waiting_receive > 0

    def close(self) -> list[M]:
        """Take no more messages; what was still waiting is returned."""
        self._pulse.drop(self)
        rest = []
        while (message := self.receive_nowait()) is not None:
            rest.append(message)
        self._channel.close()
        return rest


def open_mailbox(actor: str | None = None) -> tuple[Mailbox[M], Inbox[M]]:
    """A mailbox and its inbox. The task that calls this is the `actor` of that name,
    whose progress is watched if it has one."""
    send: trio.MemorySendChannel[M]
    receive: trio.MemoryReceiveChannel[M]
    send, receive = trio.open_memory_channel(math.inf)
    pulse = UNWATCHED if actor is None else CURRENT.get()
    mailbox = Mailbox(send, pulse)
    inbox = Inbox(receive, mailbox, pulse)
    if actor is not None and pulse is not UNWATCHED:
        pulse.add(actor, mailbox, inbox)
    return mailbox, inbox


@contextmanager
def serving(
    inbox: Inbox[M], discard: Callable[[M], None] | None = None
) -> Iterator[None]:
    """Close the inbox on the way out and refuse what still waits in it.

    trio drops what is left in a closed channel without closing it, so an asker whose
    message was dropped would wait for ever. `discard` is given each message left, to
    put back what it carries.
    """
    try:
        yield
    finally:
        for message in inbox.close():
            if discard is not None:
                discard(message)
            reply = getattr(message, "reply", None)
            if isinstance(reply, Reply):
                reply.refuse(MailboxClosed())
