"""What people ask of schedules: to add one, to change, pause, remove or run it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.schedules_messages import (
    Apply,
    Pause,
    Put,
    Remove,
    Resume,
    RunNow,
)
from forge_actors.domain.errors import ForgeError, NotFound, Refused
from forge_actors.domain.schedule_edits import changed, check_watched, difference, made
from forge_actors.domain.schedules import (
    MAX_SCHEDULES,
    Occurrence,
    Pending,
    Schedule,
    occurrence_id,
)
from forge_actors.domain.scheduling import resumed, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.agenda import Agenda
    from forge_actors.actors.mailbox import Reply
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.scheduling import Situation


class Wishes:
    """The part of the actor that answers them."""

    def __init__(
        self,
        agenda: Agenda,
        clock: Clock,
        situation: Callable[[Schedule], Situation],
        job_of_request: Callable[[str], str | None],
    ) -> None:
        self._job_of_request = job_of_request
        self._agenda = agenda
        self._clock = clock
        self._situation = situation

    @property
    def _wall(self) -> float:
        return self._clock.wall()

    def serve(self, message: Put | Apply | Pause | Resume | Remove | RunNow) -> None:
        """Do what somebody asks for; the answer is given once it is durable."""
        with message.reply:
            try:
                match message:
                    case Put():
                        self._put(message)
                    case Apply():
                        self._apply(message)
                    case Pause(name, why, reply):
                        schedule = self._usable(name)
                        paused = structs.replace(schedule, state="paused", why=why)
                        event = self._agenda.event(
                            "schedule_paused", paused, reason=why
                        )
                        self._agenda.save(
                            paused, event, then=partial(reply.answer, paused)
                        )
                    case Resume(name, reply, baseline):
                        schedule = resumed(self._usable(name), self._wall, baseline)
                        event = self._agenda.event("schedule_resumed", schedule)
                        self._agenda.save(
                            schedule, event, then=partial(reply.answer, schedule)
                        )
                    case Remove(name, reply):
                        self._remove(self._agenda.named(name), reply)
                    case RunNow():
                        self._run_now(message)
            except ForgeError as error:
                message.reply.refuse(error)

    def _usable(self, name: str) -> Schedule:
        """The schedule with this name, unless only a change brings it back.

        Raises:
            NotFound: there is none. Refused: it is set aside.
        """
        schedule = self._agenda.named(name)
        if schedule.state == "quarantined":
            raise Refused(
                f"schedule {name!r} is set aside: {schedule.why}; give it what can be"
                f" used with forge-actors schedule edit {name}"
            )
        return schedule

    def _put(self, message: Put) -> None:
        definition, wall = message.definition, self._wall
        check_watched(self._agenda, [definition])
        known = self._agenda.called(definition.name)
        if message.revision is None:
            if known is not None:
                raise Refused(
                    f"there is a schedule {definition.name!r} already; change it with"
                    f" forge-actors schedule edit {definition.name}"
                )
            if len(self._agenda) >= MAX_SCHEDULES:
                raise Refused(f"there are {MAX_SCHEDULES} schedules, which is the most")
            schedule = made(definition, wall, message.baseline)
            self._agenda.save(
                schedule,
                self._agenda.event("schedule_added", schedule),
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
        schedule = changed(known, definition, wall, message.baseline)
        event = self._agenda.event("schedule_changed", schedule)
        self._agenda.save(schedule, event, then=partial(message.reply.answer, schedule))

    def _apply(self, message: Apply) -> None:
        wall = self._wall
        told = difference(self._agenda, message.definitions, message.source)
        if message.seen is not None:
            told.check_seen(message.seen)
        for schedule in told.removed:
            self._check_quiet(schedule)
        removed = {schedule.id for schedule in told.removed}
        stay = (each for each in self._agenda if each.id not in removed)
        check_watched(stay, message.definitions)
        seen = message.baselines
        keep = [
            (made(each, wall, seen.get(each.name)), "schedule_added")
            for each in told.added
        ]
        keep += [
            (changed(known, each, wall, seen.get(each.name)), "schedule_changed")
            for known, each in told.changed
        ]
        self._agenda.save_all(
            keep,
            told.removed,
            message.along(),
            then=partial(message.reply.answer, told),
        )

    def _check_quiet(self, schedule: Schedule) -> None:
        if schedule.id in self._agenda.busy:
            raise Refused(f"schedule {schedule.name!r} submits a job just now")

    def _remove(self, schedule: Schedule, reply: Reply[Schedule]) -> None:
        self._check_quiet(schedule)
        self._agenda.drop(schedule, then=partial(reply.answer, schedule))

    def _run_now(self, message: RunNow) -> None:
        schedule = self._usable(message.name)
        entry = Pending(message.key, self._wall, self._wall, asked=True)
        told = Occurrence(
            occurrence_id(schedule.id, entry.key),
            *(schedule.id, entry.key, entry.due, self._wall),
            *("due", "somebody asked for it"),
        )
        job = self._job_of_request(told.id)
        if job is not None:
            reason = "it has its job from when it was asked for before"
            told = structs.replace(told, decision="run", reason=reason, job=job)
            message.reply.answer(told)
            return
        if any(other.key == entry.key for other in schedule.progress.pending):
            message.reply.answer(told)
            return
        ruling = rule(schedule, entry, self._situation(schedule))
        if ruling.verdict == "drop":
            raise Refused(ruling.reason)
        progress = structs.replace(
            schedule.progress, pending=(*schedule.progress.pending, entry)
        )
        schedule = structs.replace(schedule, progress=progress)
        self._agenda.save(
            schedule, None, told, then=partial(message.reply.answer, told)
        )
