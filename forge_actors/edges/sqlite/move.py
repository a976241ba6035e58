"""A move: what is saved together, and the promise that it becomes durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.changes import (
    ClassVisited,
    CleanRunChanged,
    EventsForgotten,
    JobAdded,
    JobsForgotten,
    RepositoryAdded,
    RepositoryChanged,
    SettingsChanged,
)
from forge_actors.domain.epic_changes import EpicSaved
from forge_actors.domain.workflow_changes import WorkflowAdded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.errors import StoreFailed

_REFUSABLE = (
    JobAdded,
    RepositoryAdded,
    RepositoryChanged,
    SettingsChanged,
    WorkflowAdded,
    # A clean-up is told at once that it has to do without the store.
    JobsForgotten,
    EventsForgotten,
    ClassVisited,
    CleanRunChanged,
)


def _refusable(change: Change) -> bool:
    if isinstance(change, EpicSaved):
        return change.event is not None and change.event.kind == "epic_began"
    return isinstance(change, _REFUSABLE)


class Move:
    """Changes that are saved together; the promise that they become durable."""

    __slots__ = ("_event", "changes", "done", "error", "then")

    def __init__(
        self, changes: Sequence[Change], then: Callable[[], object] | None
    ) -> None:
        self.changes = changes
        self.then = then
        self.done = False
        self.error: StoreFailed | None = None
        self._event: trio.Event | None = None

    @property
    def refusable(self) -> bool:
        """Whether it accepts or removes something, which nobody was promised yet.

        One without changes only waits for those before it, which may be refused.
        """
        return not self.changes or any(map(_refusable, self.changes))

    async def wait(self) -> None:
        if not self.done:
            if self._event is None:
                self._event = trio.Event()
            await self._event.wait()
        if self.error is not None:
            raise self.error

    def settle(self, error: StoreFailed | None = None) -> None:
        self.done, self.error = True, error
        if self._event is not None:
            self._event.set()
