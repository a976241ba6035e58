"""Retention: which things of a home may go at a given time, and why.

Each class of things has a policy: how old they may become, how many there may be, how
much they may take. It is decided for all of a class at once, in the same way each time:
the oldest go first, what is protected never goes, and nothing that is younger than its
grace. A limit keeps the newest things that fit into it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from forge_actors.domain.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.cleaning import CleanClass

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Policy(Struct, frozen=True, omit_defaults=True):
    """What may go of one class. A limit that is None is none."""

    #: Switched off, nothing goes.
    on: bool = True
    #: Seconds after which a thing may go.
    age: float | None = None
    #: How many stay, of each repository where things are of one.
    count: int | None = None
    #: How much stays, in all.
    bytes: int | None = None
    #: Seconds in which a thing stays in any case.
    grace: float = 0.0


OFF = Policy(on=False)
#: Seconds for which the record of a job stays in any case: somebody may wait for it.
JOB_GRACE = MINUTE

#: What holds where nothing is set. A month is how long people look back at a job; a
#: thousand jobs of a busy repository would be a morning's, five hundred are shown by no
#: list any more; and a disk of a person has 10 GiB for logs, but not a hundred.
DEFAULTS: dict[CleanClass, Policy] = {
    # An hour in any case, so that whoever submitted a job can ask how it went.
    "jobs": Policy(age=30 * DAY, count=500, bytes=10 << 30, grace=HOUR),
    # Output that belongs to no job. A week, since a restore may bring its job back.
    "logs": Policy(age=7 * DAY, grace=DAY),
    # Longer than jobs, since it tells of those that are gone. About 200 MiB.
    "events": Policy(age=90 * DAY, count=1_000_000, grace=HOUR),
    # They go with their job, or earlier where they take too much.
    "artifacts": Policy(age=30 * DAY, bytes=5 << 30, grace=HOUR),
    # What is in them was saved before, so a day is for people who want to look.
    "worktrees": Policy(age=DAY, grace=HOUR),
    # Work that is nowhere else stays longer than that, whatever is set here.
    "preserved": Policy(age=90 * DAY),
    # Longer than anything takes that makes them.
    "temporary": Policy(age=15 * MINUTE, grace=15 * MINUTE),
    # The stores before the present one; the newest of them stays in any case.
    "backups": Policy(age=90 * DAY, count=10, grace=DAY),
    # A week, in case a repository was removed by mistake.
    "repositories": Policy(age=7 * DAY, grace=7 * DAY),
}


class Candidate(NamedTuple):
    """One thing that could go."""

    name: str
    #: When it ended, or was changed last, in seconds since 1970.
    at: float
    bytes: int = 0
    #: Whose it is, where a count holds for each of them.
    group: str = ""
    #: Why it has to stay; None: it need not.
    protected: str | None = None


class Besides(NamedTuple):
    """What there is that is newer than all candidates, and is no candidate itself."""

    counts: Mapping[str, int] = {}
    bytes: int = 0


class Verdict(NamedTuple):
    """Whether one thing goes, and why, or why not."""

    candidate: Candidate
    goes: bool
    reason: str
    #: The first moment at which it may go, if it stays only until then.
    due_at: float | None = None


def policy_of(rules: Mapping[str, Any], name: CleanClass) -> Policy:
    """The policy of a class from the settings that a clean-up was given."""
    if name not in rules:
        return DEFAULTS.get(name, OFF)
    return msgspec.convert(rules[name], Policy)


def decide(
    candidates: Iterable[Candidate],
    policy: Policy,
    now: float,
    besides: Besides = Besides(),  # noqa: B008 - nobody can change it
) -> list[Verdict]:
    """What becomes of each candidate, the oldest first."""
    order = sorted(candidates, key=lambda each: (each.at, each.name))
    if not policy.on:
        return [
            Verdict(each, False, "nothing of this class is removed") for each in order
        ]
    counts = Counter(besides.counts)
    size = besides.bytes
    verdicts = []
    for each in reversed(order):
        limit = _too_old(each, policy, now)
        if limit is None and policy.count is not None:
            limit = _too_many(counts[each.group], policy.count, each.group)
        if limit is None:
            # Only what no other limit lets go takes from the room that there is.
            size += each.bytes
            if policy.bytes is not None and size > policy.bytes:
                limit = f"more than {size_text(policy.bytes)} are there"
        counts[each.group] += 1
        verdicts.append(_verdict(each, policy, now, limit))
    verdicts.reverse()
    return verdicts


def next_due(verdicts: Iterable[Verdict]) -> float | None:
    """The first moment at which something that stays may go because of its age."""
    dues = (each.due_at for each in verdicts if each.due_at is not None)
    return min(dues, default=None)


def referred_to(
    verdicts: Sequence[Verdict], references: Iterable[tuple[str, str, str | None]]
) -> list[Verdict]:
    """The verdicts once it is known what something refers to, and so has to stay.

    A reference says why, and by which other thing it is: that counts unless this one
    goes too.
    """
    reasons: dict[str, list[tuple[str, str | None]]] = {}
    for name, reason, by in references:
        reasons.setdefault(name, []).append((reason, by))
    going = {each.candidate.name for each in verdicts if each.goes}
    found = []
    # What refers to a thing was made after it.
    for each in sorted(verdicts, key=lambda each: each.candidate.name, reverse=True):
        name = each.candidate.name
        holding = [why for why, by in reasons.get(name, ()) if by not in going]
        if each.goes and holding:
            going.discard(name)
            each = Verdict(each.candidate, False, holding[0])
        found.append(each)
    return sorted(found, key=lambda each: (each.candidate.at, each.candidate.name))


class EventNumbers(NamedTuple):
    """The history as numbers of events: the first and the last that are there."""

    first: int
    last: int
    #: The first one that is not older than the age of the policy, or than its grace.
    in_age: int
    in_grace: int


def events_before(policy: Policy, numbers: EventNumbers) -> tuple[int, str]:
    """The number before which events go, and why; that of the first if none do."""
    before, reason = numbers.first, ""
    if policy.on and policy.age is not None and numbers.in_age > before:
        before, reason = numbers.in_age, f"older than {duration_text(policy.age)}"
    if policy.on and policy.count is not None:
        kept_from = numbers.last - policy.count + 1
        if kept_from > before:
            before, reason = kept_from, f"more than {policy.count} are there"
    return max(numbers.first, min(before, numbers.in_grace)), reason


def _verdict(each: Candidate, policy: Policy, now: float, limit: str | None) -> Verdict:
    if each.protected is not None:
        return Verdict(each, False, each.protected)
    out_of_grace = each.at + policy.grace
    if limit is not None:
        if now >= out_of_grace:
            return Verdict(each, True, limit)
        reason = f"younger than {duration_text(policy.grace)}"
        return Verdict(each, False, reason, out_of_grace)
    due = None if policy.age is None else max(out_of_grace, each.at + policy.age)
    return Verdict(each, False, "within the limits", due)


def _too_old(each: Candidate, policy: Policy, now: float) -> str | None:
    if policy.age is None or now < each.at + policy.age:
        return None
    return f"older than {duration_text(policy.age)}"


def _too_many(newer: int, count: int, group: str) -> str | None:
    if newer < count:
        return None
    of = " of its repository" if group else ""
    return f"more than {count}{of} are there"


def duration_text(seconds: float) -> str:
    """`90.0` as `90s`, `3600.0` as `1h`."""
    for unit, length in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"
