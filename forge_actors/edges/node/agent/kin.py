"""Which processes belong to which job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.tree import Process, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forge_actors.edges.node.agent.jobs import Job

#: Most pids that the quick check looks at, and the oldest job it is good for, seconds:
#: pids are given out in a circle, which takes longer than this to close.
_QUICK_PIDS = 64
_QUICK_AGE = 1.0


def surely_gone(job: Job, leaders: Mapping[int, Job], newest: int, now: float) -> bool:
    """Whether a job whose leader is reaped left nothing; False means "look closely".

    `newest` is the pid that was given out last, read after the leader was reaped. Runs
    once for every job, so it does not read all of /proc. What a job leaves behind
    is in its group or has lost its parent, and then it is a child of ours with a pid
    given out after the leader's. It stays our child, defunct at worst, until we reap
    it, and we do not reap while looking: nothing can slip through.
    """
    # Of one that was asked to stop, what others have started with its mark is told too.
    if job.ending != "exit" or tree.group_exists(job.pid):
        return False
    if job.order.cgroup is not None and job.order.cgroup.populated():
        return False
    if not tree.HAS_PROC:
        return True
    if not 0 <= newest - job.pid <= _QUICK_PIDS or now - job.began > _QUICK_AGE:
        return False
    for pid in range(job.pid + 1, newest + 1):
        if pid not in leaders and tree.is_child(pid):
            return False
    return True


class Kept:
    """What outlives its job, since it may or cannot be ended: no other job's own."""

    def __init__(self) -> None:
        self._marks: set[tree.Mark] = set()
        self._processes: set[tuple[int, int]] = set()

    def keep(self, job: Job, processes: Iterable[Process]) -> None:
        # Only what still lives, so that this does not grow with every such job.
        self._processes = {
            (pid, start)
            for pid, start in self._processes
            if tree.start_ticks(pid) == start
        }
        self._marks &= {tree.mark_of(pid) for pid, _ in self._processes}
        self._marks.add(job.key)
        self._processes.update((p.pid, p.start) for p in processes)

    def __contains__(self, process: tuple[int, int, tree.Mark | None]) -> bool:
        pid, start, mark = process
        return mark in self._marks or (pid, start) in self._processes


class Kin:
    """Sorts one snapshot by job."""

    def __init__(
        self,
        jobs: Iterable[Job],
        leaders: Mapping[int, Job],
        kept: Kept,
    ) -> None:
        self._snapshot = Snapshot()
        self._jobs = list(jobs)
        self._leaders = leaders
        self._kept = kept
        self._own = os.getpid()
        self._marks = {job.key for job in self._jobs}
        self._groups = {job.pid for job in self._jobs if not job.group_gone}

    def members(self, job: Job) -> list[Process]:
        """What is alive of the job's tree."""
        if not tree.HAS_PROC:
            return _group_as_process(job)
        snapshot = self._snapshot
        roots = []
        group_seen = False
        for process in snapshot.processes.values():
            # Most processes of a machine are older than the job: no look at those.
            if process.start < job.start or process.pid == self._own:
                continue
            if self._leaders.get(process.pid, job) is not job:
                continue
            if not job.group_gone and job.pid in (process.session, process.group):
                group_seen = True
                roots.append(process)
            elif snapshot.mark(process.pid) == job.key or self._is_stray_of(
                process, job
            ):
                roots.append(process)
        # The number of a group is not given out again while a process is in it. From
        # the first time it is seen empty it proves nothing.
        if job.status is not None and not group_seen:
            job.group_gone = True
        if job.order.cgroup is not None:
            roots += filter(None, map(self._process, job.order.cgroup.pids()))
        return snapshot.with_descendants(roots)

    def _process(self, pid: int) -> Process | None:
        """Also one that is younger than the snapshot."""
        return self._snapshot.processes.get(pid) or tree.read_process(pid)

    def _is_stray_of(self, process: Process, job: Job) -> bool:
        """An orphan with no evidence ends with the last job that can have started it.

        It emptied its environment, left its session and lost its parent, so it could be
        of any job that ran when it began. To end it with the first of them could hit
        the running work of another; to never end it would leak.
        """
        if process.parent != self._own or process.session in self._groups:
            return False
        mark = self._snapshot.mark(process.pid)
        if mark in self._marks or (process.pid, process.start, mark) in self._kept:
            return False
        return all(other is job or other.start > process.start for other in self._jobs)


def _group_as_process(job: Job) -> list[Process]:
    if not tree.group_exists(job.pid):
        return []
    return [Process(-job.pid, 0, job.pid, job.pid, job.start, False, "group")]
