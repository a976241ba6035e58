"""Control, the part that is about controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.controller_views import (
        ControllerRequest,
        ControllerView,
        WakeView,
    )
    from forge_actors.domain.controllers import Disposition


class ControllerControl(Protocol):
    """Every method that names a controller may raise NotFound."""

    async def list_controllers(self) -> list[ControllerView]:
        """All of them, by name."""

    async def controller(self, name: str) -> ControllerView: ...

    async def controller_wakes(self, name: str, limit: int = 50) -> list[WakeView]:
        """What became of what was to wake it, newest first."""

    async def add_controller(
        self, request: ControllerRequest, *, caller: str | None = None
    ) -> ControllerView:
        """Add one; `caller` is the job that asks.

        Raises:
            InvalidInput: naming the field. Refused: the name is taken, or a job asks
                for another one than itself.
        """

    async def wake_controller(
        self, name: str, request_id: str | None = None
    ) -> WakeView:
        """Have it go on now, once for each request id.

        Raises:
            Refused: it cannot be woken at the moment.
        """

    async def pause_controller(self, name: str) -> ControllerView:
        """Let nothing wake it until `resume_controller`; its turn goes on."""

    async def resume_controller(self, name: str) -> ControllerView:
        """Let it go on: its budgets begin anew."""

    async def remove_controller(self, name: str) -> ControllerView:
        """Its jobs stay as they are."""

    async def tell_controller(
        self,
        name: str | None,
        disposition: Disposition,
        *,
        note: str = "",
        state: str = "",
        caller: str | None = None,
    ) -> ControllerView:
        """Say how its turn ends; without a name it is the one of the job that asks.

        Raises:
            Refused: no turn of it is under way, or it is another job's.
        """
