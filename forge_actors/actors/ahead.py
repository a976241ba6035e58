"""Ahead: the next jobs wait at the launcher while the last ones run, if all are short.

Between the end of one job and the start of the next lie two messages, a commit and all
that is to be done for the first. While jobs take longer than that it does not matter.
Where they are over sooner, workers would stand idle for most of the time. So the next
ones are dispatched, and given to the launcher, while all workers are taken, and begin
there when there is room. Their tokens they get when the end of another is recorded, and
until then nothing is told of them: nobody ever sees more at work than a limit allows.

Nothing waits so for long: what has not begun after a moment is withdrawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.mailbox import told
from forge_actors.actors.repository_messages import Withdraw
from forge_actors.domain.capacity import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from forge_actors.actors.supervisor_messages import RepositoryMailbox
    from forge_actors.actors.tokens import Grant, Grants
    from forge_actors.domain.line import Line

#: Seconds that a job takes at most to be a short one.
SHORT_SECONDS = 0.05
#: So many have been short, one after the other, before the next wait for them.
SHORT_IN_TURN = 4
#: Seconds that a job waits so at most.
WAIT_SECONDS = 0.25
#: Jobs that wait so for each worker: the last of them is to begin within that time, if
#: those before it are short.
FOR_EACH = 4
#: Jobs that are known to need something before they can be given away.
MAX_UNFIT = 1000
#: Seconds after which one has certainly begun that was withdrawn and is still here:
#: those before it are kept by somebody who does not record their end.
BEGUN_SECONDS = 5.0


class Ahead:
    """Which jobs are ahead, and for how long. Only the supervisor's task holds one."""

    def __init__(
        self,
        grants: Grants,
        line: Line,
        children: Mapping[str, RepositoryMailbox],
        ring: Callable[[], object],
    ) -> None:
        """`ring` is called when `look` is due."""
        self._grants = grants
        self._capacity = grants.capacity
        self._line = line
        self._children = children
        self._ring = ring
        #: Of repositories: the best priority of jobs that the end of others may let
        #: start. How many there are of each.
        self._rivals: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._short = 0
        #: Jobs for which something has to be made before they can be given away.
        self._unfit: set[str] = set()
        self.alarm = Alarm(ring, math.inf)

    def rival(self, repo: str, priority: int | None) -> None:
        """The best priority of those in a repository that an end may let start.

        They come before what is less urgent, though they are not in line yet.
        """
        before = self._rivals.get(repo)
        if before == priority:
            return
        if before is not None:
            del self._rivals[repo]
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if priority is not None:
            self._rivals[repo] = priority
            self._counts[priority] = self._counts.get(priority, 0) + 1

    def returned(self, grant: Grant) -> None:
        """A grant came back: was what it was used for short?"""
        if grant.job is not None:
            if grant.prepared and grant.room is not None:
                if len(self._unfit) >= MAX_UNFIT:
                    self._unfit.clear()
                self._unfit.add(grant.job)
            else:
                self._unfit.discard(grant.job)
        if grant.ran is not None:
            self._short = self._short + 1 if grant.ran < SHORT_SECONDS else 0

    def issue(self, now: float) -> Iterator[Grant]:
        """Grants for those that may wait now; each is to be given before the next."""
        if self._capacity.pressure is not None:
            self.withdraw()
            return
        used = self._capacity.used(WORKERS)
        # Where more are in use than there may be now, the next ones have to wait.
        if self._short < SHORT_IN_TURN or used != self._capacity.limit(WORKERS):
            return
        if self._grants.preparing:
            # The launcher would have room where there is none.
            self._grants.once_launched = self._ring
            return
        most = min(self._capacity.limits.ahead, FOR_EACH * used)
        while len(self._grants.ahead) < most:
            offer = self._line.next_ahead(self._capacity, now)
            if offer is None or offer.job in self._unfit:
                return
            if any(priority < offer.priority for priority in self._counts):
                return
            at = trio.current_time()
            grant = self._grants.issue_ahead(offer, at)
            if at + WAIT_SECONDS < self.alarm.due:
                self.alarm.set(at + WAIT_SECONDS)
            yield grant

    def look(self) -> None:
        """Withdraw those that have waited for too long."""
        now = trio.current_time()
        for grant in tuple(self._grants.ahead.values()):
            assert grant.issued_at is not None, "it is ahead"
            if now >= grant.issued_at + BEGUN_SECONDS:
                self._grants.fill(grant)
            elif now >= grant.issued_at + WAIT_SECONDS:
                self._short = 0  # they are not, whatever the last ones were
                self._withdraw_one(grant)
        if self._grants.ahead:
            self.alarm.set(now + WAIT_SECONDS)

    def withdraw(self) -> None:
        """Let none of them begin that has not."""
        for grant in self._grants.ahead.values():
            self._withdraw_one(grant)

    def _withdraw_one(self, grant: Grant) -> None:
        child = self._children.get(grant.repo)
        if not grant.withdrawn and child is not None and grant.job is not None:
            told(child, Withdraw(grant.job, grant.attempt))
        grant.withdrawn = True
