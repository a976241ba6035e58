"""The part of the fake `Control` that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.metrics import Family


class FakeMetrics:
    """Answers with `families`, which the test sets."""

    def __init__(self) -> None:
        self.families: list[Family] = []

    async def metrics(self) -> list[Family]:
        return self.families
