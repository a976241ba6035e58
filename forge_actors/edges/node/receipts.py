"""Receipts that node agents left on disk for a service that was not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.launch import Receipt
from forge_actors.edges.node.agent_lock import living_instance
from forge_actors.edges.node.finding import wait_until_ended
from forge_actors.edges.node.journals import journals, read_journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


async def previous_receipts(home: Path) -> list[Receipt]:
    """What former agents wrote down, oldest first, once the last of them is gone.

    They may be known already: a receipt is forgotten lazily.

    Raises:
        LauncherDown: the agent of a dead service still ends its jobs after 30 s.
    """
    await wait_until_ended(home)
    return [receipt for path in journals(home) for receipt in read_receipts(path)]


def remove_receipts(home: Path) -> None:
    """Delete what `previous_receipts` returned; not the file of an agent that lives."""
    living = living_instance(home)
    for path in journals(home):
        if path.stem != living:
            path.unlink(missing_ok=True)


def read_receipts(path: Path) -> Iterator[Receipt]:
    """The receipts of one agent."""
    for entry in read_journal(path).entries.values():
        if isinstance(entry, Receipt):
            yield entry
