"""The schedules actor: submits what is due, once, and says why where it does not.

It sleeps until the next moment of any schedule. A window gets its job under a request
id that only this window has, so a crash between the job and the record of it makes no
second one. A schedule that cannot be read or makes the actor fail is set aside; the
others go on.

Its notices are few: one alarm, and for each schedule the ends of its jobs and the
outcome of one submission.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.agenda import LEAST_STEP, Agenda
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.schedules_messages import Context as Context
from forge_actors.actors.schedules_messages import (
    Due,
    Ended,
    Find,
    HeldNoMore,
    Message,
    RepositoryGone,
    Signalled,
    Stirred,
    Submitted,
    Tell,
)
from forge_actors.actors.submissions import Submissions
from forge_actors.actors.wall_alarm import WallAlarm
from forge_actors.actors.wishes import Wishes
from forge_actors.domain.arriving import signalled
from forge_actors.domain.errors import (
    ForgeError,
    MailboxClosed,
)
from forge_actors.domain.schedule_wakes import refusal, woken
from forge_actors.domain.schedules import (
    MAX_CATCH_UP,
    MAX_SEEN,
    Hindrance,
    Occurrence,
    Pending,
    Schedule,
    occurrence_id,
)
from forge_actors.domain.scheduling import (
    Situation,
    advance,
    ended,
    looked_again,
    only_waits,
    over,
    rule,
    ruled,
    set_back,
    submitted,
)

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State

log = logging.getLogger(__name__)

#: Schedules that are looked at before other messages have their turn.
TURN = 200
IT_RAN = "it has its job from before the restart"


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Decide what is due until cancelled."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    async with trio.open_nursery() as children:
        actor = _Schedules(context, mailbox, children)
        with serving(inbox):
            actor.load()
            task_status.started(mailbox)
            while True:
                actor.handle(await inbox.receive())
                actor.look()


class _Schedules:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._store = context.store
        self._mailbox = mailbox
        self._nursery = nursery
        self._agenda = Agenda(context.store, context.clock, context.sources)
        self._wishes = Wishes(
            self._agenda, context.clock, self._situation, context.store.job_of_request
        )
        self._submissions = Submissions(context, self._agenda, mailbox.tell, nursery)
        #: What the clock said when it rang last.
        self._seen = self._wall
        self._alarm = WallAlarm(context.timer, lambda: mailbox.tell(Due()))
        nursery.start_soon(self._alarm.run)

    # -- the beginning ---------------------------------------------------------------

    def load(self) -> None:
        """Take up every schedule that was saved."""
        gone: list[Schedule] = []
        for key, name, body in self._store.schedules():
            schedule, readable = self._agenda.take_up(key, name, body, self._wall)
            for job in schedule.progress.jobs:
                self._follow(schedule.id, job)
            if readable and not self._context.known(schedule.definition.repo):
                gone.append(schedule)
        for schedule in gone:
            # It was removed while nobody was here to be told.
            self._agenda.drop(schedule)
        self.look()

    # -- messages --------------------------------------------------------------------

    def handle(self, message: Message) -> None:
        match message:
            case Due():
                self._look_at_clock()
            case Ended():
                self._ended(message)
            case Submitted():
                self._submitted(message)
            case Signalled():
                self._signalled(message)
            case Stirred(repo):
                self._context.held.discard(repo)
                for schedule in self._agenda:
                    if schedule.definition.repo == repo:
                        self._agenda.keep(looked_again(schedule, self._wall))
            case RepositoryGone(repo):
                self._repository_gone(repo)
            case HeldNoMore():
                self._agenda.wake(self._wall)
            case Tell(reply):
                reply.answer(self._agenda.by_name)
            case Find(key, reply):
                found = self._agenda.get(key)
                active = found is not None and found.state == "active"
                reply.answer(found if active else None)
            case _:
                self._wishes.serve(message)

    def _repository_gone(self, repo: str) -> None:
        for schedule in self._agenda:
            if schedule.definition.repo == repo:
                self._agenda.drop(schedule)

    def _ended(self, message: Ended) -> None:
        schedule = self._agenda.get(message.schedule)
        if schedule is None:
            return
        good = message.state in ("succeeded", "cancelled")
        ran = self._store.ran(message.job)
        schedule = ended(schedule, message.job, self._wall, good=good, ran=ran)
        if schedule.definition.transient and schedule.state == "done":
            self._agenda.drop(schedule)
        else:
            self._agenda.save(schedule, None)

    def _signalled(self, message: Signalled) -> None:
        schedule = self._agenda.get(message.schedule)
        if schedule is None or schedule.state != "active":
            return  # what comes to pass while it is paused is gone
        if message.begun != schedule.progress.begun:
            return
        if message.seen is not None and len(message.seen) > MAX_SEEN:
            why = f"what is seen of its cause is longer than {MAX_SEEN} characters"
            self._set_aside(schedule, why)
            return
        known = {entry.key for entry in schedule.progress.pending}
        windows = [
            window
            for window in message.windows[-MAX_CATCH_UP:]
            if window.key not in known
            and not self._store.decided(occurrence_id(schedule.id, window.key))
        ]
        schedule, told = signalled(
            schedule,
            windows,
            self._wall,
            seen=message.seen,
            earlier=message.earlier,
            blind=message.blind,
        )
        self._agenda.save(schedule, None, *told)

    # -- what is due -----------------------------------------------------------------

    def _look_at_clock(self) -> None:
        """Begin anew where the clock was set back."""
        before, self._seen = self._seen, self._wall
        if self._seen < before - LEAST_STEP:
            for schedule in self._agenda:
                # Of one that cannot be read nothing may be written over.
                if schedule.state != "quarantined":
                    self._agenda.save(set_back(schedule, self._seen), None)

    def look(self) -> None:
        """Decide about every schedule whose moment has come; set the alarm."""
        wall = self._wall
        for _ in range(TURN):
            schedule = self._agenda.take(wall)
            if schedule is None:
                break
            self._guarded(schedule)
        else:
            self._mailbox.tell(Due())
        self._submissions.start()
        self._alarm.set(self._agenda.earliest)

    def _guarded(self, schedule: Schedule) -> None:
        """Decide about one; one that makes this fail is set aside, alone."""
        try:
            self._decide(schedule)
        except ForgeError:
            raise
        except Exception as error:
            log.exception("schedule %s failed and is set aside", schedule.name)
            why = f"it could not be decided: {type(error).__name__}: {error}"
            self._set_aside(schedule, why)

    def _set_aside(self, schedule: Schedule, why: str) -> None:
        aside = structs.replace(schedule, state="quarantined", why=why)
        self._agenda.save(
            aside, self._agenda.event("schedule_set_aside", aside, reason=why)
        )

    def _decide(self, schedule: Schedule) -> None:
        wall = self._wall
        told: list[Occurrence] = []
        if schedule.state == "active":
            schedule, told = advance(schedule, wall)
        for index, one in enumerate(told):
            schedule, told[index] = self._if_it_ran(schedule, one)
        for entry in schedule.progress.pending:
            if entry.moment > wall or schedule.id in self._agenda.busy:
                continue
            if schedule.state == "active" or entry.asked:
                schedule, more = self._rule(schedule, entry, wall)
                told += more
        schedule = over(schedule)
        before = self._agenda.get(schedule.id)
        if told or before is None or not only_waits(before, schedule):
            self._agenda.save(schedule, None, *told)
        else:
            self._agenda.keep(schedule)

    def _if_it_ran(
        self, schedule: Schedule, told: Occurrence
    ) -> tuple[Schedule, Occurrence]:
        """A window that came to nothing, unless a runtime that did not come to write it
        down gave it a job."""
        job = self._store.job_of_request(told.id)
        if job is None:
            return schedule, told
        self._follow(schedule.id, job)
        entry = Pending(told.key, told.due, self._wall)
        return submitted(schedule, entry, IT_RAN, job, self._wall)

    def _rule(
        self, schedule: Schedule, entry: Pending, wall: float
    ) -> tuple[Schedule, list[Occurrence]]:
        known = self._store.job_of_request(occurrence_id(schedule.id, entry.key))
        if known is not None:
            schedule, told = submitted(schedule, entry, IT_RAN, known, wall)
            self._follow(schedule.id, known)
            return schedule, [told]
        ruling = rule(schedule, entry, self._situation(schedule))
        if ruling.verdict == "run":
            self._submissions.add(schedule.id, entry, ruling.reason)
            return schedule, []
        if ruling.verdict == "cancel":
            for job in schedule.progress.jobs:
                self._nursery.start_soon(self._cancel, job)
        told_before = ruling.verdict == "defer" and ruling.reason == entry.reason
        schedule, told = ruled(schedule, entry, ruling, wall)
        policies = schedule.definition.policies
        if ruling.verdict == "defer" and (policies.when_clean or policies.not_while):
            self._context.held.add(schedule.definition.repo)
        return schedule, [] if told_before else [told]

    def _situation(self, schedule: Schedule) -> Situation:
        definition = schedule.definition
        clean = definition.policies.when_clean
        dirty = self._context.dirty(definition.repo) if clean else None
        hindrances: dict[Hindrance, str] = {}
        if definition.policies.not_while:
            hindrances = self._context.hindrances(definition.repo)
        return Situation(self._wall, dirty, hindrances, self._context.closed())

    # -- submissions -----------------------------------------------------------------

    def _submitted(self, message: Submitted) -> None:
        self._agenda.busy.discard(message.schedule)
        schedule, wall = self._agenda.get(message.schedule), self._wall
        if schedule is None:
            return
        entry, outcome = message.entry, message.outcome
        if isinstance(outcome, str):
            self._follow(schedule.id, outcome)
            schedule, told = submitted(schedule, entry, message.reason, outcome, wall)
            self._agenda.save(schedule, None, told)
        elif outcome is None:
            schedule, told = woken(schedule, entry, message.reason, wall)
            self._agenda.save(schedule, None, told)
        elif isinstance(outcome, ForgeError):
            self._refused(schedule, entry, outcome)
        else:
            log.error("schedule %s failed", schedule.name, exc_info=outcome)
            self._set_aside(schedule, f"its job could not be made: {outcome}")

    def _refused(self, schedule: Schedule, entry: Pending, error: ForgeError) -> None:
        wall, wakes = self._wall, schedule.definition.wake is not None
        ruling = refusal(error, wall, wakes=wakes)
        schedule, told = ruled(schedule, entry, ruling, wall)
        self._agenda.save(schedule, None, told)

    async def _cancel(self, job: str) -> None:
        try:
            await self._context.cancel(job)
        except ForgeError as error:
            log.info("job %s was not cancelled for its schedule: %s", job, error)

    # -- the world around it --------------------------------------------------------

    @property
    def _wall(self) -> float:
        return self._context.clock.wall()

    def _follow(self, schedule: str, job: str) -> None:
        def tell(state: State) -> None:
            with suppress(MailboxClosed):  # whoever is started anew asks again
                self._mailbox.tell(Ended(schedule, job, state))

        self._store.when_ended(job, tell)
