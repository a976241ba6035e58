"""What can be asked of the runs of EPICs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.effects import OF_JOB
from forge_actors.domain.epic.runs import (
    EpicRun,
    UnreadableEpic,
    loaded,
    shown,
    unreadable,
)
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.policies import check_work
from forge_actors.runtime.control_jobs import JobControl

if TYPE_CHECKING:
    from typing import Literal

    from forge_actors.domain.epic.runs import EpicRequest, EpicRunView

#: Runs that one answer tells of.
MAX_TOLD = 500
#: Characters of an id that may stand for it.
MIN_PREFIX = 4
#: Characters of the EPIC, and of the id of a request.
MAX_EPIC, MAX_REQUEST_ID = 4096, 200
#: What the settings may have workers do to the outside.
_DOES = {"push": "push", "pull_request": "open pull requests"}


class EpicControl(JobControl):
    """The part of the port `Control` that is about EPICs."""

    async def run_epic(
        self, request: EpicRequest, *, origin: str = "cli"
    ) -> EpicRunView:
        if request.request_id is not None:
            known = self._store.read("epic_of_request", request.request_id)
            if known:
                return await self.epic(known[0][0])
        await _check(request)
        self._check_agent(request, origin)
        repo, _ = await self._registry.find(request.repo)
        check_work(self._store.policy, "create", None)
        run = await self.running_epics.begin(request, repo.id, origin)
        return self._epic_view(run)

    async def epics(
        self, *, active: bool | None = None, before: str | None = None, limit: int = 50
    ) -> list[EpicRunView]:
        if not 1 <= limit <= MAX_TOLD:
            raise InvalidInput("limit", f"must be from 1 to {MAX_TOLD}")
        behind = before or "~"
        if active is None:
            rows = self._store.read("epics", behind, limit)
        else:
            rows = self._store.read("epics_active", behind, limit, active)
        return [self._epic_view(_run(*row), brief=True) for row in rows]

    async def epic(self, name: str) -> EpicRunView:
        key = self._epic_meant(name)
        return self._epic_view(_run(key, self._store.epic(key) or b""))

    async def stop_epic(
        self, name: str, mode: Literal["drain", "now"] = "drain"
    ) -> EpicRunView:
        key = self._epic_meant(name)
        await self.running_epics.stop(key, mode)
        return await self.epic(key)

    async def wait_epic(self, name: str) -> EpicRunView:
        key = self._epic_meant(name)
        await self.running_epics.wait(key)
        return await self.epic(key)

    # -- the parts -------------------------------------------------------------------

    def _check_agent(self, request: EpicRequest, origin: str) -> None:
        """An agent may have an EPIC worked through, but decides nothing that a person
        has to: what may be done to the outside, and about what was left open.

        Raises:
            Refused: it would.
        """
        if origin != "mcp" and not origin.startswith(OF_JOB):
            return
        asks = origin.replace(":", " ") if origin.startswith(OF_JOB) else "an agent"
        if request.resume or request.force or request.accept_config_change:
            raise Refused(
                f"{asks} cannot take over what an earlier run left open; a person can"
            )
        effects = self._settings().epic.effects
        if effects:
            raise Refused(
                f"{asks} cannot begin an EPIC, as the settings have its workers"
                f" {' and '.join(_DOES[each] for each in effects)}; a person can, with"
                " forge-actors epic run --detach"
            )

    def _epic_view(self, run: EpicRun, *, brief: bool = False) -> EpicRunView:
        repo = self._registry.get(run.repo)
        name = run.repo if repo is None else repo.name
        # A list is told what was kept last; a view is made of many files.
        view = None if brief else self.running_epics.view(run.id)
        return shown(run, name, view, brief=brief)

    def _epic_meant(self, name: str) -> str:
        """The id of the run that an id or the beginning of one means.

        Raises:
            NotFound: there is none. Refused: the beginning is that of several.
        """
        if len(name) >= MIN_PREFIX:
            rows = self._store.read("epics_meant", name)
            if rows and name in (rows[0][0], rows[-1][0]):
                return name
            if len(rows) > 1:
                raise Refused(f"{name!r} is the beginning of several runs of EPICs")
            if rows:
                return str(rows[0][0])
        raise NotFound(f"there is no run {name!r} of an EPIC")


def _run(key: str, body: bytes) -> EpicRun:
    try:
        return loaded(body)
    except UnreadableEpic as error:
        return unreadable(key, str(error))


async def _check(request: EpicRequest) -> None:
    """
    Raises:
        InvalidInput: naming the field that is wrong.
    """
    epic, key = request.epic, request.request_id
    if not 1 <= len(epic) <= MAX_EPIC or "\0" in epic:
        raise InvalidInput("epic", f"has from 1 to {MAX_EPIC} characters")
    if key is not None and not 1 <= len(key) <= MAX_REQUEST_ID:
        raise InvalidInput("request_id", f"has from 1 to {MAX_REQUEST_ID} characters")
    if "://" in epic:
        return
    if not os.path.isabs(epic):
        raise InvalidInput("epic", "is no URL, and no absolute path of a plan")
    if not await trio.Path(epic).exists():
        raise InvalidInput("epic", f"there is no plan at {epic}")
