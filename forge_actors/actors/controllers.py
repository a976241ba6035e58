"""The controllers actor: has sessions go on that own a piece of work, each once a wake.

A wake is an occurrence with an id of its own. It is saved before its host is asked, and
again when that answers. One that was being asked when the runtime ended is never asked
again: the host may say what it knows of it, else a person is told.

Its notices are few: one alarm, and for each controller the end of its job and the
answer of its host.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.controller_book import ControllerBook
from forge_actors.actors.controllers_messages import (
    Add,
    Answered,
    Due,
    Ended,
    Looked,
    Message,
    Pause,
    Remove,
    RepositoryGone,
    Resume,
    Rouse,
    Say,
    Tell,
)
from forge_actors.actors.controllers_messages import Context as Context
from forge_actors.actors.hosting import Hosting
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.wall_alarm import WallAlarm
from forge_actors.domain.continuation import (
    PASS,
    NotNow,
    Turn,
    answered,
    become,
    ended,
    may_wake,
    next_moment,
    prepared,
    resumed,
    stalls_at,
    those_due,
    unanswered,
)
from forge_actors.domain.controller_changes import ControllerSaved
from forge_actors.domain.controller_records import (
    loaded,
    wake_from,
)
from forge_actors.domain.controllers import MAX_CONTROLLERS, Controller, Wake
from forge_actors.domain.errors import ForgeError, MailboxClosed, NotFound, Refused
from forge_actors.domain.schedules import occurrence_id

if TYPE_CHECKING:
    from forge_actors.actors.mailbox import Reply
    from forge_actors.domain.controllers import By, WakeState
    from forge_actors.domain.jobs import State

log = logging.getLogger(__name__)


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Wake controllers until cancelled."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    async with trio.open_nursery() as children:
        actor = _Controllers(context, mailbox, children)
        with serving(inbox):
            actor.load()
            task_status.started(mailbox)
            while True:
                actor.handle(await inbox.receive())
                actor.look()


class _Controllers:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._store = context.store
        self._mailbox = mailbox
        self._nursery = nursery
        self._book = ControllerBook(context.store, context.clock)
        self._hosting = Hosting(context, mailbox)
        #: Those who wait for what becomes of a wake.
        self._asking: defaultdict[str, list[Reply[Wake]]] = defaultdict(list)
        #: Wakes of which it is not known yet what becomes of them.
        self._open: dict[str, Wake] = {}
        #: No pass over those that have stalled comes before this.
        self._next_pass = 0.0
        self._alarm = WallAlarm(context.timer, lambda: mailbox.tell(Due()))
        nursery.start_soon(self._alarm.run)

    def load(self) -> None:
        """Take up what was saved."""
        for key, name, body in self._store.controllers():
            controller, problem = loaded(key, name, body)
            self._book.take_up(controller)
            if problem is not None:
                log.error("controller %s is set aside: %s", name, problem)
                event = self._book.event("controller_set_aside", controller, problem)
                # Nothing is written over what cannot be read.
                aside = ControllerSaved(key, name, "quarantined", body, event)
                self._store.save([aside])
                continue
            if not self._context.known(controller.repo):
                self._book.drop(controller)
                continue
            for row in self._store.open_wakes(key):
                wake = wake_from(row)
                self._open[wake.id] = wake
                if wake.state == "prepared":
                    self._nursery.start_soon(
                        self._hosting.dispatch, controller, wake, None
                    )
                else:
                    self._nursery.start_soon(self._hosting.find, controller, wake)
            if controller.round is not None and controller.round.job is not None:
                self._follow(key, controller.round.job)
        self.look()

    # -- messages --------------------------------------------------------------------

    def handle(self, message: Message) -> None:
        match message:
            case Due():
                pass  # whoever is due is looked at behind every message
            case Ended(key, job, state):
                self._nursery.start_soon(self._look_at, key, job, state)
            case Looked(key, job, turn):
                known = self._book.get(key)
                last = None if known is None else known.round
                if known is not None and last is not None and last.job == job:
                    self._end_turn(known, turn)
            case Answered():
                self._answered(message)
            case RepositoryGone(repo):
                for controller in self._book:
                    if controller.repo == repo:
                        self._book.drop(controller)
            case Tell(reply):
                names = sorted(self._book, key=lambda one: one.name)
                reply.answer(names)
            case _:
                with message.reply:
                    try:
                        self._serve(message)
                    except ForgeError as error:
                        message.reply.refuse(error)

    def _serve(self, message: Add | Remove | Pause | Resume | Rouse | Say) -> None:
        """Do what somebody asks for; the answer is given once it is durable."""
        match message:
            case Add(controller, reply):
                self._add(controller, reply)
            case Remove(name, reply):
                controller = self._book.named(name)
                if controller.round is not None and not controller.round.accepted:
                    raise Refused(f"controller {name!r} is woken just now")
                self._book.drop(controller, then=partial(reply.answer, controller))
                self._context.freed()
            case Pause(name, why, reply):
                controller = self._book.usable(name)
                if controller.state == "done":
                    raise Refused(f"controller {name!r} has done its work")
                paused = become(controller, "paused", why, self._wall)
                self._book.become(controller, paused, partial(reply.answer, paused))
            case Resume(name, reply):
                active = resumed(controller := self._book.usable(name), self._wall)
                self._book.become(controller, active, partial(reply.answer, active))
                self._context.freed()
            case Rouse():
                self._rouse(message)
            case Say():
                self._say(message)

    def _add(self, controller: Controller, reply: Reply[Controller]) -> None:
        if any(one.name == controller.name for one in self._book):
            raise Refused(f"there is a controller {controller.name!r} already")
        if len(self._book) >= MAX_CONTROLLERS:
            raise Refused(f"there are {MAX_CONTROLLERS} controllers, which is the most")
        event = self._book.event("controller_added", controller)
        self._book.save(controller, event, then=partial(reply.answer, controller))
        if controller.round is not None and controller.round.job is not None:
            self._follow(controller.id, controller.round.job)

    def _say(self, message: Say) -> None:
        controller = self._meant(message)
        last = controller.round
        if last is None or not last.accepted:
            raise Refused(f"no turn of controller {controller.name!r} is under way")
        last = structs.replace(
            last, told=message.disposition, note=message.note, mark=message.mark
        )
        controller = structs.replace(controller, round=last)
        event = self._book.event(
            "controller_told",
            controller,
            message.note,
            job=last.job,
            disposition=message.disposition,
        )
        self._book.save(
            controller, event, then=partial(message.reply.answer, controller)
        )
        if last.job is None:
            self._end_turn(controller, Turn(seen=self._context.seen(controller)))

    def _meant(self, message: Say) -> Controller:
        """
        Raises:
            NotFound, Refused: there is none, or it is another job's.
        """
        if message.name is not None:
            controller = self._book.named(message.name)
            if message.job not in (None, controller.job):
                raise Refused(
                    f"controller {message.name!r} goes on with job {controller.job},"
                    f" so job {message.job} cannot speak for it"
                )
            return controller
        for controller in self._book:
            if message.job is not None and controller.job == message.job:
                return controller
        raise NotFound(
            "this is no turn of a controller: name one, or say it within its job"
        )

    # -- wakes -----------------------------------------------------------------------

    def _rouse(self, message: Rouse) -> None:
        controller = self._book.named(message.name)
        stored = self._store.wake(message.wake)
        if stored is not None:
            wake = wake_from(stored)
            if wake.id in self._open:
                self._asking[wake.id].append(message.reply)
            else:
                message.reply.answer(wake)
            return
        wake = self._try(
            controller, message.wake, message.by, message.origin, news=message.news
        )
        self._asking[wake.id].append(message.reply)

    def _try(
        self,
        controller: Controller,
        key: str,
        by: By,
        origin: str,
        *,
        news: bool = False,
    ) -> Wake:
        """Have it go on, or say why it does not.

        Raises:
            NotNow: it does not for now, and nothing is kept of that.
        """
        around = self._hosting.around(controller, news=news)
        verdict = may_wake(controller, by, around)
        if verdict.answer == "wait":
            raise NotNow(verdict.reason, verdict.later)
        state: WakeState = (
            "prepared" if verdict.answer == "dispatch" else verdict.answer
        )
        wake = Wake(
            *(key, controller.id, controller.number + 1, by, state),
            *(verdict.reason, self._wall, origin),
        )
        if verdict.answer == "dispatch":
            self._open[key] = wake
            begun = prepared(controller, wake, self._wall)
            durable = self._book.save(begun, None, wake)
            self._nursery.start_soon(self._hosting.dispatch, begun, wake, durable)
            return wake
        after = structs.replace(controller, number=wake.number, due=None)
        needs = verdict.answer == "wait_for_user" or by in ("agent", "recovery")
        event = None
        if needs and after.state == "active":
            after = become(after, "waiting_for_user", verdict.reason, self._wall)
            event = self._book.event("controller_waiting_for_user", after, after.why)
        self._book.save(after, event, wake, then=partial(self._settle, wake))
        return wake

    def _answered(self, message: Answered) -> None:
        wake = self._open.pop(message.wake, None)
        controller, answer = self._book.get(message.controller), message.answer
        if wake is None or controller is None:
            for reply in self._asking.pop(message.wake, ()):
                reply.refuse(NotFound("the controller was removed meanwhile"))
            return
        wall, before = self._wall, controller
        if answer is None:
            controller = unanswered(controller, message.problem, wall)
            reason = controller.why or message.problem
            wake = structs.replace(
                wake, state="outcome_unknown", reason=reason, at=wall
            )
        else:
            controller, state = answered(controller, wake.by, answer, wall)
            wake = structs.replace(
                wake,
                state=state,
                reason=answer.reason or wake.reason,
                at=wall,
                job=answer.job,
                dispatch=answer.dispatch,
            )
            if answer.job is not None:
                self._follow(controller.id, answer.job)
        self._book.become(before, controller, partial(self._settle, wake), wake)

    def _settle(self, wake: Wake) -> None:
        for reply in self._asking.pop(wake.id, ()):
            reply.answer(wake)

    # -- turns -----------------------------------------------------------------------

    async def _look_at(self, key: str, job: str, state: State) -> None:
        said = await self._context.said(job)
        known = self._book.get(key)
        if known is not None:
            turn = Turn(state, self._context.seen(known), said)
            self._mailbox.tell(Looked(key, job, turn))

    def _end_turn(self, controller: Controller, turn: Turn) -> None:
        after = ended(controller, turn, self._wall)
        recovers = after.due is not None and after.by == "recovery"
        if recovers and not self._hosting.resumes(after):
            why = "it ended its turn without a word, and cannot be asked again"
            after = become(after, "waiting_for_user", why, self._wall)
        if controller.state == after.state:
            event = self._book.event("controller_rests", after, job=after.job)
            self._book.save(after, event)
        else:
            self._book.become(controller, after)
        self._context.freed()

    def look(self) -> None:
        """Go on with those whose moment has come; set the alarm."""
        wall, alarm = self._wall, math.inf
        for controller in self._book:
            if controller.state == "active" and stalls_at(controller) <= wall:
                turn = Turn(seen=self._context.seen(controller))
                self._end_turn(controller, turn)
        wait = self._next_pass - wall
        passes = not 0 < wait <= PASS
        for controller in those_due(self._book, wall):
            recovers = controller.by == "recovery"
            if recovers and not passes:
                continue
            key = f"{controller.by}-{controller.number + 1}"
            origin = f"continuation:{controller.name}"
            try:
                wake = occurrence_id(controller.id, key)
                self._try(controller, wake, controller.by, origin)
            except NotNow as error:
                alarm = min(alarm, error.later)
            else:
                if recovers:
                    self._next_pass = wall + PASS
        for controller in self._book:
            moment = next_moment(controller)
            if controller.round is None and moment <= wall:
                moment = math.inf if self._next_pass <= wall else self._next_pass
            alarm = min(alarm, moment)
        self._alarm.set(alarm)

    @property
    def _wall(self) -> float:
        return self._context.clock.wall()

    def _follow(self, key: str, job: str) -> None:
        def tell(state: State) -> None:
            with suppress(MailboxClosed):  # whoever is started anew asks again
                self._mailbox.tell(Ended(key, job, state))

        self._store.when_ended(job, tell)
