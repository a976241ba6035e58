"""Control, the part that is about EPICs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.epic.runs import EpicRequest, EpicRunView


class Epics(Protocol):
    """A run is named by its id, or by the beginning of it that only it has. Every
    method that names one may raise NotFound."""

    async def run_epic(
        self, request: EpicRequest, *, origin: str = "cli"
    ) -> EpicRunView:
        """Begin to work through an EPIC, unless its request began that already.

        Raises:
            InvalidInput: naming the field that is wrong; nothing has begun.
            Refused: too many have not ended, or this one goes on already.
        """

    async def epics(
        self, *, active: bool | None = None, before: str | None = None, limit: int = 50
    ) -> list[EpicRunView]:
        """The newest first, without their graphs; those older than `before`."""

    async def epic(self, name: str) -> EpicRunView:
        """One with its graph."""

    async def stop_epic(
        self, name: str, mode: Literal["drain", "now"] = "drain"
    ) -> EpicRunView:
        """Ask it to end: its workers at their next boundary, or interrupted now.

        Raises:
            Refused: it has ended.
        """

    async def wait_epic(self, name: str) -> EpicRunView:
        """Return when it has ended."""
