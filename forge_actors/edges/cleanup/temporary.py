"""The class `temporary`: what was to be there for a moment, and was left by a crash."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.retention import DAY, Candidate, decide, next_due, policy_of
from forge_actors.edges.cleanup.folders import Unsafe
from forge_actors.edges.cleanup.visit import visiting
from forge_actors.edges.cleanup.walking import ASIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.domain.retention import Policy
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.visit import Visit

#: What a prompt is named by.
DIGEST = re.compile(r"[0-9a-f]{64}")
#: What the inputs of an attempt are named by: its job and its number.
INPUT = re.compile(r"[0-9a-z]{1,64}\.[0-9]{1,9}")
#: A clone may take as long as a network wants, so no younger one is touched.
CLONE_AGE = DAY


class TemporaryNames(NamedTuple):
    """What is temporary in a home, by its names."""

    #: Whether a name in the home itself is that of a draft of ours.
    is_draft: Callable[[str], bool]
    #: Folders in which drafts lie too, and the end of their names there.
    folders: tuple[str, ...]
    suffix: str
    #: Folders of the home in which things are made that are put elsewhere then.
    workshops: tuple[str, ...]
    #: The folder with clones.
    clones: str
    #: The folder with prompts: one that no job has any more is as good as a draft.
    prompts: str
    #: The folder with what jobs find of others: a folder an attempt, while it runs.
    inputs: str


class TemporaryCleaner:
    """Removes drafts, workshops and clones that nobody has finished, and the like."""

    name: CleanClass = "temporary"

    def __init__(self, names: TemporaryNames) -> None:
        self._names = names

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        policy = policy_of(desk.rules, self.name)
        with visiting(self.name, desk) as visit:
            return _Temporary(visit, policy).run(self._names)


class _Temporary:
    def __init__(self, visit: Visit, policy: Policy) -> None:
        self._visit = visit
        self._desk = visit.desk
        self._policy = policy
        self._report = ClassReport(visit.name, size=0)

    def run(self, names: TemporaryNames) -> ClassReport:
        home = self._visit.home
        self._finish()
        drafts = [each for each in home.entries(names.is_draft) if not each.is_folder]
        shops = [found for name in names.workshops if (found := home.entry(name))]
        self._clean(home, [*drafts, *shops], self._policy)
        for name in names.folders:
            with self._visit.folder(name) as folder:
                if folder is not None:
                    ends = folder.entries(lambda name: name.endswith(names.suffix))
                    drafts = [each for each in ends if not each.is_folder]
                    self._clean(folder, drafts, self._policy)
        with self._visit.folder(names.clones) as clones:
            if clones is not None:
                slow = structs.replace(
                    self._policy, grace=max(self._policy.grace, CLONE_AGE)
                )
                counted = self._report.size
                self._clean(clones, self._unknown(clones), slow)
                # All of that folder is counted with what there is besides.
                self._report.size = counted
        with self._visit.folder(names.prompts) as prompts:
            if prompts is not None:
                counted = self._report.size
                self._clean(prompts, self._unasked(prompts), self._policy)
                self._report.size = counted
        with self._visit.folder(names.inputs) as inputs:
            if inputs is not None:
                counted = self._report.size
                self._clean(inputs, self._left(inputs), self._policy)
                self._report.size = counted
        return self._report

    def _finish(self) -> None:
        """Go on with what earlier clean-ups have moved aside, and count what stays."""
        if self._visit.remover is not None and self._policy.on:
            for entry, removed in self._visit.remover.finish():
                self._desk.scanned()
                what = f"{ASIDE}/{entry.name}"
                self._visit.told_of(what, "a clean-up had moved it aside", removed)
        with self._visit.folder(ASIDE) as aside:
            if aside is not None:
                self._count(self._visit.measure.contents(aside).bytes)

    def _clean(self, folder: Folder, entries: Iterable[Entry], policy: Policy) -> None:
        found = {entry.name: entry for entry in entries}
        sizes = {
            name: self._visit.measure.tree(folder, entry).bytes
            for name, entry in found.items()
        }
        candidates = [
            Candidate(name, _touched(folder, entry), sizes[name])
            for name, entry in found.items()
        ]
        verdicts = decide(candidates, policy, self._desk.request.now)
        for verdict in verdicts:
            self._desk.scanned()
            name = verdict.candidate.name
            gone = (
                verdict.goes
                and self._desk.may_go_on()
                and self._visit.remove(folder, found[name], verdict.reason, sizes[name])
            )
            if not gone or self._desk.request.dry_run:
                self._count(sizes[name])
        dues = (next_due(verdicts), self._report.due_at)
        self._report.due_at = min(
            (due for due in dues if due is not None), default=None
        )

    def _count(self, size: int) -> None:
        assert self._report.size is not None, "it begins with nothing"
        self._report.size += size

    def _unasked(self, prompts: Folder) -> list[Entry]:
        """Prompts that no job has; what has another name is left alone."""
        known = {digest for (digest,) in self._desk.read("known_prompts")}
        return [
            entry
            for entry in prompts.entries()
            if DIGEST.fullmatch(entry.name) and entry.name not in known
        ]

    def _left(self, inputs: Folder) -> list[Entry]:
        """Inputs of attempts of jobs that have ended, or that nobody knows."""
        found = [each for each in inputs.entries() if INPUT.fullmatch(each.name)]
        wanted = {each.name.partition(".")[0] for each in found}
        asked = json.dumps(sorted(wanted))
        busy = {job for (job,) in self._desk.read("unfinished_jobs", asked)}
        return [each for each in found if each.name.partition(".")[0] not in busy]

    def _unknown(self, clones: Folder) -> list[Entry]:
        """Clones that are and were no repository, so that nobody has worked there."""
        known = {path for (path,) in self._desk.read("repository_paths")}
        return [
            entry
            for entry in clones.entries()
            if entry.is_folder and f"{clones.path}/{entry.name}" not in known
        ]


def _touched(folder: Folder, entry: Entry) -> float:
    """When something was last changed in it, or in what it holds."""
    moments = [entry.changed]
    # What cannot be looked into is as old as it says itself.
    with suppress(OSError, Unsafe):
        found = folder.folder(entry.name, entry.identity) if entry.is_folder else None
        if found is not None:
            with found:
                moments += [each.changed for each in found.entries()]
    return max(moments)
