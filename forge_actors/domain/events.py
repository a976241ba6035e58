"""Events: the durable, ordered record of every move, with its reason.

Together they are the whole history: `domain.history` rebuilds from them alone who held
what at every point. What each kind carries in its `data` is told in
`design/events.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, convert, to_builtins

from forge_actors.domain.jobs import STATES, JobError
from forge_actors.domain.redaction import redact, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forge_actors.domain.capacity import Limits
    from forge_actors.domain.redaction import Roots

#: The reason of the first event of every job.
ACCEPTED = "accepted"
#: The reason of the first event of a job after its store was restored.
RESTORED = "restored"
#: Seconds between two looks for one follower. A quiet log is told at once; of a busy
#: one, what comes meanwhile is told together, or fifty followers would cost a core.
GATHER_SECONDS = 0.05
#: Every kind there is. A job that comes into a state has an event of the state's name.
KINDS: tuple[str, ...] = (
    "runtime_started",
    "runtime_ready",
    "runtime_failed",
    "actor_stalled",
    "actor_resumed",
    "loop_blocked",
    "runtime_stopped",
    "write_refused",
    "store_restored",
    "release_activated",
    "release_superseded",
    "settings_changed",
    "limits",
    "pressure_began",
    "pressure_ended",
    "disk_room",
    "drain_began",
    "drain_ended",
    "paused",
    "resumed",
    "policy_changed",
    "provider_closed",
    "provider_opened",
    "inbox_dismissed",
    "repository_added",
    "repository_moved",
    "repository_lost",
    "repository_enabled",
    "repository_disabled",
    "repository_removed",
    "repository_status_changed",
    "repository_set_aside",
    "repository_taken_back",
    "repository_trusted",
    "repository_untrusted",
    "repository_trust_differs",
    "lock_removed",
    "lock_kept",
    "worktree_making",
    "worktree_made",
    "worktree_failed",
    "worktree_removing",
    "worktree_removed",
    "worktree_kept",
    "worktree_unkept",
    "worktree_restored",
    "schedule_added",
    "schedule_changed",
    "schedule_removed",
    "schedule_paused",
    "schedule_resumed",
    "schedule_set_aside",
    "schedule_decided",
    "workflow_began",
    "workflow_paused",
    "workflow_resumed",
    "workflow_asks",
    "workflow_step_left_out",
    "workflow_step_failed",
    "workflow_cancelling",
    "workflow_succeeded",
    "workflow_failed",
    "workflow_cancelled",
    "workflow_human_attention_required",
    "workflow_set_aside",
    "controller_added",
    "controller_removed",
    "controller_woken",
    "controller_told",
    "controller_rests",
    "controller_active",
    "controller_paused",
    "controller_waiting_for_user",
    "controller_done",
    "controller_set_aside",
    "epic_began",
    "epic_waiting",
    "epic_snapshot",
    "epic_issue_started",
    "epic_issue_ended",
    "epic_degraded",
    "epic_stopping",
    "epic_ended",
    "schedule_activated",
    "schedule_not_activated",
    "job_readied",
    "job_auto_isolated",
    "job_unisolated",
    "agent_session",
    "job_applied",
    "job_redirected",
    "job_held",
    "job_unheld",
    "job_paused",
    "job_resumed",
    "job_edited",
    "job_delegated",
    "job_set_aside",
    "job_quarantined",
    "job_quarantine_ended",
    "receipt_refused",
    "effect_refused",
    "webhook_closed",
    "webhook_opened",
    "clean_ended",
    "clean_failed",
    *(f"job_{state}" for state in STATES),
)


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that happened. `seq` is given by the store and only grows."""

    kind: str
    at: float
    repo: str | None = None
    job: str | None = None
    data: dict[str, object] = {}
    seq: int = 0


class EventView(Struct, frozen=True, omit_defaults=True):
    """An event as every reader sees it: a line of `events --json`.

    `repo` is the name that the repository has now, `repo_id` what never changes.
    """

    seq: int
    #: RFC 3339, UTC, to the millisecond.
    at: str
    kind: str
    repo: str | None
    job: str | None
    data: dict[str, object]
    repo_id: str | None = None
    job_name: str | None = None


class EventQuery(Struct, frozen=True):
    """Which events to read, oldest first. Empty lists mean any.

    Without `after` and `since`, reading begins with the first event, waiting with what
    comes next.
    """

    after: int | None = None
    #: A time or a span before now as people write it, or seconds since 1970, UTC.
    since: str | float | None = None
    #: Names, ids or paths of repositories.
    repo: tuple[str, ...] = ()
    job: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    limit: int = 100
    #: The last ones that match in place of the first.
    newest: bool = False


class EventPage(Struct, frozen=True):
    """Some events, and the query that goes on behind them."""

    events: list[EventView]
    next: EventQuery


def limits_in_force(limits: Limits, repository_workers: int, now: float) -> Event:
    """What may be in use at once from now on."""
    data: dict[str, object] = {
        "tokens": limits.tokens,
        "active_repositories": limits.active_repositories,
        "repository_workers": repository_workers,
        "pressure_workers": limits.pressure_workers,
        "overtake_after": limits.overtake_after,
    }
    return Event("limits", now, data=data)


def number_before(
    moment: float, last: int, behind: Callable[[int], tuple[int, float]]
) -> int:
    """The number before that of the first of `last` events at or after a moment.

    `behind` says of a number which event is the next, and of when. Found by halving, as
    times grow with the numbers; a clock that was set back in between may hide some of
    the events before it was.
    """
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        number, at = behind(middle)
        if at < moment:
            low = number
        else:
            high = middle
    return low


def shown_data(data: Mapping[str, object], roots: Roots) -> dict[str, object]:
    """What the store holds of an event, without secrets and private paths."""
    shown = dict(data)
    if "error" in data:
        error = convert(data["error"], JobError)
        message = scrub(redact(error.message), roots)
        shown["error"] = to_builtins(JobError(error.code, message))
    elif data.get("reason", ACCEPTED) != ACCEPTED:
        shown["reason"] = scrub(redact(str(data["reason"])), roots)
    return shown
