"""Schedules: what is to be submitted when, under which policies, and what came of it.

Moments are seconds of the wall clock since 1970, UTC: a schedule is about the clocks
of people, and a clock that is set moves it. They are never shifted like those of a
runtime.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.triggers import Trigger

Misfire = Literal["skip", "once", "all"]
Overlap = Literal["skip", "queue", "cancel"]
#: A schedule that is over is done; one that cannot be understood, or fails over and
#: over, is set aside, alone.
ScheduleState = Literal["active", "paused", "done", "quarantined"]
#: What may be so in the repository of a schedule, for its windows to wait: a job waits
#: for a person, a release is under way.
Hindrance = Literal["approval", "release"]
#: What became of a window. All but the first two are for good.
Decision = Literal[
    "due",
    "deferred",
    "run",
    "would_run",
    "merged",
    "missed",
    "overlapped",
    "stopped",
    "failed",
]
PENDING: tuple[Decision, ...] = ("due", "deferred")

#: Seconds that a window may be late and still be on time.
GRACE = 60.0
DAY = 86_400.0
#: Windows of one schedule that wait to be decided.
MAX_CATCH_UP = 100
#: Decided windows that are kept of a schedule.
MAX_OCCURRENCES = 500
MAX_SCHEDULES = 20_000
MAX_SCHEDULE_NAME = 64
#: Characters that are kept of how far something was seen.
MAX_SEEN = 64 * 1024

Seconds = Annotated[float, Meta(ge=0, le=366 * DAY)]


class Policies(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds a window back, and what becomes of one that was held back."""

    #: Of windows that passed while nobody could act: none runs, the last one, or all.
    misfire: Misfire = "once"
    #: Windows that are later than this are missed.
    catch_up: Seconds = DAY
    #: With `all`, so many at most.
    catch_up_most: Annotated[int, Meta(ge=1, le=MAX_CATCH_UP)] = 10
    #: While a job of the schedule waits or runs.
    overlap: Overlap = "skip"
    #: Each window is late by a part of this that is always the same.
    jitter: Seconds = 0.0
    #: From the end of one job to the start of the next.
    cooldown: Seconds = 0.0
    #: That its jobs may run in one day, UTC.
    daily_budget: Annotated[float, Meta(ge=1, le=366 * DAY)] | None = None
    #: Failures in a row after which it pauses; 0 is never.
    max_failures: Annotated[int, Meta(ge=0, le=1000)] = 10
    #: After the first failure, doubled with each more.
    backoff: Seconds = 0.0
    max_backoff: Seconds = DAY
    #: It is over after so many jobs, or at this moment.
    max_runs: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    until: float | None = None
    #: Nothing starts while the checkout has changes that are not committed.
    when_clean: bool = False
    #: Nothing starts while one of these is so.
    not_while: tuple[Hindrance, ...] = ()
    #: Decide, and submit nothing.
    shadow: bool = False

    def check(self) -> None:
        """Check what no single field tells.

        Raises:
            InvalidInput: two policies contradict each other.
        """
        if self.misfire == "all" and self.overlap != "queue":
            raise InvalidInput(
                "misfire",
                "all needs --overlap queue: with any other each run would take the"
                " place of the next",
            )


class Definition(Struct, frozen=True):
    """What a person says of a schedule."""

    name: str
    #: Id of the repository.
    repo: str
    trigger: Trigger
    request: JobRequest
    policies: Policies = Policies()
    #: The file that it came from, by a name of its own.
    source: str | None = None
    #: It is forgotten once it is done and its jobs have ended.
    transient: bool = False
    #: The controller that it wakes in place of submitting a job.
    wake: str | None = None


class Pending(Struct, frozen=True):
    """A window that is due and not decided for good."""

    key: str
    due: float
    #: When it is looked at next.
    moment: float
    #: Why it was not decided yet.
    reason: str = ""
    #: Somebody asked for it: nothing but an overlap holds it back.
    asked: bool = False
    #: What came to pass, where it is no time that has come.
    cause: str = ""
    #: Variables that its job is given.
    env: dict[str, str] = {}


class Progress(Struct, frozen=True):
    """How far a schedule has come."""

    #: Windows up to here are decided or pending.
    cursor: float
    #: Windows that there were until then.
    number: int = 0
    pending: tuple[Pending, ...] = ()
    #: Its jobs that have not ended.
    jobs: tuple[str, ...] = ()
    runs: int = 0
    failures: int = 0
    last_start: float | None = None
    last_end: float | None = None
    #: The day, UTC, and how many seconds jobs that have ended ran in it.
    day: int = 0
    spent: float = 0.0
    #: Of one that waits for something to come to pass: how far that was seen, in words
    #: of those who see it; how often that began anew; and why it cannot be seen now.
    seen: str | None = None
    begun: int = 0
    blind: str = ""


class Schedule(Struct, frozen=True):
    id: str
    #: Counts every change that a person made.
    revision: int
    definition: Definition
    progress: Progress
    state: ScheduleState = "active"
    #: Why it is not active.
    why: str | None = None
    made: float = 0.0

    @property
    def name(self) -> str:
        return self.definition.name


class Occurrence(Struct, frozen=True):
    """What became of one window; of `count` of them, where none had a chance."""

    id: str
    schedule: str
    key: str
    due: float
    decided: float
    decision: Decision
    reason: str
    job: str | None = None
    count: int = 1


def occurrence_id(schedule: str, key: str) -> str:
    """The same for the same window, whoever asks and whenever: so it runs once."""
    digest = hashlib.sha256(f"{schedule}\0{key}".encode()).hexdigest()
    return f"occ-{digest[:24]}"


def jitter_of(schedule: str, key: str, most: float) -> float:
    """Seconds that a window is late on purpose: at random over windows and schedules,
    and always the same for one."""
    digest = hashlib.sha256(f"{key}\0{schedule}".encode()).digest()
    return most * int.from_bytes(digest[:8], "big") / 2**64


def check_name(name: str, *, of: str = "schedule", field: str = "name") -> str:
    """A name that can be typed, and never is an option: of a schedule, a workflow or a
    controller.

    Raises:
        InvalidInput: it is none.
    """
    fits = all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    if not (1 <= len(name) <= MAX_SCHEDULE_NAME and fits and name[0].isalnum()):
        raise InvalidInput(
            field,
            f"{name!r} is no name of a {of}: 1 to {MAX_SCHEDULE_NAME} letters,"
            " digits, dots, dashes and underscores, a letter or digit first",
        )
    return name
