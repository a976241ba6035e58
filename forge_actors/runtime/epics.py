"""The runs of EPICs by one runtime: a scheduler for each that has not ended.

Issues are jobs here, with tokens and claims as all others. A run that ends at a limit
of GitHub goes on once that is over; one whose repository an earlier scheduler's workers
still have goes on once these have ended. One that fails over and over is set aside.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import trio
from msgspec import Struct, structs

from forge_actors.domain.epic.runs import (
    KEPT,
    MAX_ACTIVE,
    EpicRun,
    UnreadableEpic,
    epic_event,
    loaded,
    saved,
    set_aside,
    with_jobs,
)
from forge_actors.domain.epic_changes import EpicsForgotten
from forge_actors.domain.errors import (
    ForgeError,
    NotFound,
    Refused,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.poison import cause, only
from forge_actors.domain.restarts import RestartHistory, RestartPolicy
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.kept_epic import KeptEpic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.changes import Change
    from forge_actors.domain.epic.runs import EpicRequest
    from forge_actors.domain.epic.stopping import End
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import State
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.requests import Accepted, JobRequest
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.candidates import AdmissionDesk
    from forge_actors.runtime.epic_sites import JobSite
    from forge_actors.runtime.github import GitHubAccess
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.registry import Registry

log = logging.getLogger(__name__)

Mode = Literal["drain", "now"]
#: Events after which what is seen of a run is kept anew.
_CHANGE_MUCH = ("epic_snapshot", "epic_issue_started", "epic_issue_ended")


class ServedEpics(Struct, frozen=True):
    """What the schedulers of a runtime share."""

    store: SqliteStore
    clock: Clock
    home: Path
    settings: SettingsInForce
    registry: Registry
    github: GitHubAccess
    candidates: AdmissionDesk
    submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]]
    cancel: Callable[[str], Awaitable[object]]
    new_id: Callable[[], str]


class RunningEpics:
    """`run` is its task."""

    def __init__(self, served: ServedEpics) -> None:
        self._served = served
        self._store = served.store
        self._clock = served.clock
        self._kept: dict[str, KeptEpic] = {}
        #: By the git common directory: the run that has it.
        self._places: dict[str, KeptEpic] = {}
        self._nursery: trio.Nursery | None = None
        self._scope = trio.CancelScope()
        self._stopped = False
        #: Set once those that were saved go on.
        self._loaded = trio.Event()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Keep every run going until `stop_all`."""
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery:
                    for name in self._store.active_epics():
                        self._begin_again(name)
                    self._loaded.set()
                    await trio.sleep_forever()
        finally:
            self._stopped = True
            self._loaded.set()
            for kept in self._kept.values():
                kept.over.set()

    def stop_all(self) -> None:
        """Admit nothing more; workers go on, and the next runtime with the rest."""
        self._scope.cancel()

    # -- what is asked ---------------------------------------------------------------

    async def begin(self, request: EpicRequest, repo_id: str, origin: str) -> EpicRun:
        """Have an EPIC worked through; durable when this returns. The run that the same
        request has begun, if it has.

        Raises:
            InvalidInput: the EPIC or a setting is not valid.
            Refused: too many have not ended, or this one goes on already.
            Unavailable: the service ends.
        """
        from forge_actors.runtime.epic_sites import checked

        await self._loaded.wait()
        while request.request_id is not None and (
            known := self._store.epic_of_request(request.request_id)
        ):
            with suppress(StoreFailed):  # then it was not begun
                await self._store.save([]).wait()
                return self.known(known)
        checked(self._served, request)
        same = [
            each for each in self._kept.values() if _is_same(each.run, request, repo_id)
        ]
        if same:
            raise Refused(f"run {same[0].run.id} works through this EPIC already")
        if len(self._kept) >= MAX_ACTIVE:
            raise Refused(f"{MAX_ACTIVE} EPICs have not ended, which is the most")
        run = EpicRun(
            id=self._served.new_id(),
            request=request,
            repo=repo_id,
            origin=origin,
            made=self._clock.wall(),
        )
        if self._nursery is None or self._stopped:
            raise Unavailable("EPICs are not worked through any more: the service ends")
        event = self._event("epic_began", run)
        begun = self._store.save([saved(run, event)], then=partial(self._start, run))
        await begun.wait()
        return run

    def known(self, name: str) -> EpicRun:
        """A run as it is now.

        Raises:
            NotFound: there is none of this id.
            UnreadableEpic: it cannot be used.
        """
        if (kept := self._kept.get(name)) is not None:
            return kept.run
        body = self._store.epic(name)
        if body is None:
            raise NotFound(f"there is no run {name} of an EPIC")
        return loaded(body)

    def view(self, run_id: str) -> EpicView | None:
        """The graph and the issues of a run that goes on, once they were read."""
        kept = self._kept.get(run_id)
        if kept is None or (view := kept.view()) is None:
            return None
        return with_jobs(view, kept.jobs)

    async def stop(self, run_id: str, mode: Mode) -> None:
        """Ask a run to end.

        Raises:
            Refused: it has ended.
            StateError: the request could not be written.
        """
        await self._loaded.wait()
        kept = self._kept.get(run_id)
        if kept is None:
            raise Refused(f"run {run_id} has ended")
        asked = kept.site is not None and kept.site.ask_to_stop(mode)
        if kept.run.state == "waiting" or not asked:
            kept.stopped.cancel()

    async def wait(self, run_id: str) -> None:
        """Return when it has ended.

        Raises:
            Unavailable: the service ends.
        """
        await self._loaded.wait()
        kept = self._kept.get(run_id)
        if kept is not None:
            await kept.over.wait()
            if self._stopped:
                raise Unavailable("the service ends")

    # -- one run ---------------------------------------------------------------------

    def _begin_again(self, name: str) -> None:
        body = self._store.epic(name)
        try:
            run = loaded(body or b"")
        except UnreadableEpic as error:
            log.error("run %s of an EPIC is set aside: %s", name, error)
            self._store.save([set_aside(name, body or b"")])
            return
        # It has left claims of its own.
        request = structs.replace(run.request, resume=True)
        self._start(structs.replace(run, request=request))

    def _start(self, run: EpicRun) -> None:
        if self._nursery is None or self._stopped or run.id in self._kept:
            return
        kept = self._kept[run.id] = KeptEpic(run)
        self._nursery.start_soon(self._keep, kept)

    async def _keep(self, kept: KeptEpic) -> None:
        history = RestartHistory(RestartPolicy())
        end: End | None = None
        why: str | None = None
        try:
            while end is None and why is None:
                kept.stopped = trio.CancelScope()
                try:
                    with kept.stopped:
                        end = await self._pass(kept)
                    if kept.stopped.cancelled_caught:
                        why = "it was stopped"
                except ForgeError as error:
                    why = str(error)
                except Exception as error:  # nothing else is to fail with it
                    if only(error, StoreFailed):
                        return  # another runtime has the home, and this one ends
                    log.exception("run %s of an EPIC failed", kept.run.id)
                    if not history.allow(trio.current_time()):
                        why = f"it is set aside: {cause(error)}"
            await self._end(kept, end, why)
        finally:
            del self._kept[kept.run.id]
            kept.over.set()

    async def _pass(self, kept: KeptEpic) -> End | None:
        """One scheduler, from its start to its end; None if there is to be another."""
        # A runtime that works through no EPIC does not pay for it.
        from forge_actors.domain.epic.errors import LockHeld
        from forge_actors.runtime.epic_sites import JobSite

        site = JobSite(self._served, kept.run)
        async with site.opened():
            await self._wait_for_others(kept, site)
            self._places[site.common_dir] = kept
            try:
                kept.site = site
                self._become(kept, state="running", why=None)
                end = await self._schedule(kept, site)
            except LockHeld:
                if not await self._wait_for_own_workers(kept):
                    raise
                return None
            finally:
                kept.site = None
                del self._places[site.common_dir]
        request = structs.replace(kept.run.request, resume=True)
        kept.run = structs.replace(kept.run, request=request)
        if end.wait is None or end.reason not in (None, "degraded"):
            return end
        moment = timestamp(self._clock.wall() + end.wait)
        self._become(kept, state="waiting", why=f"GitHub is asked again at {moment}")
        await trio.sleep(end.wait)
        return None

    async def _schedule(self, kept: KeptEpic, site: JobSite) -> End:
        from forge_actors.actors import epic

        ends: list[End] = []
        try:
            async with trio.open_nursery() as nursery:
                context = site.context(
                    nursery,
                    signals=lambda _signalled: nullcontext(),
                    passed=partial(setattr, kept, "view"),
                    tell=partial(self._tell, kept),
                )
                with self._served.candidates.serving(kept.run.id, site.issues):
                    try:
                        ends.append(await epic.run(context))
                    finally:
                        kept.look()
                        kept.view = lambda: None
                # What was asked of workers last is still passed on.
                site.issues.close()
        except BaseExceptionGroup as group:
            raise only_failure(group) from None
        return ends[0]

    async def _wait_for_others(self, kept: KeptEpic, site: JobSite) -> None:
        """There is one scheduler a repository."""
        while (other := self._places.get(site.common_dir)) is not None:
            why = f"run {other.run.id} has the repository"
            self._become(kept, state="waiting", why=why)
            await other.over.wait()

    async def _wait_for_own_workers(self, kept: KeptEpic) -> bool:
        """Wait for the end of workers of earlier schedulers of this run; False if there
        are none, so that somebody else has the repository."""
        jobs = [
            job
            for job, state in self._store.read_pending("jobs_of_work", kept.run.id)
            if state in RESERVED
        ]
        if not jobs:
            return False
        why = f"{len(jobs)} workers of before have the repository"
        self._become(kept, state="waiting", why=why)
        for job in jobs:
            over = trio.Event()

            def ended(_state: State, over: trio.Event = over) -> None:
                over.set()

            self._store.when_ended(job, ended)
            await over.wait()
        return True

    # -- what is known of it ---------------------------------------------------------

    def _become(
        self, kept: KeptEpic, *, state: Literal["waiting", "running"], why: str | None
    ) -> None:
        before = kept.run
        kept.run = structs.replace(before, state=state, why=why)
        if kept.run == before:
            return
        event = None
        if state == "waiting":
            event = self._event("epic_waiting", kept.run, reason=why)
        self._store.save([saved(kept.run, event)])

    def _tell(self, kept: KeptEpic, kind: str, data: dict[str, object]) -> None:
        if kind in _CHANGE_MUCH:
            kept.look()
        self._store.save([saved(kept.run, self._event(kind, kept.run, **data))])

    async def _end(self, kept: KeptEpic, end: End | None, why: str | None) -> None:
        if end is not None and end.reason is None:
            why = "it could not begin; the service's log says why"
        reason = None if end is None else end.reason
        if end is None and kept.stopped.cancel_called:
            reason = "stopped"
        kept.run = structs.replace(
            kept.run, state="ended", why=why, reason=reason, ended=self._clock.wall()
        )
        event = self._event("epic_ended", kept.run, reason=reason or why)
        with suppress(StoreFailed):  # another runtime has the home
            changes: list[Change] = [saved(kept.run, event), EpicsForgotten(KEPT)]
            await self._store.save(changes).wait()

    def _event(self, kind: str, run: EpicRun, **data: Any) -> Event:
        return epic_event(kind, run, self._clock.now(), **data)


def _is_same(run: EpicRun, request: EpicRequest, repo_id: str) -> bool:
    return (run.request.epic, run.repo) == (request.epic, repo_id)
