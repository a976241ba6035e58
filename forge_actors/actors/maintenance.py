"""The maintenance actor: runs the clean-up program, once a period and when asked.

It never runs two at once, and none by itself while nothing can be due: then there is no
timer either, and it waits for the first job to end. That a run begins is saved before
it does, so that one that ends badly, even with all of us, is not begun again at once.
A run that fails is a line in the log, a count and an event, and nothing else.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.bookkeeper import Bookkeeper
from forge_actors.actors.mailbox import Inbox, Mailbox, Reply, open_mailbox, serving
from forge_actors.actors.maintenance_context import Context as Context
from forge_actors.actors.maintenance_messages import (
    Clean,
    JobEnded,
    Message,
    Ran,
    Reconsider,
    RunDue,
    Stop,
)
from forge_actors.domain.changes import CleanRunChanged
from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.errors import (
    ActorStopped,
    CleanUpFailed,
    MailboxClosed,
    StoreFailed,
    WriterFenced,
)
from forge_actors.domain.events import Event
from forge_actors.domain.maintenance import (
    CleanOrder,
    CleanResult,
    CleanRun,
    begun,
    cut_short,
    ended,
    next_run,
    problem,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Keep the home in order until stopped."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox("clean-up")
    async with trio.open_nursery() as nursery:
        actor = _Maintenance(context, mailbox, nursery)
        with serving(inbox), actor.keeping_time():
            task_status.started(mailbox)
            while not actor.finished:
                actor.handle(await inbox.receive())
                actor.go_on()


class _Maintenance:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._mailbox = mailbox
        self._nursery = nursery
        self._run = context.store.clean_run()
        self._visits = context.store.class_visits()
        context.tell(problem(self._run))
        #: When the first job ended since the last run began; None: none has.
        self._ended_at: float | None = None
        self._due = False
        #: Who asked for runs, in the order in which they did.
        self._asked: list[Clean] = []
        #: The run that goes on, and who waits for it.
        self._request: CleanRequest | None = None
        self._reply: Reply[CleanResult] | None = None
        self._scope = trio.CancelScope()
        self._stops = False
        self._alarm = Alarm(lambda: self._notice(RunDue()), math.inf)
        last_end = context.store.last_end()
        looked_at = 0.0 if self._run is None else self._run.looked_at
        if last_end is not None and last_end > looked_at:
            self._ended_at = context.clock.wall()
        else:
            self._await_end()

    @property
    def finished(self) -> bool:
        return self._stops and self._request is None

    @contextmanager
    def keeping_time(self) -> Iterator[None]:
        """While the block lasts, runs become due."""
        self._nursery.start_soon(self._alarm.run)
        self._set_alarm()
        try:
            yield
        finally:
            self._alarm.stop()
            self._scope.cancel()
            for asked in self._asked:
                asked.reply.refuse(MailboxClosed())
            if self._reply is not None:
                self._reply.refuse(ActorStopped())

    def handle(self, message: Message) -> None:
        match message:
            case Clean():
                self._asked.append(message)
            case RunDue():
                self._due = True
            case JobEnded():
                self._ended_at = self._context.clock.wall()
                self._set_alarm()
            case Ran(result):
                reply, self._request, self._reply = self._reply, None, None
                if reply is not None:
                    reply.answer(result)
                self._set_alarm()
            case Reconsider():
                self._set_alarm()
            case Stop():
                self._stops = True
                self._scope.cancel()

    def go_on(self) -> None:
        """Begin the next run, if one is wanted and none goes on."""
        if self._request is not None or self._stops:
            return
        if self._asked:
            asked = self._asked.pop(0)
            self._begin(asked.request, asked.reply)
        elif self._due:
            self._due = False
            now = self._context.clock.wall()
            self._begin(CleanRequest(self._context.home, now), None)

    def _begin(self, request: CleanRequest, reply: Reply[CleanResult] | None) -> None:
        self._request, self._reply = request, reply
        self._alarm.set(math.inf)
        self._scope = trio.CancelScope()
        self._nursery.start_soon(self._do, request, self._scope)

    @trio.lowlevel.enable_ki_protection
    async def _do(self, request: CleanRequest, scope: trio.CancelScope) -> None:
        """One run, from what is saved before to what is saved after it."""
        result = CleanResult(dry_run=request.dry_run, error="the runtime ends")
        with scope:
            run = None if request.dry_run else await self._save_begin(request)
            result = await self._clean(request)
            if run is not None:
                await self._save_end(run, request, result)
        if scope.cancelled_caught and self._run is not None:
            await self._save(cut_short(self._run, self._context.clock.wall()), None)
        self._notice(Ran(result))

    async def _save_begin(self, request: CleanRequest) -> CleanRun:
        run = self._run = begun(self._run, request, self._context.clock.wall())
        if not request.classes:
            self._ended_at = None
            self._await_end()
        await self._save(run, None)
        return run

    async def _clean(self, request: CleanRequest) -> CleanResult:
        context = self._context
        policy = context.policy()
        order = CleanOrder(request, policy.limits, context.claim, policy.rules)
        books = Bookkeeper(
            context.store,
            context.clock,
            self._visits,
            dry_run=request.dry_run,
            is_busy=context.is_busy,
        )
        try:
            async with books:
                return await context.clean_up.run(order, books)
        except CleanUpFailed as error:
            result = error.result or CleanResult(dry_run=request.dry_run)
            result.error = str(error)
            return result

    async def _save_end(
        self, run: CleanRun, request: CleanRequest, result: CleanResult
    ) -> None:
        clock = self._context.clock
        run = self._run = ended(run, request, result, self._visits, clock.wall())
        if run.error is not None:
            log.error("the clean-up failed: %s", run.error)
        await self._save(run, told(result, clock.now()))

    async def _save(self, run: CleanRun, event: Event | None) -> None:
        self._context.tell(problem(run))
        try:
            await self._context.store.save([CleanRunChanged(run, event)]).wait()
        except WriterFenced:
            raise
        except StoreFailed:
            # A disk that takes nothing is what a clean-up may help.
            log.warning("that the clean-up runs could not be saved")

    def _set_alarm(self) -> None:
        policy = self._context.policy()
        if self._request is not None or not policy.enabled:
            self._alarm.set(math.inf)
            return
        now = self._context.clock.wall()
        moment = next_run(self._run, self._ended_at, policy.period, now)
        self._alarm.set(trio.current_time() + max(0.0, moment - now))

    def _await_end(self) -> None:
        self._context.store.once_ended(lambda: self._notice(JobEnded()))

    def _notice(self, message: Message) -> None:
        with suppress(MailboxClosed):
            self._mailbox.tell(message)
