"""The class `preserved`: what was saved of removed worktrees, after a long time.

Nothing goes that is the only copy of work, whatever its age, unless the settings say
so.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport, Removal, Skip
from forge_actors.domain.removal import may_forget
from forge_actors.domain.retention import Candidate, decide, next_due, policy_of
from forge_actors.edges.cleanup.folders import Folder, Unsafe, opened_home
from forge_actors.edges.cleanup.walking import ASIDE, Remover
from forge_actors.edges.cleanup.worktrees import commits, receipts
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed
from forge_actors.edges.cleanup.worktrees.merged import is_merged, mainlines

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.removal import Receipt


class PreservedCleaner:
    """Removes archives, bundles, refs of ours and receipts that nobody needs."""

    name: CleanClass = "preserved"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        with opened_home(desk.home) as home:
            around = home.folder(receipts.PRESERVED)
            if around is None:
                return ClassReport(self.name)
            with around:
                return self._visit(desk, home, around)

    def _visit(self, desk: Desk, home: Folder, around: Folder) -> ClassReport:
        there = {row[0] for row in desk.read("worktrees_to_clean")}
        found: dict[str, Receipt] = {}
        candidates = []
        size = 0
        for entry in around.entries():
            try:
                store = around.folder(entry.name)
            except (Unsafe, OSError) as problem:
                desk.failed(entry.name, str(problem))
                continue
            if store is None:
                continue
            with store:
                taken = sum(each.bytes for each in store.entries())
                receipt = receipts.read(store)
            size += taken
            if receipt is None:
                desk.skipped(Skip(self.name, entry.name, "its receipt cannot be read"))
            elif receipt.closed_at is not None and entry.name not in there:
                found[entry.name] = receipt
                at = receipt.closed_at
                candidates.append(Candidate(entry.name, at, taken, receipt.repo))
        policy = policy_of(desk.rules, self.name)
        verdicts = decide(candidates, policy, desk.request.now)
        for verdict in verdicts:
            if verdict.goes and desk.may_go_on():
                desk.scanned()
                name = verdict.candidate.name
                size -= self._forget(
                    desk, home, around, name, found[name], verdict.reason
                )
        return ClassReport(self.name, size=size, due_at=next_due(verdicts))

    def _forget(
        self,
        desk: Desk,
        home: Folder,
        around: Folder,
        name: str,
        receipt: Receipt,
        reason: str,
    ) -> int:
        git = _repository(desk, receipt)
        unmerged_too = bool(desk.rules.get(self.name, {}).get("unmerged", False))
        try:
            elsewhere = git is None or _is_elsewhere(git, receipt)
            stays = may_forget(receipt, elsewhere=elsewhere, unmerged_too=unmerged_too)
            if stays is not None:
                desk.skipped(Skip(self.name, name, stays))
                return 0
            if desk.request.dry_run:
                desk.removed(Removal(self.name, name, reason))
                return 0
            if git is not None:
                commits.forget(git, receipt)
        except GitFailed as problem:
            desk.failed(name, str(problem))
            return 0
        entry = around.entry(name)
        if entry is None:
            return 0
        with home.make_folder(ASIDE) as aside:
            done = Remover(aside, desk.may_go_on).remove(around, entry)
        if done.gone:
            desk.removed(Removal(self.name, name, reason, done.bytes))
        else:
            desk.failed(name, done.reason)
        return done.bytes


def _repository(desk: Desk, receipt: Receipt) -> Git | None:
    """The repository that keeps refs for it; None if it is gone."""
    for _, common_dir, device, inode in desk.read("repository_place", receipt.repo):
        try:
            status = os.stat(common_dir)
        except OSError:
            return None
        if (status.st_dev, status.st_ino) == (device, inode):
            return Git(common_dir)
    return None


def _is_elsewhere(git: Git, receipt: Receipt) -> bool:
    """Whether every commit that is kept is on another ref by now, or is merged."""
    if receipt.bundle is not None:
        return False
    tips = {kept.commit for kept in receipt.refs}
    left = commits.tips_without_ref(git, tips & commits.existing(git, tips))
    into = mainlines(git, None)
    return all(any(is_merged(git, tip, main) for main in into) for tip in left)
