"""Spending: what each attempt of an agent used, and what that comes to together.

What nobody told is unknown. In a sum it counts as nothing, and the sum says how many of
its parts are unknown: then it is that much at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.agents import Usage
from forge_actors.domain.changes import AttemptUsed
from forge_actors.domain.recovery import has_begun
from forge_actors.domain.scopes import provider_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import Receipt

#: By what usage can be added up.
Group = Literal["attempt", "job", "repo", "provider", "agent", "day"]
GROUPS: tuple[Group, ...] = get_args(Group)
#: What is added up.
COUNTED = ("input_tokens", "output_tokens", "cached_tokens", "cost")
#: Seconds for which the usage of an attempt is kept, longer than its job.
KEPT_SECONDS = 400 * 86400.0
#: What one attempt may have used, to be believed: tokens, and US dollars.
MAX_TOKENS, MAX_COST = 10**12, 1e9
#: Sums that are told at most, those with the most attempts.
MAX_SUMS = 10_000


class AttemptUsage(Struct, frozen=True):
    """What one attempt used, and whose it was; `at` is its end."""

    job: str
    attempt: int
    repo: str
    provider: str | None
    agent: str
    usage: Usage
    at: float
    session: str | None = None
    #: It went on with a session that was there already.
    resumed: bool = False


class UsageSum(Struct, frozen=True):
    """What several attempts used together.

    None: it is known of none of them. `unknown` says of how many it is not, where it
    is of some: then there was more.
    """

    key: str | None
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None
    unknown: dict[str, int] = {}


class UsageReport(Struct, frozen=True):
    """The sums by one group, the largest first but days in their order; and of all."""

    by: Group
    since: str | None
    groups: list[UsageSum]
    total: UsageSum


def used(job: Job, receipt: Receipt | None, now: float) -> list[Change]:
    """What is to be saved of an attempt of an agent that is over, if it had begun."""
    if job.agent is None or job.checking or not has_begun(job, receipt):
        return []
    told = None if receipt is None else receipt.agent
    providers = (provider_of(token) for token in job.tokens)
    row = AttemptUsage(
        job=job.id,
        attempt=job.attempt,
        repo=job.repo,
        provider=next((name for name in providers if name is not None), None),
        agent=job.agent if told is None else told.agent,
        usage=credible((None if told is None else told.usage) or Usage()),
        at=now,
        session=None if told is None else told.session,
        resumed=told is not None and told.resumed,
    )
    return [AttemptUsed(row)]


def credible(usage: Usage) -> Usage:
    """What can be believed of what a program told; the rest is unknown."""

    def within(value: float | None, most: float) -> bool:
        return value is not None and 0 <= value <= most

    return Usage(
        usage.input_tokens if within(usage.input_tokens, MAX_TOKENS) else None,
        usage.output_tokens if within(usage.output_tokens, MAX_TOKENS) else None,
        usage.cached_tokens if within(usage.cached_tokens, MAX_TOKENS) else None,
        usage.cost if within(usage.cost, MAX_COST) else None,
    )


def summed(key: str | None, parts: Sequence[Usage]) -> UsageSum:
    """All of these together."""
    total = Usage()
    for part in parts:
        total += part
    unknown = {
        name: count
        for name in COUNTED
        if (count := sum(1 for part in parts if getattr(part, name) is None))
    }
    return UsageSum(
        key,
        len(parts),
        total.input_tokens,
        total.output_tokens,
        total.cached_tokens,
        total.cost,
        unknown,
    )


def sum_of(row: Sequence[Any]) -> UsageSum:
    """A row of a store: the key, how many attempts, and of each thing that is counted
    the sum, then of how many it is known."""
    key, attempts, *rest = row
    sums, known = rest[: len(COUNTED)], rest[len(COUNTED) :]
    unknown = {
        name: attempts - count
        for name, count in zip(COUNTED, known, strict=True)
        if count < attempts
    }
    of = dict(zip(COUNTED, sums, strict=True))
    return UsageSum(key=key, attempts=attempts, **of, unknown=unknown)


def used_before(rows: Iterable[AttemptUsage]) -> Usage | None:
    """What a session had used by its `rows`; None unless its beginning is among them.

    What one of them did not tell is counted with the next that is told of all.
    """
    known = list(rows)
    if not any(not row.resumed for row in known):
        return None
    total = Usage(0, 0, 0)
    for row in known:
        total += row.usage
    return total
