"""What is visited: for each class of the clean-up the one who does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.history import EventCleaner
from forge_actors.edges.cleanup.upkeep import StoreCleaner
from forge_actors.edges.cleanup.worktrees.cleaner import WorktreeCleaner
from forge_actors.edges.cleanup.worktrees.preserved import PreservedCleaner

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Cleaner

CLEANERS: dict[CleanClass, Cleaner] = {
    "events": EventCleaner(),
    "store": StoreCleaner(),
    "worktrees": WorktreeCleaner(),
    "preserved": PreservedCleaner(),
}
