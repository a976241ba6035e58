"""The part of the client that is about EPICs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from forge_actors.client.schedules import ScheduleCalls
from forge_actors.domain.epic.runs import EpicRunView
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    import os


class EpicCalls(ScheduleCalls):
    """A run is named by its id, or the beginning of it."""

    async def run_epic(
        self, /, epic: str, repo: str | os.PathLike[str], **options: Any
    ) -> EpicRunView:
        """Begin to work through an EPIC: the URL of an issue, or the path of a plan on
        the service's machine. `options` are the other fields of `EpicRequest`."""
        body = {"epic": epic, "repo": str(repo), **options}
        return convert(await self._call("POST", "epics", body=body), EpicRunView)

    async def epics(
        self, *, active: bool = False, before: str | None = None, limit: int = 50
    ) -> list[EpicRunView]:
        """The newest first, without their issues; `active`: that have not ended."""
        given = (
            ("active", 1 if active else None),
            ("before", before),
            ("limit", limit),
        )
        query = [(name, value) for name, value in given if value is not None]
        answer = await self._call("GET", "epics", query=query)
        return convert(answer["epics"], list[EpicRunView])

    async def epic(self, run: str) -> EpicRunView:
        return convert(await self._call("GET", "epics", run), EpicRunView)

    async def stop_epic(
        self, run: str, mode: Literal["drain", "now"] = "drain"
    ) -> EpicRunView:
        """Ask it to end: its workers at their next boundary, or interrupted now."""
        answer = await self._call("POST", "epics", run, "stop", body={"mode": mode})
        return convert(answer, EpicRunView)

    async def wait_epic(
        self, run: str, timeout: str | float | None = None
    ) -> EpicRunView:
        """Return when it has ended, or as it is after `timeout`."""
        body = {"timeout": timeout}
        answer = await self._call("POST", "epics", run, "wait", body=body)
        return convert(answer["epic"], EpicRunView)
