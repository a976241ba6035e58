"""The class `backups`: stores that were set aside, or replaced by a restore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import Candidate, decide, next_due, policy_of
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

#: A store with the moment at which it was set aside, and the files that belong to it.
_NAME = re.compile(r"(store-[0-9TZ]{8,20}(?:-[0-9]{1,4})?\.sqlite)(-wal|-shm)?")


class BackupCleaner:
    """Removes the oldest of them, and never the newest one."""

    name: CleanClass = "backups"

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = folders

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        with visiting(self.name, desk) as visit:
            backups = _Backups(visit, policy_of(desk.rules, self.name))
            for name in self._folders:
                with visit.folder(name) as folder:
                    if folder is not None:
                        backups.clean(folder)
            return backups.report


class _Backups:
    def __init__(self, visit: Visit, policy: Policy) -> None:
        self._visit = visit
        self._policy = policy
        self.report = ClassReport(visit.name, size=0)

    def clean(self, folder: Folder) -> None:
        """Remove what may go of one folder."""
        desk = self._visit.desk
        stores: dict[str, list[Entry]] = {}
        for entry in folder.entries():
            name = _NAME.fullmatch(entry.name)
            if name is None or not entry.is_file:
                self._visit.skip(
                    self._visit.told(folder, entry.name),
                    "no store that we have set aside has such a name",
                )
            else:
                stores.setdefault(name[1], []).append(entry)
            self._count(self._visit.measure.tree(folder, entry).bytes)
        moments = {
            name: max(entry.changed for entry in files)
            for name, files in stores.items()
        }
        newest = max(stores, key=lambda name: (moments[name], name), default=None)
        candidates = [
            Candidate(
                name,
                moments[name],
                sum(entry.bytes for entry in files),
                protected="it is the newest one" if name == newest else None,
            )
            for name, files in stores.items()
        ]
        verdicts = decide(candidates, self._policy, desk.request.now)
        for verdict in verdicts:
            desk.scanned()
            if verdict.goes and desk.may_go_on():
                for entry in stores[verdict.candidate.name]:
                    if self._visit.remove(folder, entry, verdict.reason, entry.bytes):
                        self._count(0 if desk.request.dry_run else -entry.bytes)
        dues = (next_due(verdicts), self.report.due_at)
        self.report.due_at = min((due for due in dues if due is not None), default=None)

    def _count(self, size: int) -> None:
        assert self.report.size is not None, "it begins with nothing"
        self.report.size += size
