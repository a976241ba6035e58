"""Cleaning: what a clean-up is asked to do, and what it says it has done.

A clean-up is a program of its own. It reads the store and the home, decides by
`domain.retention`, and removes files itself; rows are removed by the owner of the
store, whom it asks, so that there is one writer. It visits the classes in the order in
which they were visited last, the oldest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from forge_actors.domain.worktrees import Worktree

#: What is cleaned apart from the others, with a place of its own in the order.
CleanClass = Literal[
    "jobs",  # records of ended jobs, with their logs and receipts
    "logs",  # output and receipts without a job
    "events",  # the oldest part of the history
    "artifacts",  # files collected from jobs
    "worktrees",  # worktrees whose content is safe elsewhere
    "preserved",  # what was saved of removed worktrees
    "temporary",  # drafts and folders that a crash left
    "backups",  # replaced and damaged stores, old releases
    "repositories",  # folders of repositories that were removed
    "store",  # checkpoint and vacuum
]
CLASSES: tuple[CleanClass, ...] = get_args(CleanClass)


class CleanRequest(Struct, frozen=True, omit_defaults=True):
    """What to do in one run. Without `classes` all of them; with `worktrees` only these
    worktrees, by id, because a person asked for it."""

    home: str
    now: float
    dry_run: bool = False
    classes: tuple[CleanClass, ...] = ()
    worktrees: tuple[str, ...] = ()
    #: Remove these worktrees although something in them cannot be kept elsewhere.
    force: bool = False


class Removal(Struct, frozen=True, omit_defaults=True):
    """One thing that was removed, or would be, and why."""

    clean_class: CleanClass
    what: str
    reason: str
    bytes: int = 0


class Skip(Struct, frozen=True, omit_defaults=True):
    """Something that stays although its time has come, and why."""

    clean_class: CleanClass
    what: str
    reason: str


class ClassReport(Struct, omit_defaults=True):
    """What one class came to in one run."""

    clean_class: CleanClass
    scanned: int = 0
    removed: int = 0
    bytes: int = 0
    #: How many things stay, by the reason why.
    skipped: dict[str, int] = {}
    failed: int = 0
    #: Bytes that the class has in the home after the run; None: it was not measured.
    size: int | None = None
    #: Where the next run goes on; None: from the beginning.
    cursor: str | None = None


class Desk(Protocol):
    """What a class of the clean-up program has to work with. Nothing here is async."""

    request: CleanRequest
    #: The folder of the home.
    home: str

    def read(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a named query of the store, as they are now."""

    def may_go_on(self) -> bool:
        """False once the time or the number of removals of this run is used up."""

    def forget_jobs(self, jobs: Sequence[str]) -> int:
        """Have the owner of the store remove the rows of ended jobs; how many it did.

        It leaves out those that are not ended, or that something refers to.
        """

    def forget_events(self, before: int) -> int:
        """Have it remove the events before a number; how many it did."""

    def record(self, worktree: Worktree, step: str) -> None:
        """Have it save what is known of a worktree now; durable when this returns."""

    def upkeep(self) -> int:
        """Have it fold its log back, and vacuum it if that is worth it; bytes freed."""

    def removed(self, removal: Removal) -> None:
        """Tell of a removal, and count it."""

    def skipped(self, skip: Skip) -> None:
        """Tell of something that stays."""


class Cleaner(Protocol):
    """One class of the clean-up: removes what it may, within the desk's budgets."""

    name: CleanClass

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """One visit, from where the last one stopped."""
