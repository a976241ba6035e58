"""What a caller can ask of a runtime about claims that are kept for what jobs left."""

from __future__ import annotations

from typing import Protocol


class QuarantineControl(Protocol):
    """The part of `Control` that is about quarantines. A job is named by a selector."""

    async def quarantined(self) -> list[dict[str, object]]:
        """The claims that are kept for what ended jobs left, oldest first."""

    async def release_quarantine(self, selector: str) -> dict[str, object]:
        """Free what is kept for one job, though nothing is proven gone; what that was.

        Raises:
            Refused: nothing is kept for it.
        """
