"""What is visited: for each class of the clean-up the one who does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.damage import FOLDER as DAMAGED
from forge_actors.edges.cleanup.artifacts import ArtifactCleaner
from forge_actors.edges.cleanup.backups import BackupCleaner
from forge_actors.edges.cleanup.history import EventCleaner
from forge_actors.edges.cleanup.jobs import JobCleaner
from forge_actors.edges.cleanup.logs import LogCleaner
from forge_actors.edges.cleanup.others import OtherCleaner
from forge_actors.edges.cleanup.repositories import RepositoryCleaner
from forge_actors.edges.cleanup.temporary import TemporaryCleaner, TemporaryNames
from forge_actors.edges.cleanup.upkeep import StoreCleaner
from forge_actors.edges.cleanup.worktrees.cleaner import WorktreeCleaner
from forge_actors.edges.cleanup.worktrees.preserved import PreservedCleaner
from forge_actors.edges.cleanup.worktrees.receipts import PRESERVED
from forge_actors.runtime.homes import (
    ARTIFACTS,
    CLONES,
    DRAFT,
    INPUTS,
    LOGS,
    PROMPTS,
    RECEIPTS,
    REMOVING,
    REPLACED,
    STORE_FILE,
    WORKSHOPS,
    WORKTREES,
    is_draft,
)

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Cleaner

#: Folders that one class counts as its own.
COUNTED = frozenset(
    {LOGS, ARTIFACTS, WORKTREES, PRESERVED, REMOVING, REPLACED, DAMAGED, *WORKSHOPS}
)


def is_counted(name: str) -> bool:
    """Whether another class than `other` says how much this takes in the home."""
    return name in COUNTED or name.startswith(STORE_FILE) or is_draft(name)


CLEANERS: dict[CleanClass, Cleaner] = {
    "jobs": JobCleaner(),
    "logs": LogCleaner(),
    "events": EventCleaner(),
    "artifacts": ArtifactCleaner(),
    "temporary": TemporaryCleaner(
        TemporaryNames(
            is_draft,
            (RECEIPTS, "secrets", PROMPTS),
            DRAFT,
            WORKSHOPS,
            CLONES,
            PROMPTS,
            INPUTS,
        )
    ),
    "backups": BackupCleaner((REPLACED, DAMAGED)),
    "repositories": RepositoryCleaner((WORKTREES,)),
    "store": StoreCleaner(),
    "other": OtherCleaner(is_counted),
    "worktrees": WorktreeCleaner(),
    "preserved": PreservedCleaner(),
}
