"""Schedules as people write them and as everybody sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from forge_actors.domain.schedules import (
    Decision,
    Hindrance,
    Misfire,
    Overlap,
    ScheduleState,
)

if TYPE_CHECKING:
    from forge_actors.domain.schedule_edits import Difference


class ScheduleRequest(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A schedule to add or change: an entry of a file, the options of `schedule add`.

    One of `every`, `cron`, `at`, `on` and `manual` says when; `job` has the fields of a
    job.
    Durations are seconds or text such as `30m`.
    """

    name: str
    repo: str
    job: dict[str, Any]
    every: str | float | None = None
    cron: str | None = None
    #: A time such as `2026-01-02T03:04`, in `timezone` if it has no offset.
    at: str | None = None
    manual: bool = False
    #: What has to come to pass, such as `succeeded:build`; then `every` is the least
    #: time between two starts, and with `issues` that between two questions.
    on: str | None = None
    #: IANA name; that of the machine if there is none.
    timezone: str | None = None
    misfire: Misfire = "once"
    catch_up: str | float = "1d"
    catch_up_most: int = 10
    #: Without it `skip`; of issues `queue`, so that each has its job.
    overlap: Overlap | None = None
    jitter: str | float = 0
    #: None: none, or a minute where its job may bring about what it waits for.
    cooldown: str | float | None = None
    daily_budget: str | float | None = None
    max_failures: int = 10
    backoff: str | float = 0
    max_backoff: str | float = "1d"
    max_runs: int | None = None
    until: str | None = None
    when_clean: bool = False
    not_while: list[Hindrance] = []
    shadow: bool = False
    #: Forgotten once it is done and its jobs have ended.
    transient: bool = False
    #: The controller that it wakes; then `job` is empty.
    wake: str | None = None


class OccurrenceView(Struct, frozen=True):
    """What became of a window. Times are RFC 3339, UTC."""

    id: str
    window: str
    due: str
    decided_at: str
    decision: Decision
    reason: str
    job: str | None
    count: int


class ScheduleView(Struct, frozen=True):
    """A schedule as it is now. Times are RFC 3339, in its time zone."""

    name: str
    repo: str
    state: ScheduleState
    why: str | None
    trigger: str
    next: str | None
    revision: int
    runs: int
    failures: int
    jobs: tuple[str, ...]
    waiting: tuple[OccurrenceView, ...]
    source: str | None
    #: What it was made of, as `ScheduleRequest` has it.
    definition: dict[str, Any]
    #: What happens to it when the clocks change, if that can happen.
    clock_changes: str | None = None
    #: What it waits for in place of a time, and how far that is.
    waits_for: str | None = None


class NextTime(Struct, frozen=True):
    """A time at which a schedule comes next, and what would become of it then; `at` is
    null for when something comes to pass."""

    at: str | None
    runs: bool
    reason: str


class AppliedSchedules(Struct, frozen=True):
    """What a file of schedules changed; names."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]


def applied(told: Difference) -> AppliedSchedules:
    """The same by name."""
    return AppliedSchedules(
        added=[each.name for each in told.added],
        changed=[each.name for each, _ in told.changed],
        removed=[each.name for each in told.removed],
        unchanged=[each.name for each in told.unchanged],
    )
