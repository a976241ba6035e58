"""The class `logs`: output in the home that belongs to no job.

A crash between the two halves of a removal leaves such files, and so does a restore of
an older store. Only what the store surely does not know goes. The notes of node agents
beside it are left to those who need them, and are deleted by them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import Candidate, decide, next_due, policy_of
from forge_actors.edges.cleanup.jobs import LOG_NAME, LOGS, LOOK_EVERY
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

#: Files of which it is asked at once whose they are.
ASKED = 1000


class LogCleaner:
    """Removes files of output without a job, once they are old enough."""

    name: CleanClass = "logs"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        report = ClassReport(self.name, size=0)
        policy = policy_of(desk.rules, self.name)
        with visiting(self.name, desk) as visit, visit.folder(LOGS) as logs:
            if logs is not None:
                _Logs(visit, logs, policy, report).run()
        return report


class _Logs:
    def __init__(
        self, visit: Visit, logs: Folder, policy: Policy, report: ClassReport
    ) -> None:
        self._visit = visit
        self._desk = visit.desk
        self._logs = logs
        self._policy = policy
        self._report = report
        #: Bytes of what belongs to no job and stays.
        self._kept = 0

    def run(self) -> None:
        found: list[Entry] = []
        for number, entry in enumerate(self._logs.entries()):
            if number % LOOK_EVERY == 0 and not self._desk.may_go_on():
                self._report.size = None
                return
            if entry.is_folder or LOG_NAME.fullmatch(entry.name) is None:
                what = self._visit.told(self._logs, entry.name)
                self._visit.skip(what, "no file of ours has such a name")
                continue
            found.append(entry)
            if len(found) == ASKED:
                self._remove(found)
                found = []
        self._remove(found)
        self._report.size = self._kept

    def _remove(self, found: list[Entry]) -> None:
        """Remove what of these belongs to no job and is old."""
        jobs = {_job(entry) for entry in found}
        rows = self._desk.read("known_jobs", json.dumps(sorted(jobs)))
        known = {job for job, _ in rows}
        lost = {entry.name: entry for entry in found if _job(entry) not in known}
        self._desk.scanned(len(lost))
        candidates = [
            Candidate(entry.name, entry.changed, entry.bytes) for entry in lost.values()
        ]
        verdicts = decide(candidates, self._policy, self._desk.request.now)
        for verdict in verdicts:
            entry = lost[verdict.candidate.name]
            reason = f"no job has it; {verdict.reason}"
            gone = verdict.goes and self._visit.remove(
                self._logs, entry, reason, entry.bytes
            )
            if not gone or self._desk.request.dry_run:
                self._kept += entry.bytes
        due = next_due(verdicts)
        if due is not None:
            known_due = self._report.due_at
            self._report.due_at = due if known_due is None else min(due, known_due)


def _job(entry: Entry) -> str:
    return entry.name.partition(".")[0]
