"""Projections: what readers see of a repository's git status, and what needs a person.

Nothing here looks at a repository: it is what was saved, with its age and, where it may
be out of date, the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.jobs import State
from forge_actors.domain.looking import AFTER_RESTART, Look

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: States that ask for somebody: nothing of ours goes on by itself from there.
ATTENTION: tuple[State, ...] = ("human_attention_required", "orphaned", "stale")
#: Jobs in them that one repository is shown with; the newest ones.
MAX_ATTENTION = 100


class StatusView(Struct, frozen=True):
    """The git status of a checkout as it was when it was looked at last.

    Where it was never seen, there is only the reason.
    """

    branch: str | None = None
    head: str | None = None
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    staged: int | None = None
    unstaged: int | None = None
    untracked: int | None = None
    conflicts: int | None = None
    #: There is at least so much of each: the output of git was cut.
    at_least: bool = False
    clean: bool | None = None
    detached: bool | None = None
    unborn: bool | None = None
    #: What git is in the middle of: rebase, am, merge, cherry-pick, revert or bisect.
    operation: str | None = None
    observed_at: str | None = None
    age_ms: int | None = None
    #: Whether it may be otherwise by now, and why that is thought.
    stale: bool = True
    reason: str | None = None


class Attention(Struct, frozen=True):
    """A job that needs a person."""

    id: str
    state: State
    finished_at: str | None


class LeaseView(Struct, frozen=True):
    """What a job that is dispatched or runs holds."""

    job: str
    fence: int
    claims: list[str]


def status_view(
    look: Look | None,
    now: float,
    fence: int,
    moment: Callable[[float], str],
    shown: Callable[[str], str] = str,
) -> StatusView:
    """What readers see of a look. `shown` takes out of a problem what is private."""
    if look is None:
        return StatusView(reason="it was not looked at yet")
    reason = None
    if look.error is not None:
        times = "" if look.failures == 1 else f" {look.failures} times"
        reason = f"looking at it failed{times}: {shown(look.error)}"
    elif look.dirty is not None:
        reason = look.dirty.reason
    elif look.outdated(fence):
        reason = AFTER_RESTART
    status = look.status
    if status is None or look.sampled_at is None:
        return StatusView(reason=reason)
    return StatusView(
        branch=status.branch,
        head=status.head,
        upstream=status.upstream,
        ahead=status.ahead,
        behind=status.behind,
        staged=status.staged,
        unstaged=status.unstaged,
        untracked=status.untracked,
        conflicts=status.conflicts,
        at_least=status.at_least,
        clean=status.clean,
        detached=status.detached,
        unborn=status.unborn,
        operation=status.operation,
        observed_at=moment(look.sampled_at),
        age_ms=max(0, round((now - look.sampled_at) * 1000)),
        stale=reason is not None,
        reason=reason,
    )


def attention_in(counts: Mapping[State, int]) -> int:
    """How many jobs need a person, of so many in each state."""
    return sum(counts.get(state, 0) for state in ATTENTION)
