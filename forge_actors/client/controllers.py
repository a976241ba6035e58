"""The part of the client that is about controllers."""

from __future__ import annotations

from typing import Any

from forge_actors.client.workflows import WorkflowCalls
from forge_actors.domain.controller_views import ControllerView, WakeView
from forge_actors.domain.requests import convert


class ControllerCalls(WorkflowCalls):
    """Sessions that are woken to go on with their work."""

    async def add_controller(
        self, /, name: str, prompt: str, **controller: Any
    ) -> ControllerView:
        """Add one; what it has besides is as in `ControllerRequest`."""
        body = {"name": name, "prompt": prompt, **controller}
        return convert(
            await self._call("POST", "controllers", body=body), ControllerView
        )

    async def controllers(self) -> list[ControllerView]:
        answer = await self._call("GET", "controllers")
        return convert(answer["controllers"], list[ControllerView])

    async def controller(self, name: str) -> ControllerView:
        return convert(await self._call("GET", "controllers", name), ControllerView)

    async def controller_wakes(self, name: str, limit: int = 50) -> list[WakeView]:
        """What became of what was to wake it, the newest first."""
        path, query = ("controllers", name, "wakes"), [("limit", limit)]
        answer = await self._call("GET", *path, query=query)
        return convert(answer["wakes"], list[WakeView])

    async def wake_controller(
        self, name: str, *, request_id: str | None = None
    ) -> WakeView:
        """Have it go on now, once for each request id."""
        path, body = ("controllers", name, "wake"), {"request_id": request_id}
        return convert(await self._call("POST", *path, body=body), WakeView)

    async def pause_controller(self, name: str) -> ControllerView:
        return await self._controller(name, "pause")

    async def resume_controller(self, name: str) -> ControllerView:
        """Let it go on; its budgets begin anew."""
        return await self._controller(name, "resume")

    async def remove_controller(self, name: str) -> ControllerView:
        return convert(await self._call("DELETE", "controllers", name), ControllerView)

    async def tell_controller(
        self,
        disposition: str,
        *,
        name: str | None = None,
        note: str = "",
        state: str = "",
    ) -> ControllerView:
        """Say how its turn ends; without a name, the one of the job that we are in."""
        body = {"disposition": disposition, "note": note, "state": state}
        names = () if name is None else (name,)
        answer = await self._call("POST", "controllers", *names, "tell", body=body)
        return convert(answer, ControllerView)

    async def _controller(self, name: str, verb: str) -> ControllerView:
        answer = await self._call("POST", "controllers", name, verb)
        return convert(answer, ControllerView)
