"""The class `artifacts`: files that were collected from jobs, in a folder a job."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

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
    from collections.abc import Iterable

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

    def run(self) -> ClassReport:
        report = ClassReport(self._visit.name)
        entries = self._entries()
        sizes: dict[str, int] = {}
        whole = len(entries) < MOST
        for name, entry in entries.items():
            if not self._desk.may_go_on():
                return report  # what is not measured cannot be compared
            self._desk.scanned()
            measured = self._visit.measure.tree(self._folder, entry)
            sizes[name] = measured.bytes
            whole = whole and measured.whole
        verdicts = self._decided(entries, sizes)
        left = sum(sizes.values())
        for verdict in verdicts:
            name = verdict.candidate.name
            if verdict.goes and self._desk.may_go_on():
                reason = verdict.reason
                gone = self._visit.remove(
                    self._folder, entries[name], reason, sizes[name]
                )
                left -= sizes[name] if gone and not self._desk.request.dry_run else 0
        report.size = left if whole else None
        report.due_at = next_due(verdicts)
        return report

    def _entries(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for entry in self._folder.entries():
            if not entry.is_folder or JOB_ID.fullmatch(entry.name) is None:
                what = self._visit.told(self._folder, entry.name)
                self._visit.skip(what, "no folder of ours has such a name")
                continue
            found[entry.name] = entry
            if len(found) == MOST:
                break
        return found

    def _decided(
        self, entries: dict[str, Entry], sizes: dict[str, int]
    ) -> list[Verdict]:
        ended = self._ended(entries)
        theirs, lost = [], []
        for name, entry in entries.items():
            if name not in ended:
                # Of a job that is gone they go as soon as they are past the grace.
                lost.append(Candidate(name, entry.changed, sizes[name]))
                continue
            at = ended[name]
            protected = "its job has not ended" if at is None else None
            when = self._desk.request.now if at is None else at
            theirs.append(Candidate(name, when, sizes[name], protected=protected))
        now, policy = self._desk.request.now, self._policy
        alone = Policy(policy.on, age=policy.grace, grace=policy.grace)
        told = [
            verdict._replace(reason=f"no job has them; {verdict.reason}")
            for verdict in decide(lost, alone, now)
        ]
        return told + decide(theirs, policy, now)

    def _ended(self, names: Iterable[str]) -> dict[str, float | None]:
        """Of these, those that are jobs of the store, and when they ended."""
        wanted = sorted(names)
        found: dict[str, float | None] = {}
        for start in range(0, len(wanted), ASKED):
            asked = json.dumps(wanted[start : start + ASKED])
            found.update(self._desk.read("known_jobs", asked))
        return found
