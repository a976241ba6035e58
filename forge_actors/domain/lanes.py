"""Lanes: the jobs of one repository that are ready, by what they need.

Jobs with the same claims and tokens wait in one *lane*: either the first of a lane can
start or none of it can; one that has kept its claims has a lane to itself. A lane that
meets a held claim is parked under the holder and not looked at again until the holder
is gone, so a blocked job costs nothing.

A job that waited longer than `overtake_after` for its claims *reserves* them: later
jobs that conflict are parked under it as if it held them already.
"""

from __future__ import annotations

from heapq import heappop, heappush, nsmallest
from itertools import chain
from typing import TYPE_CHECKING

from forge_actors.domain.blockers import find_blocker, only_checkout, rank_of
from forge_actors.domain.claims import first_conflict

if TYPE_CHECKING:
    from collections.abc import Collection

    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job

Tokens = tuple[str, ...]
Leases = dict[str, tuple["Claim", ...]]
_Entry = tuple[float, str]
#: Claims, tokens, whether they are isolatable, and the job if it has kept its claims.
_Key = tuple[tuple["Claim", ...], Tokens, bool, str | None]
_NEVER = float("inf")

#: Jobs of one repository that reserve what they claim at once, the first in order: each
#: job that is looked at is compared with all of them. Others follow as these start.
MAX_RESERVING = 64


class Lane:
    """Jobs that are alike in what they need, a heap for each priority among them."""

    __slots__ = (
        "blocker",
        "claims",
        "isolatable",
        "key",
        "queues",
        "shared",
        "since",
        "size",
        "tokens",
    )

    def __init__(self, key: _Key) -> None:
        self.key = key
        #: `isolatable`: its jobs may be given worktrees of their own.
        self.claims, self.tokens, self.isolatable, _ = key
        claims = self.claims
        self.queues: dict[int, list[_Entry]] = {}
        #: Its jobs can run at the same time: what they claim does not conflict.
        self.shared = first_conflict(claims, claims) is None
        #: Jobs in it; the heaps may hold more entries.
        self.size = 0
        #: The job that holds, or has reserved, what this lane claims.
        self.blocker: str | None = None
        #: When it was last parked, in wall-clock seconds.
        self.since = 0.0

    def __lt__(self, other: Lane) -> bool:
        """For heaps: of the entries of one job at most one lane's is not stale."""
        return False


