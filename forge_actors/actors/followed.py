"""What the lookout keeps of each schedule that it looks out for."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.causes import AllOf, Branch, Clean, Ended, Files
from forge_actors.domain.schedules import MAX_CATCH_UP
from forge_actors.domain.sightings import (
    CommitSeen,
    EndsSeen,
    LookSeen,
    RefsSeen,
    read,
    written,
)

if TYPE_CHECKING:
    from forge_actors.domain.causes import Cause, Jobs
    from forge_actors.domain.schedules import Schedule
    from forge_actors.domain.triggers import Window


class Followed:
    """One schedule, and how far the lookout has seen for it."""

    def __init__(self, schedule: Schedule, cause: Cause) -> None:
        self.id = schedule.id
        self.name = schedule.name
        self.repo = schedule.definition.repo
        self.begun = schedule.progress.begun
        self.cause = cause
        self.blind = schedule.progress.blind
        text = schedule.progress.seen
        self.ends = read(text, EndsSeen) if self.of_jobs else None
        self.look = read(text, LookSeen) if isinstance(cause, Clean) else None
        self.refs = read(text, RefsSeen) if isinstance(cause, Branch) else None
        self.commit = read(text, CommitSeen) if isinstance(cause, Files) else None

    @property
    def jobs(self) -> tuple[Jobs, ...]:
        """Those that it waits for."""
        match self.cause:
            case Ended(jobs):
                return (jobs,)
            case AllOf(of):
                return of
            case _:
                return ()

    @property
    def of_one_job(self) -> bool:
        return isinstance(self.cause, Ended) and self.cause.jobs.by == "job"

    @property
    def of_jobs(self) -> bool:
        return isinstance(self.cause, Ended | AllOf)

    def since_begun(self, window: Window) -> Window:
        """The same, if its key counts from where the schedule was begun: anew, it
        counts from there again."""
        if not self.begun:
            return window
        return structs.replace(window, key=f"{window.key}-{self.begun}")

    @property
    def seen(self) -> str | None:
        for seen in (self.ends, self.look, self.refs, self.commit):
            if seen is not None:
                return written(seen)
        return None


class Found:
    """What came to pass for one schedule, the last of it."""

    def __init__(self) -> None:
        self.windows: deque[Window] = deque(maxlen=MAX_CATCH_UP)
        self.earlier = 0
        self.blind = ""
        #: It is to be told.
        self.any = False

    def add(self, window: Window | None) -> None:
        """It has come further, and to a window or not."""
        self.any = True
        if window is not None:
            self.earlier += len(self.windows) == MAX_CATCH_UP
            self.windows.append(window)
