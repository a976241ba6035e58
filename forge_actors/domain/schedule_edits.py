"""What becomes of schedules when a person adds, changes or applies some.

A file of schedules is applied as a diff: what it names is added or changed, what it
named and names no more is removed, what came from elsewhere stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.causes import MAX_WATCHED
from forge_actors.domain.errors import Refused
from forge_actors.domain.schedules import (
    MAX_SCHEDULES,
    Definition,
    Progress,
    Schedule,
    occurrence_id,
)
from forge_actors.domain.scheduling import resumed
from forge_actors.domain.triggers import On, of_checkout, same_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class Difference(Struct, frozen=True):
    """What applying would do, in the order of the names."""

    added: tuple[Definition, ...]
    changed: tuple[tuple[Schedule, Definition], ...]
    removed: tuple[Schedule, ...]
    unchanged: tuple[Schedule, ...]

    def check_seen(self, seen: Mapping[str, int]) -> None:
        """Check that it is about the revisions that somebody saw.

        Raises:
            Refused: one was made, changed or removed meanwhile.
        """
        now = {of.name: of.revision for of, _ in self.changed}
        now |= {of.name: of.revision for of in (*self.removed, *self.unchanged)}
        named = {*now, *seen}
        for name in sorted(named):
            if seen.get(name) != now.get(name):
                raise Refused(
                    f"schedule {name!r} was changed meanwhile, so nothing was applied;"
                    " look at what would change now"
                )


def difference(
    known: Iterable[Schedule], wanted: Collection[Definition], source: str
) -> Difference:
    """From the schedules that there are to those that a source wants to be its own.

    Raises:
        Refused: a name is that of another source, or there would be too many.
    """
    schedules = {schedule.name: schedule for schedule in known}
    added: list[Definition] = []
    changed: list[tuple[Schedule, Definition]] = []
    unchanged: list[Schedule] = []
    for definition in sorted(wanted, key=lambda each: each.name):
        before = schedules.get(definition.name)
        if before is None:
            added.append(definition)
        elif before.definition.source != source:
            raise Refused(
                f"{definition.name!r} is a schedule of"
                f" {_of(before.definition.source)} already"
            )
        elif before.definition == definition:
            unchanged.append(before)
        else:
            changed.append((before, definition))
    names = {definition.name for definition in wanted}
    removed = tuple(
        schedule
        for name, schedule in sorted(schedules.items())
        if schedule.definition.source == source and name not in names
    )
    if len(schedules) + len(added) - len(removed) > MAX_SCHEDULES:
        raise Refused(f"there would be more than {MAX_SCHEDULES} schedules")
    return Difference(tuple(added), tuple(changed), removed, tuple(unchanged))


def _of(source: str | None) -> str:
    return f"the file {source}" if source else "the command line"


def check_watched(known: Iterable[Schedule], wanted: Collection[Definition]) -> None:
    """
    Raises:
        Refused: the files of too many repositories would have to be watched.
    """
    watched = {each.repo for each in wanted if of_checkout(each.trigger)}
    if not watched:
        return
    names = {each.name for each in wanted}
    for schedule in known:
        of = schedule.definition
        if schedule.name not in names and of_checkout(of.trigger):
            watched.add(of.repo)
    if len(watched) > MAX_WATCHED:
        raise Refused(
            f"schedules would wait for something in the checkouts of {len(watched)}"
            f" repositories, and {MAX_WATCHED} are the most: remove one, or go by the"
            " ends of jobs, which are not counted"
        )


def made(definition: Definition, wall: float, baseline: str | None = None) -> Schedule:
    """A new schedule, whose windows begin now; what it waits for, if it does, behind
    what is seen already."""
    key = occurrence_id(definition.name, f"made-{wall!r}").replace("occ", "sch")
    progress = Progress(cursor=wall, seen=baseline)
    return Schedule(key, 1, definition, progress, made=wall)


def changed(
    known: Schedule, definition: Definition, wall: float, baseline: str | None = None
) -> Schedule:
    """The same schedule by another definition."""
    if definition.source is None and known.definition.source is not None:
        # It stays one of its file, which has it as it was when it is applied next.
        definition = structs.replace(definition, source=known.definition.source)
    schedule = structs.replace(
        known, definition=definition, revision=known.revision + 1
    )
    same = same_windows(definition.trigger, known.definition.trigger)
    # What was seen was seen in that repository.
    elsewhere = definition.repo != known.definition.repo
    if not same or (elsewhere and isinstance(definition.trigger, On)):
        # Its windows are others: what was due by the old ones is not by these.
        pending = tuple(e for e in known.progress.pending if e.asked)
        progress = structs.replace(
            known.progress,
            cursor=wall,
            number=0,
            pending=pending,
            seen=baseline,
            begun=known.progress.begun + 1,
            blind="",
        )
        schedule = structs.replace(schedule, progress=progress)
    if schedule.state in ("done", "quarantined"):
        schedule = resumed(schedule, wall, baseline)
    return schedule
