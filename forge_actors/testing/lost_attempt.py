"""An attempt that a launcher without processes knows next to nothing of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.launch import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.launch import Ending, ProcessIdentity


class LostAttempt:
    """One of which nothing is known but that it may have begun."""

    def __init__(self, job: str, attempt: int, now: float) -> None:
        self.receipt: Receipt | None = Receipt(job, attempt, 0, "lost", now)

    async def started(self) -> ProcessIdentity | None:
        await trio.lowlevel.checkpoint()
        return None

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False

    async def exited(self) -> Receipt:
        await trio.lowlevel.checkpoint()
        assert self.receipt is not None
        return self.receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        """It has ended."""

    def pause(self) -> None:
        """It has ended."""

    def resume(self) -> None:
        """It has ended."""
