"""Sightings: what somebody who looks for a cause has seen, and what is news in it.

What was seen is kept as text with the schedule, so whoever looks next, after a restart,
goes on from there: a window is what differs from that, and has a key that only it has.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct, structs

from forge_actors.domain.causes import AllOf, Ended
from forge_actors.domain.github.watching import IssuesSeen
from forge_actors.domain.redaction import bounded
from forge_actors.domain.triggers import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.causes import Branch, Traits
    from forge_actors.domain.jobs import State
    from forge_actors.domain.looking import Look

#: Branches that one pattern may mean.
MAX_BRANCHES = 200
#: Jobs that came of one another and are looked back at; who is behind more of them is
#: taken to be the schedule itself.
MAX_CHAIN = 32
#: Characters of a name in a reason.
MAX_SHOWN = 80
#: Digits of a commit that people are shown.
SHORT = 12
#: What the job of a window may be told of what it came of.
OF_A_CAUSE = (
    *("FORGE_CAUSE_JOB", "FORGE_CAUSE_STATE", "FORGE_CAUSE_BRANCH"),
    *("FORGE_CAUSE_COMMIT", "FORGE_CAUSE_BEFORE"),
)
_KEY_OF_END, _KEY_OF_ALL = "end-", "all-"


class EndsSeen(Struct, frozen=True, omit_defaults=True):
    """How far the ends of jobs were seen."""

    #: The number of the last event.
    after: int
    #: By what is waited for together: the job that did it.
    reached: dict[str, str] = {}


class LookSeen(Struct, frozen=True):
    """The last look at a checkout, and whether it was clean."""

    nonce: int
    clean: bool


class RefsSeen(Struct, frozen=True):
    """The commits of branches, and how often one moved: it may move to and fro."""

    heads: dict[str, str]
    moves: int = 0


class CommitSeen(Struct, frozen=True):
    """The commit that was checked out, and how often files were other ones in it."""

    head: str | None
    changes: int = 0


class End(Struct, frozen=True):
    """A job has ended, as the event with this number says."""

    seq: int
    state: State
    at: float
    job: Traits


S = TypeVar("S", EndsSeen, LookSeen, RefsSeen, CommitSeen, IssuesSeen)


def written(seen: Struct) -> str:
    return msgspec.json.encode(seen).decode()


def read(text: str | None, kind: type[S]) -> S | None:
    """What was seen, as it was written; None if nothing was, or something else."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _env(**values: str) -> dict[str, str]:
    """What the job of a window is told of what it came of."""
    found = {f"FORGE_CAUSE_{name}": value for name, value in values.items() if value}
    assert set(found) <= set(OF_A_CAUSE), "others are refused"
    return found


# -- jobs ------------------------------------------------------------------------------


def heeds(cause: Ended | AllOf, end: End) -> bool:
    """Whether the end of this job is waited for."""
    if isinstance(cause, Ended):
        return cause.counts(end.state) and cause.jobs.has(end.job)
    return end.state == "succeeded" and any(each.has(end.job) for each in cause.of)


def see_end(
    cause: Ended | AllOf, seen: EndsSeen, end: End
) -> tuple[EndsSeen, Window | None]:
    """A job has ended that is waited for."""
    seen = structs.replace(seen, after=end.seq)
    job = end.job.job
    if isinstance(cause, Ended):
        return seen, end_of(end.job, end.state, end.at)
    of = {str(each): job for each in cause.of if each.has(end.job)}
    reached = {**seen.reached, **of}
    if len(reached) < len(cause.of):
        return structs.replace(seen, reached=reached), None
    text = "\n".join(f"{name}={by}" for name, by in sorted(reached.items()))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    reason = f"all have succeeded, {_called(end.job)} as the last"
    key = f"{_KEY_OF_ALL}{digest}-{job}"
    window = Window(key, end.at, reason, _env(JOB=job))
    return structs.replace(seen, reached={}), window


def end_of(job: Traits, state: State, at: float) -> Window:
    """The window that the end of a job is."""
    how = "has succeeded" if state == "succeeded" else f"is {state}"
    reason = f"{_called(job)} {how}"
    env = _env(JOB=job.job, STATE=state)
    return Window(f"{_KEY_OF_END}{job.job}", at, reason, env)


