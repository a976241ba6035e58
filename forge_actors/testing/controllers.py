"""Controllers without a runtime: the part of the fake `Control`, and a fake host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs

from forge_actors.domain.controller_hosts import HostAnswer
from forge_actors.domain.controller_views import ControllerView, TurnView, WakeView
from forge_actors.domain.controllers import Limits
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.schedules import check_name

if TYPE_CHECKING:
    from forge_actors.domain.controller_hosts import Continuation
    from forge_actors.domain.controller_views import ControllerRequest
    from forge_actors.domain.controllers import Disposition

#: When everything here has happened.
MOMENT = "2026-01-02T03:04:05.000Z"


class FakeHost:
    """The port `ControllerHost`: answers as the test says, and keeps what it began."""

    name = "fake"

    def __init__(self) -> None:
        self.resumes = True
        #: What it was asked, in order.
        self.asked: list[Continuation] = []
        #: What it answers; None: it accepts. An exception is raised.
        self.answer: HostAnswer | Exception | None = None
        #: The jobs that it makes of what it accepts; without, it makes none.
        self.jobs: list[str] = []
        self.begun: dict[str, HostAnswer] = {}
        #: It forgets what it began, as one that cannot tell.
        self.forgets = False

    def check(self, binding: dict[str, Any], job: str | None) -> dict[str, Any]:
        if not isinstance(binding.get("place", ""), str):
            raise InvalidInput("binding.place", "is no text")
        return {"place": "here", **binding}

    async def resume(self, continuation: Continuation) -> HostAnswer:
        self.asked.append(continuation)
        await trio.lowlevel.checkpoint()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        job = self.jobs.pop(0) if self.jobs else None
        dispatch = job or f"d{len(self.asked)}"
        told = HostAnswer("accepted", dispatch=dispatch, job=job)
        self.begun[continuation.wake] = told
        return told

    async def found(self, wake: str) -> HostAnswer | None:
        await trio.lowlevel.checkpoint()
        return None if self.forgets else self.begun.get(wake)


class FakeControllers:
    """Controllers by name in `kept_controllers`; what each was told is in `told`."""

    def __init__(self) -> None:
        self.kept_controllers: dict[str, ControllerView] = {}
        self.kept_wakes: dict[str, list[WakeView]] = {}

    async def list_controllers(self) -> list[ControllerView]:
        return [self.kept_controllers[name] for name in sorted(self.kept_controllers)]

    async def controller(self, name: str) -> ControllerView:
        if name not in self.kept_controllers:
            raise NotFound(f"there is no controller {name!r}")
        return self.kept_controllers[name]

    async def controller_wakes(self, name: str, limit: int = 50) -> list[WakeView]:
        await self.controller(name)
        return self.kept_wakes.get(name, [])[:limit]

    async def add_controller(
        self, request: ControllerRequest, *, caller: str | None = None
    ) -> ControllerView:
        check_name(request.name, of="controller")
        if request.name in self.kept_controllers:
            raise Refused(f"there is a controller {request.name!r} already")
        if caller not in (None, request.job):
            raise Refused(f"job {caller} can have no session go on but its own")
        view = ControllerView(
            name=request.name,
            repo=request.repo or "app",
            host=request.host,
            binding=request.binding,
            job=request.job,
            state="active",
            why=None,
            since=MOMENT,
            prompt=request.prompt,
            limits=Limits(),
            rounds=0,
            repeats=0,
            failures=0,
            recoveries=0,
            turn=TurnView(MOMENT, request.job, None, None, ""),
            next=None,
            made_at=MOMENT,
        )
        self.kept_controllers[request.name] = view
        return view

    async def wake_controller(
        self, name: str, request_id: str | None = None
    ) -> WakeView:
        await self.controller(name)
        wakes = self.kept_wakes.setdefault(name, [])
        key = request_id or f"w{len(wakes)}"
        for known in wakes:
            if known.id == key:
                return known
        reason = "somebody asked for it"
        made = WakeView(key, "person", "dispatched", reason, MOMENT, None, "d")
        wakes.insert(0, made)
        return made

    async def pause_controller(self, name: str) -> ControllerView:
        return await self._now(name, state="paused", why="it was asked")

    async def resume_controller(self, name: str) -> ControllerView:
        return await self._now(name, state="active", why=None, rounds=0)

    async def remove_controller(self, name: str) -> ControllerView:
        await self.controller(name)
        return self.kept_controllers.pop(name)

    async def tell_controller(
        self,
        name: str | None,
        disposition: Disposition,
        *,
        note: str = "",
        state: str = "",
        caller: str | None = None,
    ) -> ControllerView:
        for view in self.kept_controllers.values():
            own = name is None and caller is not None and view.job == caller
            if view.name == name or own:
                if caller not in (None, view.job):
                    raise Refused(f"job {caller} cannot speak for {view.name}")
                turn = TurnView(MOMENT, view.job, None, disposition, note)
                return await self._now(view.name, turn=turn)
        raise NotFound("this is no turn of a controller")

    async def _now(self, name: str, **fields: Any) -> ControllerView:
        known = await self.controller(name)
        self.kept_controllers[name] = structs.replace(known, **fields)
        return self.kept_controllers[name]
