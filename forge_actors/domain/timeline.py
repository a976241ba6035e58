"""A timeline: what ran when, on which tokens, and what waited meanwhile.

Moments in it are seconds since the beginning of its window, so that they can be drawn
as they are; what began before has a negative one, or none where it is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The window of somebody who names none.
DEFAULT_SPAN = "1h"
#: Attempts, and waits, that are told at most unless asked otherwise; and at all.
DEFAULT_SPANS, MAX_SPANS = 2000, 20_000
#: Events that are read for one timeline at most, the newest; and of those before its
#: window, from which follows what there was when it began.
MAX_EVENTS, LEAD_EVENTS = 200_000, 5000
#: And of those behind it, for the ends of what it cuts.
TRAIL_EVENTS = 50_000
#: Events among which the last limits are looked for, if none of those tells them.
LIMITS_WITHIN = 2000
#: Jobs that stood still all the while which are looked at.
MAX_STILL = 100_000
#: How many parts the window has where numbers of jobs are told.
PARTS = 240
#: Stretches of the whole service, and suspensions of one attempt, that are kept.
MAX_BANDS, MAX_SUSPENDED = 1000, 100

#: How an attempt is called whose end the history does not tell.
UNKNOWN = "unknown"


class TimelineQuery(Struct, frozen=True):
    """Which part of what happened is wanted.

    Moments as people write them: a time, a day, or a span before now.
    """

    since: str | None = None
    until: str | None = None
    #: Names, ids or paths of repositories; none means all.
    repo: tuple[str, ...] = ()
    limit: int = DEFAULT_SPANS


class Run(Struct, frozen=True):
    """One attempt of a job, from its tokens to its end."""

    job: str
    attempt: int
    repo: str
    tokens: tuple[str, ...]
    kind: str | None = None
    name: str | None = None
    #: When it took its tokens.
    began: float | None = None
    #: When its process ran.
    started: float | None = None
    #: None while it runs.
    ended: float | None = None
    #: The state that its end brought the job into; a waiting one if it is tried again.
    outcome: str | None = None
    #: The code of its error.
    error: str | None = None
    exit_code: int | None = None
    #: Seconds for which the job had waited for this attempt.
    waited: float | None = None
    #: When it stood still: each from and to, which is open while it does.
    suspended: tuple[tuple[float, float | None], ...] = ()
    #: Its row among those of its repository, and among the holders of each token.
    lane: int = 0
    slots: dict[str, int] = {}


class Wait(Struct, frozen=True):
    """A job that did not run, for one reason."""

    job: str
    repo: str
    #: What it waited for: its state without `waiting_for_`, or `held`.
    reason: str
    kind: str | None = None
    name: str | None = None
    began: float | None = None
    ended: float | None = None


class Band(Struct, frozen=True):
    """A stretch in which something held for many jobs."""

    #: `down`, `pressure`, `drain`, `pause`, `closed` or `policy`.
    kind: str
    began: float
    ended: float | None = None
    #: Of what, and why, in few words.
    reason: str | None = None
    #: The repository it was for, if it was for one.
    repo: str | None = None


class Depth(Struct, frozen=True):
    """How many jobs of a repository waited for a reason, on average of each part."""

    repo: str
    reason: str
    jobs: list[float]


class Timeline(Struct, frozen=True):
    """What happened in one window."""

    #: RFC 3339, UTC.
    since: str
    until: str
    #: The beginning in seconds since 1970, and the length of the window.
    epoch: float
    seconds: float
    #: Whether the window ends now, so that what is open goes on.
    live: bool
    #: Those of which something is shown, in the order of their names.
    repositories: list[str]
    runs: list[Run]
    waits: list[Wait]
    depths: list[Depth]
    bands: list[Band]
    #: How many of each kind of token there were at last.
    limits: dict[str, int] = {}
    #: Attempts and waits that are not told: there are more than were asked for.
    runs_left_out: int = 0
    waits_left_out: int = 0
    #: From when on everything is told, if that is later than the window begins.
    complete_from: float = 0.0


class PastFacts(Struct, frozen=True):
    """What a store says of a job and its last attempt."""

    id: str
    repo: str
    name: str | None
    kind: str
    provider: str | None
    state: str
    attempt: int
    created_at: float
    queued_at: float
    dispatched_at: float | None
    started_at: float | None
    finished_at: float | None
    exit_code: int | None = None
    held_at: float | None = None


def events_to_read(since: int, until: int, last: int) -> tuple[int, int]:
    """Which events to read for a window, behind the first number up to the second.

    `since` and `until` are the numbers before the first event of the window and behind
    it, `last` is that of the last event there is.
    """
    return max(since - LEAD_EVENTS, until - MAX_EVENTS, 0), min(
        last, until + TRAIL_EVENTS
    )


def shared_out(runs: Iterable[Run]) -> list[Run]:
    """The same in the order in which they began, each on the first row that is free:
    of its repository, and of each of its tokens."""
    ends: dict[str, list[float]] = {}

    def row(of: str, run: Run) -> int:
        rows = ends.setdefault(of, [])
        began = _from(run)
        ended = float("inf") if run.ended is None else max(run.ended, began)
        for number, free in enumerate(rows):
            if free <= began:
                rows[number] = ended
                return number
        rows.append(ended)
        return len(rows) - 1

    return [
        structs.replace(
            run,
            lane=row(f"repo {run.repo}", run),
            slots={token: row(token, run) for token in run.tokens},
        )
        for run in sorted(runs, key=_from)
    ]


def _from(run: Run) -> float:
    return float("-inf") if run.began is None else run.began


class Gauge:
    """How many of something there were in each part of a window, on average."""

    def __init__(self, seconds: float, parts: int = PARTS) -> None:
        self._part = seconds / parts
        self._seconds = seconds
        #: What each part has of its own, and from each on has more than the one before.
        self._own = [0.0] * (parts + 1)
        self._steps = [0.0] * (parts + 1)

    def add(self, began: float, ended: float) -> None:
        """One more from then to then."""
        began, ended = max(began, 0.0), min(ended, self._seconds)
        if ended <= began:
            return
        first, last = self._place(began), self._place(ended)
        if first == last:
            self._own[first] += (ended - began) / self._part
            return
        self._own[first] += first + 1 - began / self._part
        self._own[last] += ended / self._part - last
        self._steps[first + 1] += 1
        self._steps[last] -= 1

    def _place(self, at: float) -> int:
        return min(int(at / self._part), len(self._own) - 1)

    def averages(self) -> list[float]:
        told, level = [], 0.0
        for own, step in zip(self._own[:-1], self._steps[:-1], strict=True):
            level += step
            told.append(round(level + own, 3))
        return told


def most_lanes(runs: Sequence[Run], repo: str) -> int:
    """How many rows the attempts of a repository take."""
    return max((run.lane + 1 for run in runs if run.repo == repo), default=0)
