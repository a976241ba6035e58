"""The schedules actor: submits what is due, once, and says why where it does not.

It sleeps until the next moment of any schedule. A window gets its job under a request
id that only this window has, so a crash between the job and the record of it makes no
second one. A schedule that cannot be read or makes the actor fail is set aside; the
others go on.

Its notices are few: one alarm, and for each schedule the ends of its jobs and the
outcome of one submission.
"""

from __future__ import annotations

import heapq
import logging
import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.mailbox import Inbox, Mailbox, Reply, open_mailbox, serving
from forge_actors.actors.schedules_messages import Context as Context
from forge_actors.actors.schedules_messages import (
    Due,
    Ended,
    Message,
    Pause,
    Put,
    Remove,
    RepositoryGone,
    Resume,
    RunNow,
    Submitted,
    Tell,
)
from forge_actors.actors.wall_alarm import WallAlarm
from forge_actors.domain.changes import (
    Change,
    OccurrenceSaved,
    ScheduleRemoved,
    ScheduleSaved,
)
from forge_actors.domain.errors import (
    ForgeError,
    MailboxClosed,
    NotFound,
    Refused,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.events import Event
from forge_actors.domain.schedule_records import (
    encoded,
    loaded,
    schedule_event,
    window_event,
)
from forge_actors.domain.schedules import (
    MAX_SCHEDULES,
    PENDING,
    Occurrence,
    Pending,
    Progress,
    Schedule,
    occurrence_id,
)
from forge_actors.domain.scheduling import (
    Ruling,
    Situation,
    advance,
    ended,
    next_moment,
    resumed,
    rule,
    ruled,
    submitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import State

log = logging.getLogger(__name__)

#: Submissions that are under way at once.
PARALLEL = 64
#: Schedules that are looked at before other messages have their turn.
TURN = 200
#: Seconds until the next try of a window that could not be submitted for now.
TRY_AGAIN = 30.0
IT_RAN = "it has its job from before the restart"
_FOR_NOW = (StoreFailed, Unavailable, Refused)


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
        self._schedules: dict[str, Schedule] = {}
        self._ids: dict[str, str] = {}
        #: Moments of schedules, earliest first; one that was moved is left behind.
        self._heap: list[tuple[float, str]] = []
        self._moments: dict[str, float] = {}
        #: Schedules that have a submission under way, and windows that wait for one.
        self._busy: set[str] = set()
        self._waiting: list[tuple[str, Pending, str]] = []
        self._alarm = WallAlarm(context.timer, lambda: mailbox.tell(Due()))
        nursery.start_soon(self._alarm.run)

    # -- the beginning ---------------------------------------------------------------

    def load(self) -> None:
        """Take up every schedule that was saved."""
        for key, name, body in self._store.schedules():
            schedule, problem = loaded(key, name, body)
            if problem is not None:
                log.error("schedule %s is set aside: %s", name, problem)
            self._keep(schedule)
            for job in schedule.progress.jobs:
                self._follow(schedule.id, job)
        self.look()

    # -- messages --------------------------------------------------------------------

    def handle(self, message: Message) -> None:
        match message:
            case Due():
                pass  # whoever handles it looks at what is due
            case Ended():
                self._ended(message)
            case Submitted():
                self._submitted(message)
            case RepositoryGone(repo):
                self._repository_gone(repo)
            case Tell(reply):
                names = sorted(self._ids)
                reply.answer([self._schedules[self._ids[name]] for name in names])
            case _:
                self._asked(message)

    def _asked(self, message: Put | Pause | Resume | Remove | RunNow) -> None:
        with message.reply:
            try:
                match message:
                    case Put():
                        self._put(message)
                    case Pause(name, why, reply):
                        schedule = self._named(name)
                        paused = structs.replace(schedule, state="paused", why=why)
                        event = self._event("schedule_paused", paused, reason=why)
                        self._save(paused, event, then=partial(reply.answer, paused))
                    case Resume(name, reply):
                        schedule = resumed(self._named(name), self._wall)
                        event = self._event("schedule_resumed", schedule)
                        self._save(
                            schedule, event, then=partial(reply.answer, schedule)
                        )
                    case Remove(name, reply):
                        self._remove(self._named(name), reply)
                    case RunNow():
                        self._run_now(message)
            except ForgeError as error:
                message.reply.refuse(error)

    def _put(self, message: Put) -> None:
        definition, wall = message.definition, self._wall
        known = self._schedules.get(self._ids.get(definition.name, ""))
        if message.revision is None:
            if known is not None:
                raise Refused(
                    f"there is a schedule {definition.name!r} already; change it with"
                    f" forge-actors schedule edit {definition.name}"
                )
            if len(self._schedules) >= MAX_SCHEDULES:
                raise Refused(f"there are {MAX_SCHEDULES} schedules, which is the most")
            progress = Progress(cursor=wall)
            key = occurrence_id(definition.name, f"made-{wall!r}").replace("occ", "sch")
            schedule = Schedule(key, 1, definition, progress, made=wall)
            self._save(
                schedule,
                self._event("schedule_added", schedule),
                then=partial(message.reply.answer, schedule),
            )
            return
        if known is None:
            raise NotFound(f"there is no schedule {definition.name!r}")
        if message.revision not in (0, known.revision):
            raise Refused(
                f"schedule {known.name!r} was changed meanwhile: it is revision"
                f" {known.revision}, not {message.revision}"
            )
        self._change(known, message, wall)

    def _change(self, known: Schedule, message: Put, wall: float) -> None:
        definition = message.definition
        schedule = structs.replace(
            known, definition=definition, revision=known.revision + 1
        )
        if definition.trigger != known.definition.trigger:
            # Its windows are others: what was due by the old ones is not by these.
            pending = tuple(e for e in known.progress.pending if e.asked)
            progress = structs.replace(
                known.progress, cursor=wall, number=0, pending=pending
            )
            schedule = structs.replace(schedule, progress=progress)
        if schedule.state in ("done", "quarantined"):
            schedule = structs.replace(schedule, state="active", why=None)
        event = self._event("schedule_changed", schedule)
        self._save(schedule, event, then=partial(message.reply.answer, schedule))

    def _remove(self, schedule: Schedule, reply: Reply[Schedule]) -> None:
        if schedule.id in self._busy:
            raise Refused(f"schedule {schedule.name!r} submits a job just now")
        change = ScheduleRemoved(schedule.id, self._event("schedule_removed", schedule))
        self._forget(schedule)
        self._store.save([change], then=partial(reply.answer, schedule))

    def _run_now(self, message: RunNow) -> None:
        schedule = self._named(message.name)
        if schedule.state == "quarantined":
            raise Refused(f"schedule {schedule.name!r} is set aside: {schedule.why}")
        entry = Pending(message.key, self._wall, self._wall, asked=True)
        ruling = rule(schedule, entry, self._situation(schedule))
        if ruling.verdict == "drop":
            raise Refused(ruling.reason)
        progress = structs.replace(
            schedule.progress, pending=(*schedule.progress.pending, entry)
        )
        schedule = structs.replace(schedule, progress=progress)
        told = Occurrence(
            occurrence_id(schedule.id, entry.key),
            *(schedule.id, entry.key, entry.due, self._wall),
            *("due", "somebody asked for it"),
        )
        self._save(schedule, None, told, then=partial(message.reply.answer, told))

    def _repository_gone(self, repo: str) -> None:
        for schedule in list(self._schedules.values()):
            if schedule.definition.repo == repo:
                event = self._event("schedule_removed", schedule)
                self._forget(schedule)
                self._store.save([ScheduleRemoved(schedule.id, event)])

    def _ended(self, message: Ended) -> None:
        schedule = self._schedules.get(message.schedule)
        if schedule is None:
            return
        good = message.state in ("succeeded", "cancelled")
        ran = self._store.ran(message.job)
        self._save(ended(schedule, message.job, self._wall, good=good, ran=ran), None)

    # -- what is due -----------------------------------------------------------------

    def look(self) -> None:
        """Decide about every schedule whose moment has come; set the alarm."""
        wall = self._wall
        for _ in range(TURN):
            while (
                self._heap and self._moments.get(self._heap[0][1]) != self._heap[0][0]
            ):
                heapq.heappop(self._heap)
            if not self._heap or self._heap[0][0] > wall:
                break
            _, key = heapq.heappop(self._heap)
            self._moments.pop(key, None)
            self._guarded(self._schedules[key])
        else:
            self._mailbox.tell(Due())
        self._start()
        self._alarm.set(self._heap[0][0] if self._heap else math.inf)

    def _guarded(self, schedule: Schedule) -> None:
        """Decide about one; one that makes this fail is set aside, alone."""
        try:
            self._decide(schedule)
        except ForgeError:
            raise
        except Exception as error:
            log.exception("schedule %s failed and is set aside", schedule.name)
            why = f"it could not be decided: {type(error).__name__}: {error}"
            self._set_aside(self._schedules[schedule.id], why)

    def _set_aside(self, schedule: Schedule, why: str) -> None:
        aside = structs.replace(schedule, state="quarantined", why=why)
        self._save(aside, self._event("schedule_set_aside", aside, reason=why))

    def _decide(self, schedule: Schedule) -> None:
        wall = self._wall
        schedule, told = advance(schedule, wall)
        for index, one in enumerate(told):
            schedule, told[index] = self._if_it_ran(schedule, one)
        self._schedules[schedule.id] = schedule
        for entry in schedule.progress.pending:
            if entry.moment > wall or schedule.id in self._busy:
                continue
            schedule, more = self._rule(schedule, entry, wall)
            told += more
            if schedule.state != "active":
                break
        self._save(schedule, None, *told)

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
            self._busy.add(schedule.id)
            self._waiting.append((schedule.id, entry, ruling.reason))
            return schedule, []
        if ruling.verdict == "cancel":
            for job in schedule.progress.jobs:
                self._nursery.start_soon(self._cancel, job)
        schedule, told = ruled(schedule, entry, ruling, wall)
        return schedule, [told]

    def _situation(self, schedule: Schedule) -> Situation:
        definition = schedule.definition
        clean = definition.policies.when_clean
        dirty = self._context.dirty(definition.repo) if clean else None
        return Situation(self._wall, dirty)

    # -- submissions -----------------------------------------------------------------

    def _start(self) -> None:
        while self._waiting and len(self._busy) - len(self._waiting) < PARALLEL:
            key, entry, reason = self._waiting.pop(0)
            schedule = self._schedules.get(key)
            if schedule is None:
                self._busy.discard(key)
                continue
            self._nursery.start_soon(self._submit, schedule, entry, reason)

    async def _submit(self, schedule: Schedule, entry: Pending, reason: str) -> None:
        request = structs.replace(
            schedule.definition.request,
            request_id=occurrence_id(schedule.id, entry.key),
            origin=f"schedule:{schedule.name}",
        )
        outcome: str | Exception
        try:
            outcome = await self._context.submit(request)
        except Exception as error:  # noqa: BLE001 - the actor decides, for this one only
            outcome = error
        self._mailbox.tell(Submitted(schedule.id, entry, reason, outcome))

    def _submitted(self, message: Submitted) -> None:
        self._busy.discard(message.schedule)
        schedule, wall = self._schedules.get(message.schedule), self._wall
        if schedule is None:
            return
        entry, outcome = message.entry, message.outcome
        if isinstance(outcome, str):
            self._follow(schedule.id, outcome)
            schedule, told = submitted(schedule, entry, message.reason, outcome, wall)
            self._save(schedule, None, told)
        elif isinstance(outcome, ForgeError):
            self._refused(schedule, entry, outcome)
        else:
            log.error("schedule %s failed", schedule.name, exc_info=outcome)
            self._set_aside(schedule, f"its job could not be made: {outcome}")

    def _refused(self, schedule: Schedule, entry: Pending, error: ForgeError) -> None:
        wall, why = self._wall, f"its job was refused: {error}"
        if isinstance(error, _FOR_NOW):
            ruling = Ruling("defer", why, later=wall + TRY_AGAIN)
        else:
            ruling = Ruling("drop", why, "failed")
        schedule, told = ruled(schedule, entry, ruling, wall)
        self._save(schedule, None, told)

    async def _cancel(self, job: str) -> None:
        try:
            await self._context.cancel(job)
        except ForgeError as error:
            log.info("job %s was not cancelled for its schedule: %s", job, error)

    # -- what is kept ----------------------------------------------------------------

    @property
    def _wall(self) -> float:
        return self._context.clock.wall()

    def _follow(self, schedule: str, job: str) -> None:
        def tell(state: State) -> None:
            with suppress(MailboxClosed):  # whoever is started anew asks again
                self._mailbox.tell(Ended(schedule, job, state))

        self._store.when_ended(job, tell)

    def _named(self, name: str) -> Schedule:
        try:
            return self._schedules[self._ids[name]]
        except KeyError:
            raise NotFound(f"there is no schedule {name!r}") from None

    def _keep(self, schedule: Schedule) -> None:
        self._schedules[schedule.id] = schedule
        self._ids[schedule.name] = schedule.id
        busy = schedule.id in self._busy
        moment = math.inf if busy else next_moment(schedule)
        if moment == math.inf:
            self._moments.pop(schedule.id, None)
        elif self._moments.get(schedule.id) != moment:
            self._moments[schedule.id] = moment
            heapq.heappush(self._heap, (moment, schedule.id))

    def _forget(self, schedule: Schedule) -> None:
        del self._schedules[schedule.id], self._ids[schedule.name]
        self._moments.pop(schedule.id, None)

    def _save(
        self,
        schedule: Schedule,
        event: Event | None,
        *told: Occurrence,
        then: Callable[[], object] | None = None,
    ) -> None:
        self._keep(schedule)
        changes: list[Change] = [
            ScheduleSaved(schedule.id, schedule.name, encoded(schedule), event)
        ]
        for occurrence in told:
            said = None
            if occurrence.decision not in PENDING:
                said = window_event(schedule, occurrence, self._context.clock.now())
            changes.append(OccurrenceSaved(occurrence, said))
        self._store.save(changes, then=then)

    def _event(self, kind: str, schedule: Schedule, **data: object) -> Event:
        return schedule_event(kind, schedule, self._context.clock.now(), data)
