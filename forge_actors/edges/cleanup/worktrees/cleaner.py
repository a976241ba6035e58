"""The class `worktrees`: removes those whose time has come, or that a person named."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from forge_actors.domain.cleaning import ClassReport, Removal, Skip
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.removal import ARCHIVE_BYTES, DISPOSABLE, Limits, Use
from forge_actors.domain.retention import Candidate, decide, next_due, policy_of
from forge_actors.domain.worktrees import Worktree
from forge_actors.edges.cleanup.folders import Unsafe, opened_home
from forge_actors.edges.cleanup.worktrees import receipts, removal
from forge_actors.edges.cleanup.worktrees.around import (
    WORKTREES,
    names_in,
    size_of_all,
    why_left,
)
from forge_actors.edges.cleanup.worktrees.occupants import occupants
from forge_actors.edges.cleanup.worktrees.place import BEHIND, spot_of
from forge_actors.edges.cleanup.worktrees.survey import size_of, survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.removal import Receipt
    from forge_actors.edges.cleanup.folders import Folder

#: Seconds after which what had to stay is looked at again, unless a person asks for it.
AGAIN_AFTER = 3600.0
ASKED = "it was asked for"


class Found(NamedTuple):
    """A worktree as the store has it."""

    subject: removal.Subject
    repository: str
    #: None: its job was forgotten.
    job_state: str | None
    ended_at: float | None

    @property
    def worktree(self) -> Worktree:
        return self.subject.worktree


class DeskFacts:
    """What a removal has to be told, from the desk of the clean-up."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def use(self, worktree: Worktree, folders: tuple[str, ...]) -> Use:
        """See `Facts`."""
        rows = self._desk.read("worktree_users", worktree.id, worktree.path)
        return Use(rows[0][0] if rows else None, occupants(folders, worktree.id))

    def record(self, worktree: Worktree, step: str) -> None:
        """See `Facts`."""
        self._desk.record(worktree, step)

    def now(self) -> float:
        return time.time()


class WorktreeCleaner:
    """Saves what is in worktrees, and removes them."""

    name: CleanClass = "worktrees"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        found = {each.worktree.id: each for each in worktrees(desk)}
        with opened_home(desk.home) as home:
            report = self._visit(desk, home, found) if found else ClassReport(self.name)
            if not desk.request.worktrees:
                self._look_around(desk, home, report)
            return report

    def _visit(self, desk: Desk, home: Folder, found: dict[str, Found]) -> ClassReport:
        due_at = None
        if desk.request.worktrees:
            chosen = [(each, ASKED) for each in desk.request.worktrees if each in found]
        else:
            policy = policy_of(desk.rules, self.name)
            measured = policy.on and policy.bytes is not None
            candidates = [
                _candidate(home, each, measured=measured) for each in found.values()
            ]
            verdicts = decide(candidates, policy, desk.request.now)
            due_at = next_due(verdicts)
            chosen = [
                (each.candidate.name, each.reason) for each in verdicts if each.goes
            ]
            # A removal that ends each run before its end must not keep others waiting.
            chosen.sort(key=lambda each: _tried_at(home, found[each[0]].worktree))
        for worktree, reason in chosen:
            if not desk.may_go_on():
                break
            desk.scanned()
            self._remove(desk, home, found[worktree], reason)
        return ClassReport(self.name, due_at=due_at)

    def _look_around(self, desk: Desk, home: Folder, report: ClassReport) -> None:
        """Tell of what lies among them and is none, and count what all that takes."""
        try:
            around = home.folder(WORKTREES)
            if around is None:
                report.size = 0
                return
            with around:
                names = names_in(around, desk.may_go_on)
                # Read after it: the record of one is there before its folder.
                known = {each.worktree.path for each in worktrees(desk)}
                for path in sorted(names):
                    if path.removesuffix(BEHIND) not in known:
                        desk.skipped(Skip(self.name, path, why_left(path)))
                report.size = size_of_all(around, desk.may_go_on)
        except (Unsafe, OSError) as problem:
            desk.failed(WORKTREES, str(problem))

    def _remove(self, desk: Desk, home: Folder, found: Found, reason: str) -> None:
        worktree = found.worktree
        asked = bool(desk.request.worktrees)
        stays = f"a person keeps it: forge-actors worktree unkeep {worktree.id}"
        if worktree.kept and not (asked and desk.request.force):
            desk.skipped(Skip(self.name, worktree.id, stays))
            return
        limits = limits_of(desk.rules)
        facts = DeskFacts(desk)
        if desk.request.dry_run:
            told = survey(home, found.subject, limits, facts, force=desk.request.force)
            if told.stays is None:
                size = told.size
                desk.removed(Removal(self.name, worktree.id, reason, size))
            else:
                desk.skipped(Skip(self.name, worktree.id, told.stays))
            return
        if not asked and (problem := _tried(home, worktree, desk.request.now)):
            desk.skipped(Skip(self.name, worktree.id, problem))
            return
        outcome = removal.Removal(
            home,
            found.subject,
            limits,
            facts,
            force=desk.request.force,
            may_go_on=desk.may_go_on,
        ).run()
        if not outcome.gone:
            desk.skipped(Skip(self.name, worktree.id, outcome.reason or ""))
            return
        desk.removed(Removal(self.name, worktree.id, reason, outcome.bytes))
        if outcome.reason is not None:
            desk.failed(worktree.id, outcome.reason)


