"""What can be asked of schedules."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.controllers_messages import Tell as TellControllers
from forge_actors.actors.schedules_messages import (
    Apply,
    Pause,
    Put,
    Remove,
    Resume,
    RunNow,
    Tell,
)
from forge_actors.domain.causes import Ended, Jobs
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.schedule_edits import difference
from forge_actors.domain.schedule_views import (
    AppliedSchedules,
    NextTime,
    OccurrenceView,
    ScheduleView,
    applied,
)
from forge_actors.domain.schedules import GRACE, Occurrence, Pending, occurrence_id
from forge_actors.domain.scheduling import next_moment, preview
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.triggers import (
    CLOCK_CHANGES,
    Cron,
    On,
    Once,
    checked_zone,
    of_checkout,
)
from forge_actors.domain.trust import SOURCE
from forge_actors.domain.waited_for import if_it_came, waited_for
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.issue_watching import with_its_place
from forge_actors.runtime.schedule_requests import (
    definition_of,
    request_from,
    with_repository,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.schedule_edits import Difference
    from forge_actors.domain.schedule_views import ScheduleRequest
    from forge_actors.domain.schedules import Definition, Schedule

#: Times that are told ahead.
MAX_AHEAD = 1000
MAX_TOLD = 500
PAUSED_BY_HAND = "somebody paused it"


class ScheduleControl(ControlBase):
    """The part of the port `Control` that is about schedules."""

    async def schedules(self) -> list[ScheduleView]:
        return list(map(self._schedule_view, await self._all()))

    async def schedule(self, name: str) -> ScheduleView:
        return self._schedule_view(await self._one(name))

    async def add_schedule(self, request: ScheduleRequest) -> ScheduleView:
        return await self._put(request, None)

    async def edit_schedule(
        self, request: ScheduleRequest, revision: int | None = None
    ) -> ScheduleView:
        return await self._put(request, revision or 0)

    async def pause_schedule(self, name: str) -> ScheduleView:
        make = partial(Pause, name, PAUSED_BY_HAND)
        return self._schedule_view(await self.scheduling.ask(make))

    async def resume_schedule(self, name: str) -> ScheduleView:
        baseline = await self._baseline((await self._one(name)).definition)
        make = partial(Resume, name, baseline=baseline)
        return self._schedule_view(await self.scheduling.ask(make))

    async def remove_schedule(self, name: str) -> ScheduleView:
        return self._schedule_view(await self.scheduling.ask(partial(Remove, name)))

    async def run_schedule(
        self, name: str, request_id: str | None = None
    ) -> OccurrenceView:
        key = f"asked-{request_id or repr(self._clock.wall())}"
        return _told(await self.scheduling.ask(partial(RunNow, name, key)))

    async def next_times(self, name: str, count: int) -> list[NextTime]:
        if not 1 <= count <= MAX_AHEAD:
            raise InvalidInput("count", f"must be from 1 to {MAX_AHEAD}")
        schedule = await self._one(name)
        wall = self._clock.wall()
        if (told := if_it_came(schedule, wall)) is not None:
            return [NextTime(None, *told)]
        ahead = islice(preview(schedule, wall), count)
        return [NextTime(_at(schedule, due), runs, why) for due, runs, why in ahead]

    async def occurrences(self, name: str, limit: int = 50) -> list[OccurrenceView]:
        schedule = await self._one(name)
        return list(map(_told, self._store.occurrences(schedule.id, limit)))

    async def apply_schedules(
        self,
        requests: Sequence[ScheduleRequest],
        source: str,
        *,
        dry_run: bool = False,
    ) -> AppliedSchedules:
        seen = await self._revisions(source)
        wanted: dict[str, Definition] = {}
        for index, request in enumerate(requests):
            if request.name in wanted:
                field = f"schedule[{index}].name"
                raise InvalidInput(field, f"{request.name!r} is there twice")
            try:
                wanted[request.name] = await self._definition(request, source)
            except InvalidInput as error:
                field = f"schedule[{index}].{error.field}"
                raise InvalidInput(field, error.problem) from None
        definitions = tuple(wanted.values())
        if dry_run:
            told = difference(await self._all(), definitions, source)
        else:
            told = await self._apply(source, definitions, seen, tuple)
        return applied(told)

    # -- the parts -------------------------------------------------------------------

    async def _apply(
        self,
        source: str,
        definitions: tuple[Definition, ...],
        seen: dict[str, int] | None,
        along: Callable[[], Sequence[Change]],
    ) -> Difference:
        baselines = await self.scheduling.baseline(*definitions)
        make = partial(Apply, source, definitions, seen, along, baselines=baselines)
        return await self.scheduling.ask(make)

    async def _put(
        self, request: ScheduleRequest, revision: int | None
    ) -> ScheduleView:
        definition = await self._definition(request, None)
        if revision is None and definition.wake is not None:
            # What wakes agents is watched first: a person has it go live.
            policies = structs.replace(definition.policies, shadow=True)
            definition = structs.replace(definition, policies=policies)
        trigger, now = definition.trigger, self._clock.wall()
        passed = isinstance(trigger, Once) and trigger.moment < now - GRACE
        if revision is None and passed:
            raise InvalidInput("at", f"{request.at!r} has passed")
        make = partial(
            Put, definition, revision, baseline=await self._baseline(definition)
        )
        return self._schedule_view(await self.scheduling.ask(make))

    async def _baseline(self, definition: Definition) -> str | None:
        """How far that is now which a schedule is to wait for.

        Raises:
            Refused, InvalidInput: it cannot be seen.
        """
        return (await self.scheduling.baseline(definition))[definition.name]

    async def _definition(
        self, request: ScheduleRequest, source: str | None
    ) -> Definition:
        repo, checkout = await self._registry.find(request.repo)
        definition = definition_of(request, repo.id, source=source)
        if definition.wake is not None:
            if source is not None:
                raise InvalidInput(
                    "wake",
                    "is for a schedule that a person adds: forge-actors schedule add"
                    f" {definition.name} --wake {definition.wake}",
                )
            await self._check_wake(definition.wake, repo.id)
        definition = await with_its_place(self._with_its_job(definition), repo)
        trigger = definition.trigger
        if of_checkout(trigger) and not self._looking.enabled:
            raise Refused(
                f"nobody looks at checkouts, so nothing is seen {trigger}; have"
                " status.enabled = true in the settings"
            )
        root = repo.path if checkout is None else checkout.root
        # A checkout of its own stays the one that was meant.
        where = repo.id if root == repo.path else root
        definition = with_repository(definition, where, root)
        if definition.wake is None:
            self._admission.check(definition.request, repo, checkout)
        return definition

    async def _check_wake(self, name: str, repo: str) -> None:
        """
        Raises:
            InvalidInput: there is no such controller, or it is of another repository.
        """
        for controller in await self.controllers.ask(TellControllers):
            if controller.name == name:
                if controller.repo != repo:
                    of = self._repo_name(controller.repo)
                    raise InvalidInput("wake", f"it is of repository {of}")
                return
        raise InvalidInput("wake", f"there is no controller {name!r}")

    async def _revisions(self, source: str) -> dict[str, int]:
        """Those of the schedules of a source, by name."""
        return {
            schedule.name: schedule.revision
            for schedule in await self._all()
            if schedule.definition.source == source
        }

    def _with_its_job(self, definition: Definition) -> Definition:
        """The same, the one job that it waits for named by the whole of its id.

        Raises:
            NotFound: there is no such job. InvalidInput: it is of another repository.
        """
        trigger = definition.trigger
        if not isinstance(trigger, On) or not isinstance(trigger.cause, Ended):
            return definition
        cause = trigger.cause
        if cause.jobs.by != "job":
            return definition
        job = self._store.match(cause.jobs.value)
        if self._view(self._row(job)).repo != self._repo_name(definition.repo):
            raise InvalidInput("on", f"job {job} is of another repository")
        cause = structs.replace(cause, jobs=Jobs("job", job))
        trigger = structs.replace(trigger, cause=cause)
        return structs.replace(definition, trigger=trigger)

    def _repo_name(self, repo: str) -> str:
        known = self._registry.get(repo)
        return repo if known is None else known.name

    async def _all(self) -> list[Schedule]:
        return await self.scheduling.ask(Tell)

    async def _one(self, name: str) -> Schedule:
        for schedule in await self._all():
            if schedule.name == name:
                return schedule
        raise NotFound(f"there is no schedule {name!r}")

    def _shown_source(self, source: str | None) -> str | None:
        """The same with the name of the repository whose files are trusted."""
        if source is None or not source.startswith(SOURCE):
            return source
        repo = self._registry.get(source.removeprefix(SOURCE))
        return source if repo is None else f"{SOURCE}{repo.name}"

    def _schedule_view(self, schedule: Schedule) -> ScheduleView:
        definition, progress = schedule.definition, schedule.progress
        repo = self._repo_name(definition.repo)
        moment = next_moment(schedule)
        finite = moment != float("inf")
        is_cron = isinstance(definition.trigger, Cron)
        waits_for, slow = waited_for(schedule), self._looking.slow(definition.repo)
        if slow is not None and of_checkout(definition.trigger):
            waits_for = f"{waits_for}; {slow}"
        return ScheduleView(
            name=schedule.name,
            repo=repo,
            state=schedule.state,
            why=schedule.why,
            trigger=str(definition.trigger),
            next=_at(schedule, moment) if finite else None,
            revision=schedule.revision,
            runs=progress.runs,
            failures=progress.failures,
            jobs=progress.jobs,
            waiting=tuple(_waiting(schedule, entry) for entry in progress.pending),
            source=self._shown_source(definition.source),
            definition=request_from(definition, repo),
            clock_changes=CLOCK_CHANGES if is_cron else None,
            waits_for=waits_for,
        )


def _at(schedule: Schedule, moment: float) -> str:
    """A moment in the time zone of a schedule."""
    trigger = schedule.definition.trigger
    if not isinstance(trigger, Cron):
        return timestamp(moment)
    zone = checked_zone(trigger.timezone)
    return datetime.fromtimestamp(moment, zone).isoformat(timespec="seconds")


def _waiting(schedule: Schedule, entry: Pending) -> OccurrenceView:
    decision = "deferred" if entry.reason else "due"
    of = occurrence_id(schedule.id, entry.key)
    told = Occurrence(
        *(of, schedule.id, entry.key, entry.due, entry.due),
        decision,  # type: ignore[arg-type]
        entry.reason,
    )
    return _told(told)


def _told(told: Occurrence) -> OccurrenceView:
    return OccurrenceView(
        told.id,
        told.key,
        timestamp(told.due),
        timestamp(told.decided),
        told.decision,
        told.reason,
        told.job,
        told.count,
    )
