"""What can be asked of the clean-up: to run now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.maintenance_messages import Clean
from forge_actors.actors.supervisor_messages import OpenMaintenance
from forge_actors.runtime.control_base import ControlBase

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanRequest
    from forge_actors.domain.maintenance import CleanResult


class CleaningControl(ControlBase):
    """The part of the port `Control` that is about the clean-up."""

    async def clean(self, request: CleanRequest) -> CleanResult:
        now = self._clock.wall()
        request = structs.replace(request, home=str(self._home), now=now)
        maintenance = await self._supervisor.ask(OpenMaintenance)
        result: CleanResult = await maintenance.ask(lambda reply: Clean(request, reply))
        return result