def worktrees(desk: Desk) -> Iterator[Found]:
    """Every worktree that is there, the oldest first."""
    for row in desk.read("worktrees_to_clean"):
        yield found_from(row)


def found_from(row: tuple[Any, ...]) -> Found:
    """A row of `worktrees_to_clean`."""
    fields = dict(zip(Worktree.__struct_fields__, row[:11], strict=True))
    worktree = Worktree(**{**fields, "kept": bool(fields["kept"])})
    name, common_dir, device, inode, state, ended_at = row[11:]
    subject = removal.Subject(worktree, common_dir, device, inode)
    return Found(subject, name, state, ended_at)


def limits_of(rules: Mapping[str, Any]) -> Limits:
    """What the settings say of saving."""
    table = rules.get("worktrees", {})
    return Limits(
        archive_bytes=table.get("archive_bytes", ARCHIVE_BYTES),
        disposable=tuple(table.get("disposable", DISPOSABLE)),
    )


def _candidate(home: Folder, found: Found, *, measured: bool) -> Candidate:
    worktree = found.worktree
    ended = worktree.made_at if found.ended_at is None else found.ended_at
    protected = None
    if found.job_state is not None and found.job_state not in TERMINAL:
        protected = f"its job is {found.job_state}"
    elif worktree.kept:
        protected = "a person keeps it"
    elif _is_gone(home, worktree):
        # Whoever has removed the folder need not wait to see that it is gone.
        ended = 0.0
    size = size_of(home, worktree) if measured else 0
    return Candidate(worktree.id, ended, size, worktree.repo, protected)


def _is_gone(home: Folder, worktree: Worktree) -> bool:
    try:
        with spot_of(home, worktree.path) as spot:
            return spot.entry(spot.name) is None and spot.entry(spot.aside_name) is None
    except (Unsafe, OSError):
        return False


def _tried(home: Folder, worktree: Worktree, now: float) -> str | None:
    """Why it had to stay a short while ago; None: it is to be looked at."""
    receipt = _receipt(home, worktree)
    if receipt is None or receipt.tried_at is None or receipt.reason is None:
        return None
    return receipt.reason if now < receipt.tried_at + AGAIN_AFTER else None


def _tried_at(home: Folder, worktree: Worktree) -> float:
    receipt = _receipt(home, worktree)
    return 0.0 if receipt is None or receipt.tried_at is None else receipt.tried_at


def _receipt(home: Folder, worktree: Worktree) -> Receipt | None:
    with suppress(Unsafe, OSError), receipts.found(home, worktree.id) as store:
        return None if store is None else receipts.read(store)
    return None