def missing(cause: AllOf, seen: EndsSeen) -> list[str]:
    """What has not succeeded yet since the last time."""
    return [name for each in cause.of if (name := str(each)) not in seen.reached]


def cause_of(key: str) -> str | None:
    """The job that a window came of."""
    if key.startswith(_KEY_OF_END):
        return key.removeprefix(_KEY_OF_END)
    return key.rpartition("-")[2] if key.startswith(_KEY_OF_ALL) else None


def comes_of(
    schedule: str,
    job: Traits,
    traits: Callable[[str], Traits | None],
    window_of: Callable[[str], str | None],
) -> bool:
    """Whether a job is one of a schedule, or would not be there without one of them:
    what a schedule has done must not make it run, or it would for ever.

    `window_of` tells the key of the window that has a job.
    """
    known: Traits | None = job
    for _ in range(MAX_CHAIN):
        if known is None:
            return False
        kind, _, name = (known.began or known.origin).partition(":")
        if (kind, name) == ("schedule", schedule):
            return True
        before: str | None = None
        if kind == "job":
            before = name
        elif kind == "schedule":
            key = window_of(known.job)
            before = None if key is None else cause_of(key)
        if before is None:
            return False
        known = traits(before)
    return True


def _called(job: Traits) -> str:
    name = "" if job.name is None else f" ({bounded(job.name, MAX_SHOWN)})"
    return f"job {job.job}{name}"


# -- checkouts -------------------------------------------------------------------------


def see_look(
    seen: LookSeen | None, look: Look | None, wall: float
) -> tuple[LookSeen | None, Window | None]:
    """What a look at the checkout has shown: it is clean again, or not."""
    if look is None or look.status is None:
        return seen, None
    now = LookSeen(look.nonce, look.status.clean)
    if seen is None or seen.clean == now.clean:
        return seen or now, None
    if not now.clean:
        return now, None
    head = look.status.head or ""
    reason = f"the checkout is clean at {head[:SHORT] or 'no commit'}"
    return now, Window(f"clean-{now.nonce}", wall, reason, _env(COMMIT=head))


def matching(cause: Branch, heads: Mapping[str, str]) -> dict[str, str]:
    """The branches that are meant, with their commits."""
    return {name: commit for name, commit in heads.items() if cause.has(name)}


def see_refs(
    seen: RefsSeen | None, heads: Mapping[str, str], wall: float
) -> tuple[RefsSeen, list[Window]]:
    """Where the branches are now. One that is gone is no news."""
    if seen is None:
        return RefsSeen(dict(heads)), []
    moves, found = seen.moves, []
    for name, commit in sorted(heads.items()):
        before = seen.heads.get(name)
        if before == commit:
            continue
        moves += 1
        new, shown = commit[:SHORT], bounded(name, MAX_SHOWN)
        how = "is new" if before is None else f"moved from {before[:SHORT]}"
        key = f"branch-{moves}-{hashlib.sha256(name.encode()).hexdigest()[:8]}-{new}"
        env = _env(BRANCH=name, COMMIT=commit, BEFORE=before or "")
        found.append(Window(key, wall, f"branch {shown} {how}, at {new}", env))
    return RefsSeen(dict(heads), moves), found


def see_commit(
    seen: CommitSeen, head: str, changed: Sequence[str] | None, wall: float
) -> tuple[CommitSeen, Window | None]:
    """Which files of those that are meant are other ones in the commit that is checked
    out now; None: the one before is gone, so that cannot be told."""
    if changed is not None and not changed:
        return structs.replace(seen, head=head), None
    now = CommitSeen(head, seen.changes + 1)
    new = head[:SHORT]
    if changed is None:
        reason = f"files may have changed in {new}: the commit before is gone"
    else:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        reason = f"{bounded(changed[0], MAX_SHOWN)}{more} changed in {new}"
    env = _env(COMMIT=head, BEFORE=seen.head or "")
    return now, Window(f"file-{now.changes}-{new}", wall, reason, env)
