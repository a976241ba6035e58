"""Cleaning: what a clean-up is asked to do, and what it says it has done.

A clean-up is a program of its own. It reads the store and the home, decides by
`domain.retention`, and removes files itself; rows are removed by the owner of the
store, whom it asks, so that there is one writer. It visits the classes in the order in
which they were visited last, the oldest first (`domain.maintenance`).
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
    "other",  # all else, which is only counted
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


class Removal(Struct, frozen=True):
    """One thing that was removed, or would be, and why."""

    clean_class: CleanClass
    what: str
    reason: str
    bytes: int = 0


class Skip(Struct, frozen=True):
    """Something that stays although its time has come, and why."""

    clean_class: CleanClass
    what: str
    reason: str


class ClassReport(Struct):
    """What one class came to in one run.

    What was scanned, removed and skipped is counted by the desk, which is told of it.
    """

    clean_class: CleanClass
    scanned: int = 0
    removed: int = 0
    bytes: int = 0
    #: How many things stay, by the reason why.
    skipped: dict[str, int] = {}
    failed: int = 0
    #: Of what failed, the first one and why.
    error: str | None = None
    #: Bytes that the class has in the home after the run; None: it was not measured.
    size: int | None = None
    #: Where the next run goes on; None: from the beginning, as all was looked at.
    cursor: str | None = None
    #: The first moment at which something that stays can go because of its age, though
    #: no job ends until then. None: none is known.
    due_at: float | None = None


class Desk(Protocol):
    """What a class of the clean-up program has to work with. Nothing here is async."""

    request: CleanRequest
    #: The folder of the home.
    home: str
    #: The settings that retention goes by, as they are in the settings of the home.
    rules: dict[str, Any]

    def read(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a named query of the store, as they are now."""

    def may_go_on(self) -> bool:
        """False once the time of this run is used up, or what this class may look at
        or remove in one visit."""

    def scanned(self, count: int = 1) -> None:
        """Count what was looked at."""

    def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        """Have the owner of the store remove the rows of ended jobs; those that it did.

        It leaves out those that are not ended or ended just now, and those that
        something refers to. A job that another one was made from (`retry_of`) goes
        once that one is gone, so the newest are best named first.
        """

    def forget_events(self, before: int) -> int:
        """Have it remove the events before a number; how many it did.

        It ends before the first event of a job that has not ended.
        """

    def record(self, worktree: Worktree, step: str) -> None:
        """Have it save what is known of a worktree now; durable when this returns."""

    def upkeep(self) -> int:
        """Have it fold its log back, and vacuum it if that is worth it; bytes freed."""

    def removed(self, removal: Removal) -> None:
        """Tell of a removal, and count it. In a dry run: of what would be removed."""

    def skipped(self, skip: Skip) -> None:
        """Tell of something that stays, and count it by its reason."""

    def failed(self, what: str, error: str) -> None:
        """Tell of something that could not be removed, and count it."""


class Cleaner(Protocol):
    """One class of the clean-up: removes what it may, within the desk's budgets.

    It asks `may_go_on` before each thing that it looks at. What it raises ends this
    visit only. In a dry run it tells of removals and asks for nothing.
    """

    name: CleanClass

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """One visit, from where the last one stopped."""
