"""The tally: how many jobs of each repository are in each state, kept in memory.

To count the rows of a long queue takes a tenth of a second, and an index of the states
would cost every move of every job. Nearly all jobs that have not ended are `queued`, so
only the others are known one by one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from forge_actors.domain.changes import (
    JobAnswered,
    JobApproved,
    JobDispatched,
    JobRan,
    JobRequeued,
    JobsForgotten,
    JobWaits,
)
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.projections import attention_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from forge_actors.domain.changes import JobAdded, JobEnded
    from forge_actors.domain.jobs import State

QUEUED: State = "queued"


class Tally:
    """The counts of what is durable. Only the store holds one."""

    def __init__(
        self,
        counts: Iterable[tuple[str, State, int, float | None]],
        apart: Iterable[tuple[str, str, State]],
    ) -> None:
        """From the counts by repository and state, with the last end of each, and from
        the jobs that have not ended and are not `queued`, each with its repository and
        state."""
        self._active: dict[str, int] = {}
        self._ended: dict[str, dict[State, int]] = {}
        #: When the job ended that had ended last when this began.
        self.last_end: float | None = None
        for repo, state, count, last in counts:
            if last is not None and (self.last_end is None or last > self.last_end):
                self.last_end = last
            if state in TERMINAL:
                self._ended.setdefault(repo, {})[state] = count
            else:
                self._active[repo] = self._active.get(repo, 0) + count
        #: By job: its repository and state, unless it is `queued`.
        self._apart: dict[str, tuple[str, State]] = {
            job: (repo, state) for job, repo, state in apart
        }

    # -- counting --------------------------------------------------------------------

    @property
    def counters(self) -> dict[type, Callable[[Any], None]]:
        """What to call with each change that has become durable, by its type."""
        return {
            JobDispatched: self._dispatched,
            JobRan: self._ran,
            JobWaits: self._waits,
            JobRequeued: self._waits,
            JobAnswered: self._waits,
            JobApproved: self._waits,
            JobsForgotten: self._forgotten,
        }

    def added(self, change: JobAdded) -> None:
        job = change.job
        self._active[job.repo] = self._active.get(job.repo, 0) + 1
        if job.state != QUEUED:
            self._apart[job.id] = (job.repo, job.state)

    def ended(self, change: JobEnded) -> None:
        self._apart.pop(change.job, None)
        repo, state = change.event.repo, change.state
        assert repo is not None, "the event of a job names its repository"
        self._active[repo] -= 1
        counts = self._ended.get(repo)
        if counts is None:
            counts = self._ended[repo] = {}
        counts[state] = counts.get(state, 0) + 1

    def _dispatched(self, change: JobDispatched) -> None:
        self._apart[change.job] = (change.repo, "dispatched")

    def _ran(self, change: JobRan) -> None:
        repo, _ = self._apart[change.job]
        self._apart[change.job] = (repo, "running")

    def _waits(
        self, change: JobWaits | JobRequeued | JobAnswered | JobApproved
    ) -> None:
        if change.state == QUEUED:
            self._apart.pop(change.job, None)
            return
        repo = change.event.repo
        assert repo is not None, "the event of a job names its repository"
        self._apart[change.job] = (repo, change.state)

    def _forgotten(self, change: JobsForgotten) -> None:
        for gone in change.jobs:
            counts = self._ended[gone.repo]
            counts[gone.state] -= 1
            if not counts[gone.state]:
                del counts[gone.state]

    # -- questions -------------------------------------------------------------------

    @property
    def active(self) -> int:
        """Jobs that have not ended."""
        return sum(self._active.values())

    @property
    def busy(self) -> tuple[str, ...]:
        """The repositories of those."""
        return tuple(repo for repo, count in self._active.items() if count)

    @property
    def reserved(self) -> list[str]:
        """The jobs that are dispatched or running."""
        return [job for job, (_, state) in self._apart.items() if state in RESERVED]

    def those(self, state: State) -> list[str]:
        """The jobs in a state that is neither `queued` nor an end, newest first."""
        apart = self._apart.items()
        return sorted((job for job, (_, is_) in apart if is_ == state), reverse=True)

    def by_state(self) -> dict[State, int]:
        """How many jobs there are in each state that any job is in."""
        counts = Counter({QUEUED: self.active - len(self._apart)})
        counts.update(state for _, state in self._apart.values())
        for ended in self._ended.values():
            counts.update(ended)
        return {state: count for state, count in counts.items() if count}

    def of_repository(self, repo: str) -> dict[State, int]:
        """The same for the jobs of one repository."""
        counts = Counter(
            state for where, state in self._apart.values() if where == repo
        )
        counts[QUEUED] = self._active.get(repo, 0) - counts.total()
        counts.update(self._ended.get(repo, {}))
        return {state: count for state, count in counts.items() if count}

    def attention_of(self, repo: str) -> int:
        """How many of its jobs need a person."""
        return attention_in(self._ended.get(repo, {}))

    def running_of(self, repo: str) -> list[str]:
        """Its jobs that are dispatched or running."""
        apart = self._apart.items()
        return sorted(
            job for job, (where, state) in apart if where == repo and state in RESERVED
        )

    def active_of(self, repo: str) -> int:
        """How many of its jobs have not ended."""
        return self._active.get(repo, 0)

    def waiting_and_running(self) -> dict[str, tuple[int, int]]:
        """How many jobs wait and run, by repository; those without any are left out."""
        running = Counter(
            repo for repo, state in self._apart.values() if state in RESERVED
        )
        return {
            repo: (count - running[repo], running[repo])
            for repo, count in self._active.items()
            if count
        }
