"""Why a job is where it is, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.effect_views import asks_for, kept_from
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.views import BEING_MADE

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.waiting import Waiting, WaitingKind

#: What a job waits for, as it is said.
_FOR: dict[WaitingKind, str] = {
    "dependency": "a dependency",
    "claim": "a claim",
    "token": "a token",
    "pause": "the end of a pause",
    "pressure": "the machine to have room",
    "limit": "a usage limit to be reset",
    "approval": "an approval",
    "agent": "an agent program",
    "retry": "its next attempt",
    "reservation": "a job that goes first",
    "disabled": "its repository to be enabled",
}


def sentence(
    view: JobView,
    waiting: Waiting | None,
    now: float,
    suspended: tuple[str, float] | None = None,
    silence: float | None = None,
) -> str:
    """Why a job is where it is, for a person; `suspended` is why, and since when.

    `silence` is for how long nothing was heard of what runs, if that is too long.
    """
    unheard = "" if silence is None else f"nothing was heard of it for {_span(silence)}"
    if waiting is not None:
        place = f", number {waiting.position} in line" if waiting.position else ""
        shown = waiting.kind in ("token", "pressure")
        names = ", ".join(waiting.holders) if shown else ""
        holders = f" (by {names})" if names else ""
        since = _span(now - waiting.since)
        if unheard and waiting.kind == "claim":
            holders += f" ({unheard}, but it is not proven gone)"
        if waiting.kind == "approval" and (asks := asks_for(view.id, view.effects)):
            return f"It waits for a person to allow it to {asks}; since {since}."
        if waiting.kind == "approval" and view.error is not None:
            return (
                f"It asks: {view.error.message}; forge-actors answer {view.id} TEXT"
                f" answers, approve or deny {view.id} without words; since {since}."
            )
        if waiting.kind == "policy":
            until = _until(waiting.until, now)
            return f"It cannot run: {waiting.detail}{until}; since {since}."
        return (
            f"{_who(view)} for {_FOR[waiting.kind]}: {waiting.detail}{holders}{place}"
            f"{waiting.note}"
            f"{_until(waiting.until, now)}; since {since}."
        )
    kept = kept_from(view.effects)
    if view.error is not None:
        return f"It is {view.state}: {view.error.message} ({view.error.code}).{kept}"
    if suspended is not None:
        why, began = suspended
        return (
            f"It is paused, attempt {view.attempt}: {why}; since {_span(now - began)}."
        )
    if view.state == "running":
        doubt = f"; {unheard}, so its leases are unconfirmed" if unheard else ""
        where = _where(view.worktree)
        what = f"{_what(view)} runs as process {view.pid}, attempt {view.attempt}"
        return f"{what}{where}{doubt}."
    if view.state == "dispatched" and view.inputs:
        return f"It starts as soon as its inputs are there, attempt {view.attempt}."
    if view.state == "dispatched" and (view.worktree or {}).get("state") in BEING_MADE:
        return f"It starts as soon as its worktree is made, attempt {view.attempt}."
    return f"It is {view.state}.{kept}"


def _is_checked(view: JobView) -> bool:
    return view.verify is not None and view.verify["step"] == "check"


def _who(view: JobView) -> str:
    """What of a job waits."""
    if not _is_checked(view):
        return "It waits"
    assert view.verify is not None
    return (
        f"Its agent has worked, and the check of that ({view.verify['command']}) waits"
    )


def _what(view: JobView) -> str:
    """What of a job runs."""
    if view.verify is None or view.verify["step"] == "work":
        return "It"
    if _is_checked(view):
        return f"The check of what its agent did ({view.verify['command']})"
    return f"Round {view.verify['round']} of {view.verify['rounds']} of mending"


def _where(worktree: dict[str, object] | None) -> str:
    if worktree is None:
        return ""
    where = f", in a worktree of its own on {worktree.get('branch', 'a new branch')}"
    others = worktree.get("instead_of")
    if isinstance(others, list):
        where += f", since {', '.join(others)} had its checkout"
    return where


def _until(moment: float | None, now: float) -> str:
    if moment is None:
        return ""
    return f", not before {timestamp(moment)} (in {_span(moment - now)})"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
