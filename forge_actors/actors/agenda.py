"""The agenda: the schedules that there are, and which of them comes next.

What is put into it is saved. It is the actor's own: nobody else changes it.
"""

from __future__ import annotations

import heapq
import logging
import math
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import Change
from forge_actors.domain.errors import NotFound
from forge_actors.domain.schedule_changes import (
    OccurrenceSaved,
    ScheduleRemoved,
    ScheduleSaved,
)
from forge_actors.domain.schedule_records import (
    encoded,
    loaded,
    schedule_event,
    window_event,
)
from forge_actors.domain.schedule_waits import woken
from forge_actors.domain.schedules import PENDING, Schedule
from forge_actors.domain.scheduling import next_moment, set_back
from forge_actors.domain.triggers import On

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forge_actors.actors.schedules_messages import ScheduleStore, Source
    from forge_actors.domain.events import Event
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.schedules import Occurrence
    from forge_actors.domain.triggers import Trigger


log = logging.getLogger(__name__)

#: Seconds by which the clock has to be set back to count.
LEAST_STEP = 1.0


class Agenda:
    """Schedules by id and by name, the next one first."""

    def __init__(
        self, store: ScheduleStore, clock: Clock, sources: Sequence[Source] = ()
    ) -> None:
        self._store = store
        self._clock = clock
        self._sources = sources
        #: Those that wait for something, as their sources know them.
        self._followed: dict[str, tuple[Trigger, int]] = {}
        self._schedules: dict[str, Schedule] = {}
        self._ids: dict[str, str] = {}
        #: Earliest first; one that was moved is left behind.
        self._heap: list[tuple[float, str]] = []
        self._moments: dict[str, float] = {}
        #: Those that are not looked at for now.
        self.busy: set[str] = set()

    def __len__(self) -> int:
        return len(self._schedules)

    def __iter__(self) -> Iterator[Schedule]:
        return iter(tuple(self._schedules.values()))

    @property
    def by_name(self) -> list[Schedule]:
        return [self._schedules[self._ids[name]] for name in sorted(self._ids)]

    def get(self, key: str) -> Schedule | None:
        return self._schedules.get(key)

    def called(self, name: str) -> Schedule | None:
        return self._schedules.get(self._ids.get(name, ""))

    def named(self, name: str) -> Schedule:
        """The schedule with this name.

        Raises:
            NotFound: there is none.
        """
        schedule = self.called(name)
        if schedule is None:
            raise NotFound(f"there is no schedule {name!r}")
        return schedule

    @property
    def earliest(self) -> float:
        """The moment at which the next one is to be looked at; infinite for never."""
        heap = self._heap
        while heap and self._moments.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def take(self, wall: float) -> Schedule | None:
        """The next one whose moment has come; it has none until it is kept again."""
        if self.earliest > wall:
            return None
        _, key = heapq.heappop(self._heap)
        del self._moments[key]
        return self._schedules[key]

    def take_up(
        self, key: str, name: str, body: bytes, wall: float
    ) -> tuple[Schedule, bool]:
        """Keep what was saved of one, and whether it could be read; one that cannot be
        used is set aside."""
        schedule, problem = loaded(key, name, body)
        if problem is not None:
            log.error("schedule %s is set aside: %s", name, problem)
        elif schedule.progress.cursor > wall + LEAST_STEP:
            schedule = set_back(schedule, wall)
        if not schedule.progress.jobs:
            schedule = woken(schedule, wall)  # what it waited for may be over
        try:
            self.keep(schedule)
        except Exception as error:
            log.exception("schedule %s failed and is set aside", name)
            why = f"its next time cannot be told: {type(error).__name__}: {error}"
            schedule = structs.replace(schedule, state="quarantined", why=why)
            self.keep(schedule)
        return schedule, problem is None

    def wake(self, wall: float) -> None:
        """Look again at all windows that wait for something and not for a moment."""
        for schedule in self:
            self.keep(woken(schedule, wall))

    def keep(self, schedule: Schedule) -> None:
        """Have it be so from now on, without saving that."""
        self._schedules[schedule.id] = schedule
        self._ids[schedule.name] = schedule.id
        busy = schedule.id in self.busy
        moment = math.inf if busy else next_moment(schedule)
        if moment == math.inf:
            self._moments.pop(schedule.id, None)
        elif self._moments.get(schedule.id) != moment:
            self._moments[schedule.id] = moment
            heapq.heappush(self._heap, (moment, schedule.id))
        if isinstance(schedule.definition.trigger, On) or schedule.id in self._followed:
            self._follow(schedule)

    def _follow(self, schedule: Schedule) -> None:
        """Have its sources look for what it waits for, or no more."""
        trigger, begun = schedule.definition.trigger, schedule.progress.begun
        if schedule.state != "active" or not isinstance(trigger, On):
            self._leave(schedule.id)
        elif self._followed.get(schedule.id) != (trigger, begun):
            self._followed[schedule.id] = trigger, begun
            for source in self._sources:
                source.follow(schedule)

    def _leave(self, schedule: str) -> None:
        if self._followed.pop(schedule, None) is not None:
            for source in self._sources:
                source.leave(schedule)

    def save(
        self,
        schedule: Schedule,
        event: Event | None = None,
        *told: Occurrence,
        then: Callable[[], object] | None = None,
    ) -> None:
        """Keep it, and what became of its windows, all of it or nothing."""
        self.keep(schedule)
        changes: list[Change] = [
            ScheduleSaved(schedule.id, schedule.name, encoded(schedule), event)
        ]
        for occurrence in told:
            said = None
            if occurrence.decision not in PENDING:
                said = window_event(schedule, occurrence, self._clock.now())
            changes.append(OccurrenceSaved(occurrence, said))
        self._store.save(changes, then=then)

    def save_all(
        self,
        kept: Sequence[tuple[Schedule, str]],
        removed: Sequence[Schedule],
        along: Sequence[Change],
        *,
        then: Callable[[], object],
    ) -> None:
        """Keep some, each with the kind of the event that tells of it, and forget
        others: all of it and `along`, or nothing."""
        changes: list[Change] = [*along]
        # A name that is given up may be another's now.
        for schedule in removed:
            event = self.event("schedule_removed", schedule)
            changes.append(ScheduleRemoved(schedule.id, event))
        for schedule, kind in kept:
            event = self.event(kind, schedule)
            body = encoded(schedule)
            changes.append(ScheduleSaved(schedule.id, schedule.name, body, event))
        self._store.save(changes, then=then)
        for schedule in removed:
            self._forget(schedule)
        for schedule, _ in kept:
            self.keep(schedule)

    def drop(
        self, schedule: Schedule, then: Callable[[], object] | None = None
    ) -> None:
        """Forget it."""
        event = self.event("schedule_removed", schedule)
        self._forget(schedule)
        self._store.save([ScheduleRemoved(schedule.id, event)], then=then)

    def _forget(self, schedule: Schedule) -> None:
        del self._schedules[schedule.id], self._ids[schedule.name]
        self._moments.pop(schedule.id, None)
        self._leave(schedule.id)

    def event(self, kind: str, schedule: Schedule, **data: object) -> Event:
        return schedule_event(kind, schedule, self._clock.now(), data)
