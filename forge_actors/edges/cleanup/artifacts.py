"""The class `artifacts`: files that were collected from jobs, in a folder a job."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import (
    Candidate,
    Policy,
    Verdict,
    decide,
    next_due,
    policy_of,
)
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

#: The folder of a home with the files that were collected, below the ids of jobs.
ARTIFACTS = "artifacts"
#: What is named like this may be of a job.
JOB_ID = re.compile(r"[0-9a-z]{1,64}")
#: Folders that one visit decides about.
MOST = 100_000
#: Folders of which it is asked at once whose they are.
ASKED = 1000


class ArtifactCleaner:
    """Removes what was collected of jobs that are gone, old, or take too much."""

    name: CleanClass = "artifacts"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        with visiting(self.name, desk) as visit, visit.folder(ARTIFACTS) as folder:
            if folder is None:
                return ClassReport(self.name, size=0)
            return _Artifacts(visit, folder, policy_of(desk.rules, self.name)).run()


class _Artifacts:
    def __init__(self, visit: Visit, folder: Folder, policy: Policy) -> None:
        self._visit = visit
        self._desk = visit.desk
        self._folder = folder
        self._policy = policy
        self._entries: dict[str, Entry] = {}
        #: Jobs whose files others are to have.
        self._awaited: set[str] = set()

    def run(self) -> ClassReport:
        report = ClassReport(self._visit.name)
        self._look()
        ended = self._ended()
        # What is too old goes before anything is measured, which may take long.
        verdicts = self._by_age(ended)
        self._remove(verdicts)
        report.due_at = next_due(verdicts)
        sizes = self._sizes()
        if sizes is None:
            return report
        policy = Policy(bytes=self._policy.bytes, grace=self._policy.grace)
        if self._policy.on:
            theirs = [
                self._of_job(job, at, sizes[job])
                for job, at in ended.items()
                if job in sizes
            ]
            self._remove(decide(theirs, policy, self._desk.request.now))
        if not self._desk.request.dry_run:
            sizes = {name: sizes[name] for name in self._entries}
        report.size = sum(sizes.values())
        return report

    def _look(self) -> None:
        """See what there is, up to a number of folders."""
        for entry in self._folder.entries():
            if not entry.is_folder or JOB_ID.fullmatch(entry.name) is None:
                what = self._visit.told(self._folder, entry.name)
                self._visit.skip(what, "no folder of ours has such a name")
                continue
            self._entries[entry.name] = entry
            if len(self._entries) == MOST:
                break

    def _ended(self) -> dict[str, float | None]:
        """Those that are of jobs of the store, and when these ended."""
        wanted = sorted(self._entries)
        found: dict[str, float | None] = {}
        for start in range(0, len(wanted), ASKED):
            asked = json.dumps(wanted[start : start + ASKED])
            found.update(self._desk.read("known_jobs", asked))
            awaited = self._desk.read("awaited_inputs", asked)
            self._awaited.update(job for (job,) in awaited)
        return found

    def _of_job(self, job: str, ended_at: float | None, size: int = 0) -> Candidate:
        if ended_at is None:
            now = self._desk.request.now
            return Candidate(job, now, size, protected="its job has not ended")
        takes = "a job that has not ended takes them" if job in self._awaited else None
        return Candidate(job, ended_at, size, protected=takes)

    def _by_age(self, ended: dict[str, float | None]) -> list[Verdict]:
        now, policy = self._desk.request.now, self._policy
        # Of a job that is gone they go as soon as they are past the grace.
        lost = [
            Candidate(name, entry.changed)
            for name, entry in self._entries.items()
            if name not in ended
        ]
        alone = Policy(policy.on, age=policy.grace, grace=policy.grace)
        told = [
            verdict._replace(reason=f"no job has them; {verdict.reason}")
            for verdict in decide(lost, alone, now)
        ]
        theirs = [self._of_job(job, at) for job, at in ended.items()]
        return told + decide(theirs, structs.replace(policy, bytes=None), now)

    def _remove(self, verdicts: list[Verdict]) -> None:
        """Remove what goes. In a dry run it counts as gone from then on too."""
        for verdict in verdicts:
            if not self._desk.may_go_on():
                return
            self._desk.scanned()
            entry = self._entries[verdict.candidate.name]
            if verdict.goes and self._visit.remove(self._folder, entry, verdict.reason):
                del self._entries[entry.name]

    def _sizes(self) -> dict[str, int] | None:
        """How much each takes that is left; None if nobody can say of all of them."""
        sizes: dict[str, int] = {}
        for name, entry in self._entries.items():
            if not self._desk.may_go_on():
                return None
            sizes[name] = self._visit.measure.tree(self._folder, entry).bytes
        return sizes if len(sizes) < MOST else None
