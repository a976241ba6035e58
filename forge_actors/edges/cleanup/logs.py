"""The class `logs`: output in the home that belongs to no job.

A crash between the two halves of a removal leaves such files, and so does a restore of
an older store. Only what the store surely does not know goes. The notes of node agents
beside it are left to those who need them, and are deleted by them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import Candidate, decide, policy_of
from forge_actors.edges.cleanup.jobs import LOG_NAME, LOGS, LOOK_EVERY
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

#: Files of which it is asked at once whose they are.
ASKED = 10_000


class LogCleaner:
    """Removes files of output without a job, once they are old enough."""

    name: CleanClass = "logs"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`. What they take is counted with the output of all jobs."""
        policy = policy_of(desk.rules, self.name)
        with visiting(self.name, desk) as visit, visit.folder(LOGS) as logs:
            if logs is not None and policy.on and policy.age is not None:
                _clean(visit, logs, policy, policy.age)
        return ClassReport(self.name)


def _clean(visit: Visit, logs: Folder, policy: Policy, age: float) -> None:
    desk = visit.desk
    # Of younger ones nobody has to know whose they are.
    until = desk.request.now - max(age, policy.grace)
    found: list[Entry] = []
    for number, entry in enumerate(logs.entries()):
        if number % LOOK_EVERY == 0 and not desk.may_go_on():
            return
        if entry.is_folder or LOG_NAME.fullmatch(entry.name) is None:
            visit.skip(visit.told(logs, entry.name), "no file of ours has such a name")
        elif entry.changed <= until:
            found.append(entry)
        if len(found) == ASKED:
            _remove(visit, logs, policy, found)
            found = []
    _remove(visit, logs, policy, found)


def _remove(visit: Visit, logs: Folder, policy: Policy, found: list[Entry]) -> None:
    """Remove what of these belongs to no job."""
    desk = visit.desk
    jobs = {_job(entry) for entry in found}
    known = {job for job, _ in desk.read("known_jobs", json.dumps(sorted(jobs)))}
    lost = {entry.name: entry for entry in found if _job(entry) not in known}
    candidates = [Candidate(entry.name, entry.changed) for entry in lost.values()]
    for verdict in decide(candidates, policy, desk.request.now):
        if not desk.may_go_on():
            return
        desk.scanned()
        if verdict.goes:
            entry = lost[verdict.candidate.name]
            visit.remove(logs, entry, f"no job has it; {verdict.reason}", entry.bytes)


def _job(entry: Entry) -> str:
    return entry.name.partition(".")[0]
