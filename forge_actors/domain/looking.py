"""Looking: which repository's status is sampled next, when, and what became of it.

A mark says that what is known of a repository is out of date. It has a number, and a
sample tells which mark it answers: one that came while it was made stays.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any

from msgspec import Struct, json, structs

from forge_actors.domain.git_status import GitStatus

#: Why a repository was marked. The first kind is worth trying again soon.
JOB_ENDED = "a job ended"
ADDED = "it was added"
FILES_CHANGED = "files changed"
ROUND = "it was its turn in the safety round"
AFTER_RESTART = "jobs ran since, or while it was made"

#: Seconds from a mark to its sample: what changes a file often changes more of them.
SETTLE_SECONDS = 0.1
#: Seconds between two samples of one repository, however often it is marked.
GAP_SECONDS = 0.5
#: The same while it has more jobs, which will change it again.
BUSY_SETTLE_SECONDS, BUSY_GAP_SECONDS = 2.0, 5.0
#: Seconds until a sample that failed is tried again; doubled each time, up to this.
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0
#: Failures in a row after which only the safety round tries again.
PATIENCE = 10
#: CPU seconds that a sample is taken to cost before any was made.
USUAL_COST = 0.01
#: CPU seconds that a sample costs besides: to begin it, and to save what came of it.
OVERHEAD = 0.0015
#: The part of a new sample in the average of their costs.
_NEWEST = 0.1

_status = json.Decoder(GitStatus).decode


class LookLimits(Struct, frozen=True):
    """What looking at repositories may cost, and how often it is done unasked."""

    #: Look at them at all.
    enabled: bool = True
    #: Look when files change, where that can be told.
    watch: bool = True
    #: Of one processor, at most.
    share: float = 0.18
    #: Seconds between two looks of the safety round.
    period: float = 60.0
    #: Seconds that one git process may take.
    timeout: float = 5.0


class Unwatchable(Struct, frozen=True):
    """Why the files of a repository are not watched, and whether no others can be."""

    reason: str
    everywhere: bool = False


class Mark(Struct, frozen=True):
    """What is known is out of date, since this moment."""

    nonce: int
    reason: str
    at: float
    #: What it was marked for, such as a commit; the same again is the same mark.
    source: str | None = None


class Look(Struct, frozen=True):
    """What is known of one repository. Every field of it is saved."""

    repo: str
    status: GitStatus | None = None
    #: When that was so.
    sampled_at: float | None = None
    #: Whether jobs of the repository ran then: what they did later is not in it.
    busy: bool = False
    #: The number of the last dispatch before it.
    fence: int = 0
    #: The mark that the last sample answered.
    nonce: int = 0
    #: When it was last tried, well or not: the order of the safety round.
    looked_at: float = 0.0
    dirty: Mark | None = None
    #: Samples that failed in a row, the reason of the last one, and when it is worth
    #: trying again.
    failures: int = 0
    error: str | None = None
    retry_at: float | None = None

    def marked(self, reason: str, now: float, source: str | None = None) -> Look:
        """Out of date since now, or for longer. The same source keeps the mark."""
        last = self.dirty
        if last is not None and source is not None and last.source == source:
            return self
        nonce = 1 + (self.nonce if last is None else max(self.nonce, last.nonce))
        # Its place in line is that of the first mark: one that changes all the time
        # would otherwise never have its turn.
        at = now if last is None else min(last.at, now)
        return structs.replace(self, dirty=Mark(nonce, reason, at, source))

    def sampled(
        self,
        nonce: int,
        status: GitStatus,
        now: float,
        *,
        busy: bool = False,
        fence: int = 0,
    ) -> Look:
        """A sample that was begun for mark `nonce` found this."""
        return structs.replace(
            self,
            status=status,
            sampled_at=now,
            busy=busy,
            fence=fence,
            nonce=max(self.nonce, nonce),
            looked_at=now,
            dirty=self._unanswered(nonce),
            failures=0,
            error=None,
            retry_at=None,
        )

    def failed(self, nonce: int, reason: str, now: float) -> Look:
        """A sample that was begun for mark `nonce` found nothing.

        The mark stays, unless it was only the turn of the repository or patience is at
        an end; then the safety round tries again.
        """
        failures = self.failures + 1
        dirty = self.dirty
        if dirty is not None and (dirty.reason == ROUND or failures >= PATIENCE):
            dirty = self._unanswered(nonce)
        return structs.replace(
            self,
            looked_at=now,
            dirty=dirty,
            failures=failures,
            error=reason,
            retry_at=now + retry_delay(failures),
        )

    def _unanswered(self, nonce: int) -> Mark | None:
        last = self.dirty
        if last is None or last.nonce <= nonce:
            return None
        return last

    def due(self, *, active: bool) -> float:
        """When the sample that the mark asks for is to be made; infinite without.

        `active`: the repository has jobs that have not ended.
        """
        if self.dirty is None:
            return math.inf
        due = self.dirty.at + (BUSY_SETTLE_SECONDS if active else SETTLE_SECONDS)
        if self.looked_at:
            gap = BUSY_GAP_SECONDS if active else GAP_SECONDS
            due = max(due, self.looked_at + gap)
        return due if self.retry_at is None else max(due, self.retry_at)

    def taken_in(self, ahead: float, now: float) -> Look:
        """As it was saved, its moments made those of a runtime whose clock is `ahead`.

        None of them is later than now, though the clock may have been set back since.
        """
        dirty, retry_at, sampled_at = self.dirty, self.retry_at, self.sampled_at
        if dirty is not None:
            dirty = structs.replace(dirty, at=min(dirty.at - ahead, now))
        if retry_at is not None:
            retry_at = min(retry_at - ahead, now + LONGEST_RETRY)
        if sampled_at is not None:
            sampled_at = min(sampled_at - ahead, now)
        looked_at = min(self.looked_at - ahead, now) if self.looked_at else 0.0
        return structs.replace(
            self,
            sampled_at=sampled_at,
            looked_at=looked_at,
            dirty=dirty,
            retry_at=retry_at,
        )

    def outdated(self, fence: int) -> bool:
        """Whether a job may have changed it since, though nobody marked it; `fence` is
        that of the last dispatch of the repository.

        A mark is saved a moment after the end that it is for, and a crash may come in
        between. But the dispatch is durable: what ended later was dispatched after the
        look, or ran while that was made.
        """
        return self.dirty is None and (self.busy or fence > self.fence)


def look_from(row: tuple[Any, ...]) -> Look:
    """What a store has of a look: the repository, the status as JSON, and the rest."""
    repo, sample, sampled_at, busy, fence, nonce, looked_at = row[:7]
    mark, reason, at, source, failures, error, retry_at = row[7:]
    return Look(
        repo,
        status=None if sample is None else _status(sample),
        sampled_at=sampled_at,
        busy=bool(busy),
        fence=fence,
        nonce=nonce,
        looked_at=looked_at,
        dirty=None if mark is None else Mark(mark, reason, at, source),
        failures=failures,
        error=error,
        retry_at=retry_at,
    )


def retry_delay(failures: int) -> float:
    """Seconds until the next try, after so many failures in a row."""
    return min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** (min(failures, 32) - 1))


class Waiting:
    """The repositories that wait for a sample, by the moment when it is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, repo: str) -> bool:
        return repo in self._due

    def put(self, repo: str, due: float) -> None:
        """It waits until then, and not until another moment."""
        if math.isinf(due):
            self._due.pop(repo, None)
        elif self._due.get(repo) != due:
            self._due[repo] = due
            heappush(self._heap, (due, repo))

    @property
    def first_due(self) -> float:
        """When the next one is due; infinite if none waits."""
        self._drop_old()
        return self._heap[0][0] if self._heap else math.inf

    def take(self, now: float) -> str | None:
        """The one that is due for longest; it waits no more."""
        if self.first_due > now:
            return None
        _, repo = heappop(self._heap)
        del self._due[repo]
        return repo

    def _drop_old(self) -> None:
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)


class Pace:
    """Spreads samples so that they take no more than a share of one processor.

    A sample that waits for a disk costs nothing and holds nobody up. Times are those of
    the caller's clock.
    """

    def __init__(self) -> None:
        self._average = USUAL_COST
        #: When the next one may begin.
        self.free_at = -math.inf

    def begin(self, now: float, share: float) -> float:
        """One begins, for what they usually cost; give that back with `end`."""
        self.free_at = max(now, self.free_at) + self._average / share
        return self._average

    def end(self, assumed: float, cost: float, share: float) -> None:
        """It took so many CPU seconds, and some more of ours."""
        cost += OVERHEAD
        self.free_at += (cost - assumed) / share
        self._average += _NEWEST * (cost - self._average)
