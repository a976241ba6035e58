"""What can be asked of controllers."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, get_args

from forge_actors.actors.controllers_messages import (
    Add,
    Pause,
    Remove,
    Resume,
    Say,
    Tell,
)
from forge_actors.domain.controller_records import wake_from
from forge_actors.domain.controller_views import ControllerView, TurnView, WakeView
from forge_actors.domain.controllers import (
    MAX_NOTE,
    MAX_WAKES,
    Controller,
    Disposition,
    Limits,
    Round,
    Wake,
    check_controller,
)
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.redaction import redact, scrub
from forge_actors.domain.requests import convert, unknown_word
from forge_actors.domain.schedules import check_name, occurrence_id
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.control_jobs import JobControl

if TYPE_CHECKING:
    from forge_actors.domain.controller_views import ControllerRequest

DISPOSITIONS: tuple[Disposition, ...] = get_args(Disposition)
PAUSED_BY_HAND = "somebody paused it"


class ControllersControl(JobControl):
    """The part of the port `Control` that is about controllers."""

    async def list_controllers(self) -> list[ControllerView]:
        return [self._controller_view(one) for one in await self.controllers.ask(Tell)]

    async def controller(self, name: str) -> ControllerView:
        return self._controller_view(await self._controller(name))

    async def controller_wakes(self, name: str, limit: int = 50) -> list[WakeView]:
        if not 1 <= limit <= MAX_WAKES:
            raise InvalidInput("limit", f"must be from 1 to {MAX_WAKES}")
        controller = await self._controller(name)
        rows = self._store.read("wakes", controller.id, limit)
        return [self._wake_view(wake_from(row[0])) for row in rows]

    async def add_controller(
        self, request: ControllerRequest, *, caller: str | None = None
    ) -> ControllerView:
        check_name(request.name, of="controller")
        binding_size = len(json.dumps(request.binding))
        check_controller(request.prompt, binding_size)
        job = None if request.job is None else self._store.match(request.job)
        if caller not in (None, job):
            raise Refused(f"job {caller} can have no session go on but its own")
        repo = await self._controller_repo(request, job)
        host = self.controllers.host(request.host)
        binding = host.check(request.binding, job)
        check_controller(request.prompt, len(json.dumps(binding)))
        wall = self._clock.wall()
        running = None
        if job is not None:
            state = self._store.job_known(job)
            if state not in TERMINAL:
                # The turn that it is in: how that ends may be said already.
                running = Round("", wall, accepted=True, job=job)
        controller = Controller(
            id=self._new_id(request.name, wall),
            name=request.name,
            repo=repo,
            host=request.host,
            binding=binding,
            prompt=request.prompt,
            limits=_limits(request),
            job=job,
            made=wall,
            since=wall,
            round=running,
        )
        added = await self.controllers.ask(partial(Add, controller))
        return self._controller_view(added)

    async def wake_controller(
        self, name: str, request_id: str | None = None
    ) -> WakeView:
        controller = await self._controller(name)
        key = f"asked-{request_id or repr(self._clock.wall())}"
        told = await self.controllers.rouse(
            *(controller.name, occurrence_id(controller.id, key), "person"),
            f"continuation:{controller.name}",
        )
        return self._wake_view(told)

    async def pause_controller(self, name: str) -> ControllerView:
        paused = await self.controllers.ask(partial(Pause, name, PAUSED_BY_HAND))
        return self._controller_view(paused)

    async def resume_controller(self, name: str) -> ControllerView:
        return self._controller_view(await self.controllers.ask(partial(Resume, name)))

    async def remove_controller(self, name: str) -> ControllerView:
        return self._controller_view(await self.controllers.ask(partial(Remove, name)))

    async def tell_controller(
        self,
        name: str | None,
        disposition: Disposition,
        *,
        note: str = "",
        state: str = "",
        caller: str | None = None,
    ) -> ControllerView:
        if disposition not in DISPOSITIONS:
            raise unknown_word("disposition", disposition, DISPOSITIONS)
        for field, text in (("note", note), ("state", state)):
            if len(text) > MAX_NOTE:
                raise InvalidInput(field, f"has more than {MAX_NOTE} characters")
        make = partial(Say, name, caller, disposition, redact(note), redact(state))
        return self._controller_view(await self.controllers.ask(make))

    # -- the parts -------------------------------------------------------------------

    async def _controller(self, name: str) -> Controller:
        for controller in await self.controllers.ask(Tell):
            if controller.name == name:
                return controller
        raise NotFound(f"there is no controller {name!r}")

    async def _controller_repo(
        self, request: ControllerRequest, job: str | None
    ) -> str:
        """The id of the repository that it is of."""
        of = None
        if job is not None:
            [(_, _, _, of)] = self._store.read_pending("job_attempt", job)
            known = self._registry.get(of)
            if known is None:
                raise Refused(f"the repository of job {job} was removed")
            if request.repo is None:
                return known.id
        if request.repo is None:
            raise InvalidInput("repo", "is missing: where is its work?")
        repo, _ = await self._registry.find(request.repo)
        if of not in (None, repo.id):
            raise InvalidInput("repo", f"job {job} is of another repository")
        return repo.id

    def _new_id(self, name: str, wall: float) -> str:
        return occurrence_id(name, f"controller-{wall!r}").replace("occ", "ctl")

    def _controller_view(self, controller: Controller) -> ControllerView:
        known = self._registry.get(controller.repo)
        last = controller.round
        turn = None
        if last is not None:
            turn = TurnView(
                began_at=timestamp(last.began),
                job=last.job,
                dispatch=last.dispatch,
                told=last.told,
                note=last.note,
            )
        why = controller.why
        return ControllerView(
            name=controller.name,
            repo=controller.repo if known is None else known.name,
            host=controller.host,
            binding=controller.binding,
            job=controller.job,
            state=controller.state,
            why=None if why is None else scrub(redact(why), self._roots),
            since=timestamp(controller.since) if controller.since else None,
            prompt=controller.prompt,
            limits=controller.limits,
            rounds=controller.rounds,
            repeats=controller.repeats,
            failures=controller.failures,
            recoveries=controller.recoveries,
            turn=turn,
            next=None if controller.due is None else timestamp(controller.due),
            made_at=timestamp(controller.made),
        )

    def _wake_view(self, wake: Wake) -> WakeView:
        return WakeView(
            id=wake.id,
            by=wake.by,
            state=wake.state,
            reason=scrub(redact(wake.reason), self._roots),
            at=timestamp(wake.at),
            job=wake.job,
            dispatch=wake.dispatch,
        )


def _limits(request: ControllerRequest) -> Limits:
    wanted = {
        "rounds": request.rounds,
        "repeats": request.repeats,
        "failures": request.failures,
        "grace": parse_duration(request.grace, field="grace"),
        "stalled": parse_duration(request.stalled, field="stalled"),
    }
    return convert(wanted, Limits)