class Lanes:
    """The ready jobs. Heap entries may be stale; they are dropped when they surface."""

    def __init__(
        self,
        overtake_after: float,
        known: frozenset[str] | None,
        *,
        isolates: bool = False,
    ) -> None:
        self._overtake_after = overtake_after
        #: Jobs get worktrees where only checkouts are in their way.
        self._isolates = isolates
        #: The kinds of token that there are; None for any. A lane that needs another
        #: one is passed over, and reserves nothing.
        self._known = known
        #: Ready jobs, in the order in which they became ready, each with its lane and
        #: the one entry in the lane's heaps that counts.
        self.ready: dict[str, tuple[Job, Lane, _Entry]] = {}
        self._lanes: dict[_Key, Lane] = {}
        self._index: dict[Tokens, dict[int, list[tuple[float, str, Lane]]]] = {}
        self._parked: dict[str, dict[Lane, None]] = {}
        self._starves_at = _NEVER
        #: Those that reserve their claims, in order.
        self._starved: dict[str, Job] = {}
        #: More have waited too long than may reserve.
        self._crowded = False
        self._closed: frozenset[str] = frozenset()

    def close(self, kinds: frozenset[str]) -> None:
        """Jobs that need one of these tokens can neither start nor reserve anything."""
        if kinds == self._closed:
            return
        self._closed = kinds
        self._starved = {
            name: job for name, job in self._starved.items() if self._open(job.tokens)
        }
        self._starves_at = 0.0
        self.reconsider()

    def enter(self, job: Job) -> None:
        """Add a ready job; its claims and tokens become the lane's own copies."""
        kept = job.verify is not None and job.verify.checking
        key = (job.claims, job.tokens, job.isolatable, job.id if kept else None)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key)
        job.claims, job.tokens = lane.claims, lane.tokens
        entry = (job.queued_at, job.id)
        self.ready[job.id] = (job, lane, entry)
        lane.size += 1
        heappush(lane.queues.setdefault(job.priority, []), entry)
        if self._head(lane, job.priority) is not entry:
            return
        if lane.blocker is None:
            self._show(lane, job.priority)
        elif lane.blocker in self.ready:
            # It only reserved what it lacks, and this job may come before it.
            del self._parked[lane.blocker][lane]
            self._unpark(lane)
        else:
            self._watch(lane)

    def start(self, job: Job, now: float, *, isolated: bool = False) -> None:
        """Take out the job that `best` gave: it holds its claims from now on.

        What is parked under it, as it had reserved its claims, stays so: it holds them.
        One that is isolated holds others, which nobody waits for.
        """
        _, lane, _ = self.ready.pop(job.id)
        self._starves_no_more(job)
        lane.size -= 1
        if not lane.size:
            del self._lanes[lane.key]
        elif lane.shared or (lane.isolatable and self._isolates):
            self._show(lane, job.priority)
        else:
            self._park(lane, job.id, now)
        if isolated:
            self.release(job.id)

    def leave(self, job: Job) -> None:
        """Take out a ready job that does not start now."""
        _, lane, entry = self.ready[job.id]
        was_first = self._head(lane, job.priority) is entry
        del self.ready[job.id]
        self._starves_no_more(job)
        if was_first and lane.blocker is None:
            self._show(lane, job.priority)
        elif was_first:
            self._watch(lane)
        lane.size -= 1
        if not lane.size:
            self._lanes.pop(lane.key, None)

    def set_limits(
        self,
        overtake_after: float,
        known: frozenset[str] | None,
        *,
        isolates: bool = False,
    ) -> None:
        """Go by other limits from now on."""
        self._overtake_after, self._known = overtake_after, known
        if isolates and not self._isolates:
            for blocker in tuple(self._parked):
                self.release(blocker)
        self._isolates = isolates
        self._starved.clear()
        self._starves_at = -_NEVER
        self.reconsider()
        self._index.clear()
        for lane in self._lanes.values():
            if lane.blocker is None:
                self._show_all(lane)

    def unknown(self, tokens: Tokens) -> str | None:
        """The first of these kinds that there is no more."""
        if self._known is None:
            return None
        return next((kind for kind in tokens if kind not in self._known), None)

    def tokens(self) -> tuple[Tokens, ...]:
        """Every set of tokens that some ready job needs and can have."""
        if not self._closed:
            return tuple(self._index)
        return tuple(tokens for tokens in self._index if self._open(tokens))

    def best(self, tokens: Tokens, leases: Leases, now: float) -> Job | None:
        """The first job in order that needs these tokens and whose claims are free."""
        if tokens not in self._index or (self._closed and not self._open(tokens)):
            return None
        while True:
            reservations = self.reservations(now)
            shown = self._shown(tokens)
            if not shown:
                del self._index[tokens]
                return None
            job, lane = shown[0]
            if len(shown) > 1:
                job, lane = min(shown, key=lambda entry: rank_of(entry[0], now))
            blocker = find_blocker(job, leases, reservations, now)
            if blocker is None or self.in_the_way(job, leases, now):
                return job
            self._park(lane, blocker[0], now)

    def priorities_parked(self, most: int) -> list[int]:
        """Those of jobs that wait for what others hold; the best that there may be, if
        more lanes than that are parked."""
        if sum(map(len, self._parked.values())) > most:
            return [0]
        parked = chain.from_iterable(self._parked.values())
        return [priority for lane in parked for priority in lane.queues]

    def in_the_way(self, job: Job, leases: Leases, now: float) -> tuple[str, ...]:
        """The jobs that only keep this one from its checkout, if it may do without."""
        if not (job.isolatable and self._isolates):
            return ()
        return only_checkout(job, leases, self.reservations(now), now)

    def around(self, job: Job, leases: Leases, now: float) -> str:
        """What is to be told of a job that need not wait for its checkout."""
        holders = self.in_the_way(job, leases, now)
        if not holders:
            return ""
        return f"; {holders[0]} has its checkout, so it gets a worktree of its own"

    def release(self, blocker: str) -> None:
        """What this job held or had reserved is free: look at its lanes again."""
        for lane in self._parked.pop(blocker, ()):
            self._unpark(lane)

    def reconsider(self) -> None:
        """Look again at the lanes that only a reservation holds back.

        Ageing changes the order of jobs, and with it who is held back by whom; two
        that were looked at at different times could hold back each other for ever.
        """
        for blocker in [name for name in self._parked if name in self.ready]:
            self.release(blocker)
        if self._crowded:
            self._starves_at = -_NEVER

    def reservations(self, now: float) -> Collection[Job]:
        """Jobs that waited too long, in order; their claims are kept free."""
        if now >= self._starves_at:
            starved = self._starved.copy()
            self._starves_at = _NEVER
            for lanes in self._parked.values():
                for lane in lanes:
                    self._find_starved(lane, starved, now)
            self._crowded = False
            self._reserve(starved.values(), now)
        return self._starved.values()

    def _starves_no_more(self, job: Job) -> None:
        self._starved.pop(job.id, None)
        # Not for each one that leaves: it means to look at every parked lane.
        if self._crowded and len(self._starved) <= MAX_RESERVING // 2:
            self._starves_at = -_NEVER

    def _starve(self, job: Job, now: float) -> None:
        """A job has waited too long; unless many come before it, it reserves."""
        if not self._open(job.tokens) or self.unknown(job.tokens) is not None:
            return
        reserving = self._starved
        if self._crowded and reserving:
            last = next(reversed(reserving.values()))
            if rank_of(last, now) < rank_of(job, now):
                return
        self._reserve([*reserving.values(), job], now)

    def _reserve(self, jobs: Collection[Job], now: float) -> None:
        """Let the first ones of these keep what they claim free."""
        first = nsmallest(MAX_RESERVING, jobs, key=lambda job: rank_of(job, now))
        self._crowded = self._crowded or len(first) < len(jobs)
        self._starved = {job.id: job for job in first}

    def _open(self, tokens: Tokens) -> bool:
        return self._closed.isdisjoint(tokens)

    def _find_starved(self, lane: Lane, starved: dict[str, Job], now: float) -> None:
        if not self._open(lane.tokens) or self.unknown(lane.tokens) is not None:
            return
        for level in lane.queues:
            head = self._head(lane, level)
            if head is None:
                continue
            due = head[0] + self._overtake_after
            if due <= now:
                starved[head[1]] = self.ready[head[1]][0]
            else:
                self._starves_at = min(self._starves_at, due)

    def _head(self, lane: Lane, level: int) -> _Entry | None:
        queue = lane.queues[level]
        while queue:
            entry = queue[0]
            held = self.ready.get(entry[1])
            if held is not None and held[2] is entry:
                return entry
            heappop(queue)
        return None

    def _show(self, lane: Lane, level: int) -> None:
        head = self._head(lane, level)
        if head is None:
            return
        heaps = self._index.get(lane.tokens)
        if heaps is None:
            if self.unknown(lane.tokens) is not None:
                return
            heaps = self._index[lane.tokens] = {}
        heappush(heaps.setdefault(level, []), (*head, lane))

    def _shown(self, tokens: Tokens) -> list[tuple[Job, Lane]]:
        """The first job of each priority that is in no parked lane."""
        shown: list[tuple[Job, Lane]] = []
        ready = self.ready
        for level, heap in self._index[tokens].items():
            while heap:
                queued_at, job_id, lane = heap[0]
                held = ready.get(job_id)
                # The first of a lane is in here too, so one that is ready comes first.
                if (
                    held is not None
                    and lane.blocker is None
                    and held[1] is lane
                    and held[2][0] == queued_at
                    and held[0].priority == level
                ):
                    shown.append((held[0], lane))
                    break
                heappop(heap)
        return shown

    def _park(self, lane: Lane, blocker: str, now: float) -> None:
        lane.blocker, lane.since = blocker, now
        self._parked.setdefault(blocker, {})[lane] = None
        for level in lane.queues:
            head = self._head(lane, level)
            if head is None or head[1] in self._starved:
                continue
            due = head[0] + self._overtake_after
            if due <= now:
                self._starve(self.ready[head[1]][0], now)
            else:
                self._starves_at = min(self._starves_at, due)

    def _unpark(self, lane: Lane) -> None:
        lane.blocker = None
        self._show_all(lane)

    def _show_all(self, lane: Lane) -> None:
        for level in lane.queues:
            self._show(lane, level)

    def _watch(self, lane: Lane) -> None:
        """Know when the first jobs of a parked lane will have waited too long."""
        for level in lane.queues:
            head = self._head(lane, level)
            if head is not None and head[1] not in self._starved:
                due = head[0] + self._overtake_after
                self._starves_at = min(self._starves_at, due)
