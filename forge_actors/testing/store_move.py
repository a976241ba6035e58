"""A move of the store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.errors import StoreFailed


class Move:
    """Changes that are saved together."""

    def __init__(
        self, changes: Sequence[Change], then: Callable[[], object] | None
    ) -> None:
        self.changes = changes
        self.then = then
        self.done = trio.Event()
        self.error: StoreFailed | None = None

    @property
    def repos(self) -> set[str]:
        return {c.event.repo for c in self.changes if c.event and c.event.repo}

    async def wait(self) -> None:
        await self.done.wait()
        if self.error is not None:
            raise self.error
