"""The keeper of one actor: has it begin anew when it fails, as a policy allows.

What it keeps is a function such as every actor has: it is started with `task_status`,
says `started` with its mailbox, and serves that until it is over. Several that depend
on each other are kept together by a function that runs them in a nursery of its own.

Whoever asks meanwhile is answered by the next one. An actor that fails too often is
given up, alone: what becomes of that is up to the owner of the keeper.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import trio

from forge_actors.domain.errors import ActorStopped, MailboxClosed
from forge_actors.domain.poison import cause, only
from forge_actors.domain.restarts import RestartHistory, RestartPolicy, wants_restart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.domain.restarts import Restart

log = logging.getLogger(__name__)

A = TypeVar("A")
M = TypeVar("M")


class Actor(Protocol[M]):
    """The function that is an actor, what it needs besides bound by `partial`."""

    def __call__(
        self, *, task_status: trio.TaskStatus[Mailbox[M]]
    ) -> Awaitable[None]: ...


class _Life(Generic[M]):
    """An actor from one start to its end."""

    def __init__(self) -> None:
        self.mailbox: Mailbox[M] | None = None
        #: Set when it has started, or ended before it had.
        self.begun = trio.Event()
        self.over = trio.Event()
        #: Of those who asked it.
        self.scopes: set[trio.CancelScope] = set()


class Keeper(Generic[M]):
    """Keeps one actor. `run` is its task; the other methods are for everybody else.

    `restart`: whether it begins anew whenever it has ended (`permanent`), only when it
    has failed (`transient`), or never (`temporary`).

    An error of `ends_at` is no failure: it ends with that, without a word. At one of
    `gives_up_at` another start would be of no use. An actor that `answers_late` has
    others settle its replies after its own end; whoever asked any other one then
    learns that it will not answer.
    """

    def __init__(
        self,
        name: str,
        actor: Actor[M],
        *,
        restart: Restart = "transient",
        policy: RestartPolicy | None = None,
        ends_at: tuple[type[Exception], ...] = (),
        gives_up_at: tuple[type[Exception], ...] = (),
        answers_late: bool = False,
    ) -> None:
        self.name = name
        self._actor = actor
        self._restart = restart
        self._policy = policy or RestartPolicy()
        self._ends_at = ends_at
        self._gives_up_at = gives_up_at
        self._answers_late = answers_late
        self._life: _Life[M] = _Life()
        self._scope = trio.CancelScope()
        self._stops = False
        #: How often it has failed.
        self.failures = 0
        #: The failure after which it does not begin anew, and that in a few words.
        self.error: Exception | None = None
        self.given_up: str | None = None
        #: Set once it has ended for good.
        self.over = trio.Event()

    @property
    def mailbox(self) -> Mailbox[M] | None:
        """That of the actor as it runs now; None while it does not."""
        return self._life.mailbox

    async def ask(self, make: Callable[[Reply[A]], M]) -> A:
        """What the actor answers, or the next one, if this one could not any more.

        Raises:
            MailboxClosed: it has ended for good, so it did not act.
            ActorStopped: it ended without an answer; whether it acted is unknown.
        """
        while not (self._stops or self.over.is_set()):
            life = self._life
            await life.begun.wait()
            mailbox = life.mailbox
            if mailbox is None:
                continue
            try:
                if self._answers_late:
                    return await mailbox.ask(make)
                with self._while_it_lives(life):
                    return await mailbox.ask(make)
            except MailboxClosed:
                if not mailbox.closed:
                    raise  # it is about somebody else, whom the actor asked
                if not self._stops:
                    await life.over.wait()
        raise MailboxClosed(self._why_over())

    def tell(self, message: M) -> bool:
        """Tell the actor, if it runs; whether it does.

        One that begins anew does so from what was saved, and is not told."""
        mailbox = self._life.mailbox
        if mailbox is not None:
            with suppress(MailboxClosed):
                mailbox.tell(message)
                return True
        return False

    def stop_by(self, message: M) -> None:
        """Have it end, for good, by what it ends at when it is told."""
        self._stops = True
        if not self.tell(message):
            self._scope.cancel()

    async def stop(self) -> None:
        """Let it serve what is queued and end, for good; return when it has."""
        self._stops = True
        if self._life.mailbox is None:
            self._scope.cancel()
        else:
            self._life.mailbox.close()
        await self.over.wait()

    def kill(self) -> None:
        """End it where it is, for good."""
        self._scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def run(self, *, task_status: trio.TaskStatus[None] | None = None) -> None:
        """Keep the actor; return when it has ended, was ended, or is given up.

        With `nursery.start` a first start that fails is an error of whoever starts it.
        """
        history = RestartHistory(self._policy)
        try:
            with self._scope:
                while await self._again(history, task_status):
                    task_status = None
        finally:
            self.over.set()

    async def _again(
        self, history: RestartHistory, told: trio.TaskStatus[None] | None
    ) -> bool:
        life = self._life
        try:
            await self._live(life, (lambda: None) if told is None else told.started)
        except Exception as error:  # nothing else is to fail with it
            if told is not None and life.mailbox is None:
                raise
            return self._begins_anew(history, error)
        return self._begins_anew(history, None)

    def _begins_anew(self, history: RestartHistory, error: Exception | None) -> bool:
        """Whether it does, after an end in this way."""
        failed = error is not None
        if error is not None:
            if only(error, self._ends_at):
                return False
            self.failures += 1
            log.error("%s failed", self.name, exc_info=error)
        hopeless = error is not None and only(error, self._gives_up_at)
        wanted = not self._stops and wants_restart(self._restart, failed=failed)
        if hopeless or not wanted:
            self.error = error
        elif history.allow(trio.current_time()):
            return True
        else:
            self.error = error or RuntimeError("it ends over and over")
        if self.error is not None:
            self.given_up = cause(self.error)
        return False

    async def _live(self, life: _Life[M], started: Callable[[], object]) -> None:
        """From its start to its end, once."""
        try:
            async with trio.open_nursery() as nursery:
                life.mailbox = await nursery.start(self._actor)
                life.begun.set()
                started()
        finally:
            # Whoever waits for this one waits for the next.
            self._life = _Life()
            life.begun.set()
            life.over.set()
            for scope in life.scopes:
                scope.cancel()

    @contextmanager
    def _while_it_lives(self, life: _Life[M]) -> Iterator[None]:
        """Ask within this.

        Raises:
            ActorStopped: it has ended meanwhile.
        """
        with trio.CancelScope() as scope:
            life.scopes.add(scope)
            try:
                yield
            finally:
                life.scopes.discard(scope)
        if scope.cancelled_caught:
            raise ActorStopped

    def _why_over(self) -> str:
        why = "has ended" if self.given_up is None else f"was given up: {self.given_up}"
        return f"{self.name} {why}"
