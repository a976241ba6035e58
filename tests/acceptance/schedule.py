"""A model of the schedule, of its own making: judges an event log after the fact.

A job *holds* its tokens and claims from its `job_dispatched` to its terminal event, in
the order of the log. It is *eligible* while it waits, nothing it would conflict with is
held in its repository, each of its tokens is free, and its repository is active or may
become so. A *pause* is the time from the moment at which some job is eligible to the
next dispatch of any job, or to the moment at which none is eligible any more. While
there is a pause a slot stands empty for no reason, so every pause should be short.

Not in the model: priorities, reservations, pauses and pressure; tests leave them out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.acceptance.service import Entry, Json

HEAVY = ("check", "verify-edit")
TERMINAL = frozenset(
    f"job_{state}" for state in ("succeeded", "failed", "timed_out", "cancelled")
)


class Wish(NamedTuple):
    """What one job needs."""

    repo: str
    tokens: tuple[str, ...]
    claims: tuple[str, ...]

    @classmethod
    def of(cls, job: Json) -> Wish:
        """From a line of a batch."""
        kind, provider = job.get("kind"), job.get("provider")
        tokens = ["workers"]
        if kind in HEAVY:
            tokens.append("heavy_checks")
        if provider:
            tokens += ["agents", f"provider:{provider}"]
        default = ["read:workspace"] if kind in HEAVY else ["write:repo-content:*"]
        claims = job.get("claims", [] if job.get("read_only") else default)
        return cls(job["repo"], tuple(tokens), tuple(claims))


class Schedule:
    """Plays a log event by event."""

    def __init__(self, limits: Mapping[str, int], repositories: int) -> None:
        self._limits = limits
        self._repositories = repositories
        self._waiting: dict[str, Wish] = {}
        self._running: dict[str, Wish] = {}
        self._since: float | None = None
        self.pauses = [0.0]
        self.problems: list[str] = []
        self.peaks: Counter[str] = Counter()

    def take(self, entry: Entry, wish: Wish | None) -> None:
        """One entry of a log; jobs without a wish are no part of the test."""
        if wish is not None and entry.job is not None:
            self.play(entry.kind, entry.job, wish, entry.at)

    def play(self, kind: str, job: str, wish: Wish, at: float) -> None:
        if kind == "job_dispatched":
            self._dispatch(job, wish)
        elif kind in TERMINAL:
            self._running.pop(job, None)
        elif job not in self._running:
            self._waiting[job] = wish
        if self._since is not None and (kind == "job_dispatched" or not self._idle()):
            self.pauses.append(at - self._since)
            self._since = None
        if self._since is None and self._idle():
            self._since = at

    def _dispatch(self, job: str, wish: Wish) -> None:
        del self._waiting[job]
        if any(self._conflict(wish, held) for held in self._running.values()):
            self.problems.append(f"{job} conflicts with what is held")
        self._running[job] = wish
        used = self._used()
        used["repositories"] = len({held.repo for held in self._running.values()})
        for kind, count in used.items():
            self.peaks[kind] = max(self.peaks[kind], count)
            limit = {**self._limits, "repositories": self._repositories}[kind]
            if count > limit:
                self.problems.append(f"{job} makes {count} of {limit} {kind}")

    def _used(self) -> Counter[str]:
        return Counter(
            token for held in self._running.values() for token in held.tokens
        )

    def _idle(self) -> bool:
        """Whether a job waits that could run."""
        used = self._used()
        active = {held.repo for held in self._running.values()}
        return any(
            (wish.repo in active or len(active) < self._repositories)
            and all(used[token] < self._limits[token] for token in wish.tokens)
            and not any(self._conflict(wish, held) for held in self._running.values())
            for wish in set(self._waiting.values())
        )

    @staticmethod
    def _conflict(one: Wish, other: Wish) -> bool:
        return one.repo == other.repo and any(
            _overlap(claim, held) for claim in one.claims for held in other.claims
        )


def _overlap(one: str, other: str) -> bool:
    """Whether two claims of one checkout exclude each other; only those used here."""
    if one.startswith("read:") and other.startswith("read:"):
        return False
    left, right = (claim.partition(":")[2] for claim in (one, other))
    whole = ("repo-content:*", "workspace")
    return left == right or left in whole or right in whole
