"""The part of the fake `Control` that is about EPICs: kept, and worked through when the
test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.epic.runs import EpicRunView
from forge_actors.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from typing import Literal

    from forge_actors.domain.epic.runs import EpicRequest


class FakeEpics:
    """Runs by id in `kept_epics`."""

    def __init__(self) -> None:
        self.kept_epics: dict[str, EpicRunView] = {}
        self.epic_requests: list[EpicRequest] = []
        #: What was asked of them.
        self.epic_stops: list[tuple[str, str]] = []

    async def run_epic(
        self, request: EpicRequest, *, origin: str = "cli"
    ) -> EpicRunView:
        self.epic_requests.append(request)
        view = EpicRunView(
            id=f"1epic{len(self.epic_requests)}",
            epic=request.epic,
            repo=request.repo,
            state="running",
            why=None,
            reason=None,
            origin=origin,
            made_at="2026-01-02T03:04:05.000Z",
            ended_at=None,
        )
        self.kept_epics[view.id] = view
        return view

    async def epics(
        self, *, active: bool | None = None, before: str | None = None, limit: int = 50
    ) -> list[EpicRunView]:
        return [
            _brief(view)
            for _, view in sorted(self.kept_epics.items(), reverse=True)
            if active in (None, view.state != "ended")
            and (before is None or view.id < before)
        ][:limit]

    async def epic(self, name: str) -> EpicRunView:
        for view in self.kept_epics.values():
            if view.id == name:
                return view
        raise NotFound(f"there is no run {name!r} of an EPIC")

    async def stop_epic(
        self, name: str, mode: Literal["drain", "now"] = "drain"
    ) -> EpicRunView:
        view = await self.epic(name)
        if view.state == "ended":
            raise Refused(f"run {name} has ended")
        self.epic_stops.append((name, mode))
        return view

    async def wait_epic(self, name: str) -> EpicRunView:
        return await self.epic(name)


def _brief(run: EpicRunView) -> EpicRunView:
    view = None if run.view is None else structs.replace(run.view, children=())
    return structs.replace(run, view=view)
