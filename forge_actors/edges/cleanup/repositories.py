"""The class `repositories`: what removed repositories have left in the home."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import Candidate, decide, next_due, policy_of
from forge_actors.edges.cleanup.folders import Unsafe
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit


class RepositoryCleaner:
    """Removes the empty folders that removed repositories have in other folders.

    What is in such a folder is the business of the class whose folder it is: that one
    knows whether it is safe elsewhere. So nothing is removed here that holds anything.
    """

    name: CleanClass = "repositories"

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = folders

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        report = ClassReport(self.name)
        policy = policy_of(desk.rules, self.name)
        with visiting(self.name, desk) as visit:
            removed_at: dict[str, float] = dict(desk.read("removed_repositories"))
            for name in self._folders:
                with visit.folder(name) as folder:
                    if folder is not None:
                        _clean(visit, folder, removed_at, policy, report)
        return report


def _clean(
    visit: Visit,
    folder: Folder,
    removed_at: dict[str, float],
    policy: Policy,
    report: ClassReport,
) -> None:
    found: dict[str, Entry] = {}
    candidates = []
    for entry in folder.entries(removed_at.__contains__):
        if not entry.is_folder:
            continue
        visit.desk.scanned()
        found[entry.name] = entry
        at = max(entry.changed, removed_at[entry.name])
        kept = None if _is_empty(folder, entry) else "something is kept in it"
        candidates.append(Candidate(entry.name, at, entry.bytes, protected=kept))
    verdicts = decide(candidates, policy, visit.desk.request.now)
    for verdict in verdicts:
        name = verdict.candidate.name
        if verdict.goes and visit.desk.may_go_on():
            reason = f"its repository was removed; {verdict.reason}"
            visit.remove_empty(folder, found[name], reason)
        elif verdict.candidate.protected is not None:
            visit.skip(visit.told(folder, name), verdict.reason)
    dues = (next_due(verdicts), report.due_at)
    report.due_at = min((due for due in dues if due is not None), default=None)


def _is_empty(parent: Folder, entry: Entry) -> bool:
    with suppress(OSError, Unsafe):
        folder = parent.folder(entry.name, entry.identity)
        if folder is not None:
            with folder:
                return next(folder.entries(), None) is None
    return False
