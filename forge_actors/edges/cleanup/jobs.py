"""The class `jobs`: records of ended jobs, and the output that is kept of them.

The owner of the store forgets a job first, then its output goes. What a crash leaves in
between belongs to no job, and is found by the class `logs`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.cleaning import ClassReport, Removal
from forge_actors.domain.retention import (
    JOB_GRACE,
    Besides,
    Candidate,
    Verdict,
    decide,
    next_due,
    policy_of,
    referred_to,
)
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

    #: Id, repository, end, and how many jobs of that ended later.
    Row = tuple[str, str, float, int]

#: The folder of a home with the output of jobs.
LOGS = "logs"
#: Jobs that one visit decides about, the oldest first.
PAGE = 10_000
#: Jobs that the owner is asked to forget at once.
ASKED = 500
#: Names between two looks at whether there is time left.
LOOK_EVERY = 1024

#: A cursor that goes on with the first job.
FIRST = "0.0 "
#: The name of a file with output: job, attempt, stream and what it is of that.
LOG_NAME = re.compile(
    r"([0-9a-z]{1,64})\.([0-9]{1,9})"
    r"\.(stdout|stderr|telemetry|effects|outputs)(\.tail|\.times)?"
)


class JobCleaner:
    """Forgets the oldest ended jobs, and removes their output."""

    name: CleanClass = "jobs"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        with visiting(self.name, desk) as visit, visit.folder(LOGS) as logs:
            if LOGS in visit.barred:
                # Without its record nobody would know whose output it is.
                return ClassReport(self.name)
            policy = policy_of(desk.rules, self.name)
            policy = structs.replace(policy, grace=max(policy.grace, JOB_GRACE))
            return _Jobs(visit, logs, policy).run(cursor)


class _Jobs:
    def __init__(self, visit: Visit, logs: Folder | None, policy: Policy) -> None:
        self._visit = visit
        self._desk = visit.desk
        self._logs = logs
        self._policy = policy
        self._freed = 0

    def run(self, cursor: str | None) -> ClassReport:
        report = ClassReport(self._visit.name)
        output = Output(self._logs, self._desk)
        # Without knowing all of it nobody can say that it is too much.
        report.size = output.total if output.whole else None
        if not self._policy.on:
            return report
        rows = self._page(cursor, output)
        self._desk.scanned(len(rows))
        verdicts = self._decided(rows, output)
        going = [each for each in verdicts if each.goes]
        if not self._remove(going, output):
            report.cursor = cursor or FIRST
        elif len(rows) == PAGE:
            report.cursor = f"{rows[-1][2]!r} {rows[-1][0]}"
        if report.size is not None:
            report.size -= self._freed
        report.due_at = self._due(verdicts)
        return report

    def _page(self, cursor: str | None, output: Output) -> list[Row]:
        """Jobs that may have to go, the oldest first."""
        policy, now = self._policy, self._desk.request.now
        return self._desk.read(
            "oldest_ended",
            policy.count,
            None if policy.age is None else now - policy.age,
            policy.bytes is not None and output.total > policy.bytes,
            *_place(cursor),
            PAGE,
        )

    def _decided(self, rows: list[Row], output: Output) -> list[Verdict]:
        if not rows:
            return []
        output.find({row[0] for row in rows})
        references = self._desk.read("job_references", json.dumps([r[0] for r in rows]))
        candidates: list[Candidate] = []
        newer: dict[str, int] = {}
        for job, repo, ended_at, later in rows:
            candidates.append(Candidate(job, ended_at, output.size_of(job), repo))
            newer[repo] = min(later, newer.get(repo, later))
        policy = self._policy
        if not output.whole:
            policy = structs.replace(policy, bytes=None)
        besides = Besides(newer, output.total - sum(each.bytes for each in candidates))
        verdicts = decide(candidates, policy, self._desk.request.now, besides)
        return referred_to(verdicts, references)

    def _due(self, verdicts: list[Verdict]) -> float | None:
        """When the next one will be old enough."""
        policy = self._policy
        due = next_due(verdicts)
        if policy.age is None or not policy.on:
            return due
        [(oldest,)] = self._desk.read("oldest_end", self._desk.request.now - policy.age)
        if oldest is not None:
            aged = max(oldest + policy.age, oldest + policy.grace)
            due = aged if due is None else min(due, aged)
        return due

    def _remove(self, going: list[Verdict], output: Output) -> bool:
        """Let these go, as many as there is time for; whether there was enough."""
        # One that another was made from can go only after that, which is newer.
        going = sorted(going, key=lambda each: each.candidate.name, reverse=True)
        for start in range(0, len(going), ASKED):
            if not self._desk.may_go_on():
                return False
            piece = {each.candidate.name: each for each in going[start : start + ASKED]}
            gone: Collection[str] = piece
            if not self._desk.request.dry_run:
                gone = set(self._desk.forget_jobs(list(piece)))
            for job, verdict in piece.items():
                if job in gone:
                    self._remove_output(job, verdict, output)
                else:
                    self._visit.skip(f"job {job}", "the service needs it still")
        return True

    def _remove_output(self, job: str, verdict: Verdict, output: Output) -> None:
        size = 0
        for entry in output.of(job):
            assert self._logs is not None, "the entry was found in it"
            if self._visit.remover is None:
                size += entry.bytes
                continue
            removed = self._visit.remover.remove(self._logs, entry)
            size += removed.bytes
            for left in removed.left:
                self._visit.skip(left.path, left.reason)
        if self._visit.remover is not None:
            self._freed += size
        name = self._visit.name
        self._desk.removed(Removal(name, f"job {job}", verdict.reason, size))


class Output:
    """The output that is kept of jobs: how much in all, and the files of some jobs."""

    def __init__(self, logs: Folder | None, desk: Desk) -> None:
        self.total = 0
        self.whole = True
        self._logs = logs
        self._files: dict[str, list[Entry]] = {}
        for number, entry in enumerate(logs.entries() if logs else ()):
            if number % LOOK_EVERY == 0 and not desk.may_go_on():
                self.whole = False
                break
            self.total += entry.bytes

    def find(self, jobs: AbstractSet[str]) -> None:
        """Look for the files of these jobs."""

        def theirs(name: str) -> bool:
            return name.partition(".")[0] in jobs and bool(LOG_NAME.fullmatch(name))

        for entry in self._logs.entries(theirs) if self._logs else ():
            if not entry.is_folder:
                job = entry.name.partition(".")[0]
                self._files.setdefault(job, []).append(entry)

    def of(self, job: str) -> list[Entry]:
        return self._files.get(job, [])

    def size_of(self, job: str) -> int:
        return sum(entry.bytes for entry in self.of(job))


def _place(cursor: str | None) -> tuple[float, str]:
    """Behind which end, and which job of the same end, it goes on."""
    ended_at, _, job = (cursor or "").partition(" ")
    try:
        return float(ended_at), job
    except ValueError:
        return 0.0, ""
