"""What is visited: for each class of the clean-up the one who does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.history import EventCleaner
from forge_actors.edges.cleanup.upkeep import StoreCleaner

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Cleaner

CLEANERS: dict[CleanClass, Cleaner] = {
    "events": EventCleaner(),
    "store": StoreCleaner(),
}
