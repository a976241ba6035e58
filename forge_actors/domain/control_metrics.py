"""What can be asked of a runtime in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.metrics import Family


class MetricsControl(Protocol):
    """The part of the port `Control` that counts."""

    async def metrics(self) -> list[Family]:
        """Every metric of the runtime as it is now."""
