"""What can be asked of the service itself: how it is, when it is so, and its drain."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import to_builtins

from forge_actors import __version__
from forge_actors.actors.repository_messages import LetGoOfLeft
from forge_actors.actors.supervisor_messages import Count, SetPause, Stop
from forge_actors.domain.budget_items import spent_view
from forge_actors.domain.capacity import WORKERS
from forge_actors.domain.changes import Noted
from forge_actors.domain.disk import sizes_of
from forge_actors.domain.errors import MailboxClosed, Refused, StoreFailed, Unavailable
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import STATES
from forge_actors.domain.maintenance_view import maintenance_view
from forge_actors.domain.quarantine import nothing_kept
from forge_actors.domain.readiness import answers
from forge_actors.domain.releases import ReleaseCheck
from forge_actors.domain.scopes import DRAIN
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.machine import open_files
from forge_actors.runtime.control_capacity import (
    NO_SURVEY,
    SURVEY_SECONDS,
    CapacityControl,
)
from forge_actors.runtime.control_inbox import InboxControl
from forge_actors.runtime.control_output import OutputControl
from forge_actors.runtime.control_policies import policy_view
from forge_actors.runtime.installation import known_installation
from forge_actors.runtime.served_release import superseded

if TYPE_CHECKING:
    from forge_actors.domain.releases import ActiveRelease
    from forge_actors.domain.settings import SettingChange, SettingView


class ServiceControl(OutputControl, InboxControl, CapacityControl):
    """The part of the port `Control` that is about the service as a whole."""

    @property
    def agent_pid(self) -> int:
        """The process id of the node agent that runs now."""
        return self._launcher.agent_pid

    @property
    def instance(self) -> str:
        """This start of the runtime, and no other."""
        owner = self._store.owner
        return "" if owner is None else owner.instance

    def runs_jobs(self) -> bool:
        """Whether any job runs, or is about to."""
        return bool(self._store.tally.reserved)

    async def news(self) -> bool:
        """Wait until something happened; False if the runtime ends."""
        return await self._events.news(self.last_event)

    async def saving(self, *, works: bool) -> None:
        """Wait until the store can save, or until it cannot."""
        await self._store.saving.wait_value(works)

    def stall_after(self) -> float:
        """Seconds at one message after which an actor counts as stalled."""
        return self._settings().watchdog.seconds

    def note(self, kind: str, data: dict[str, object]) -> None:
        """Put something about the service into the event log, if that is possible."""
        with suppress(StoreFailed):
            self._store.save([Noted(Event(kind, self._clock.now(), data=data))])

    async def status(self) -> dict[str, object]:
        answered = await self._survey()
        survey = answered or NO_SURVEY
        counts = self._store.tally.by_state()
        capacity, providers = self._in_use(survey)
        pauses = self._pause_views()
        files, gateway = open_files(), self._settings().gateway
        trouble, owner = self._store.trouble, self._store.owner
        degraded = [f"the store saves nothing: {trouble}"] if trouble else []
        if survey.silence is not None:
            degraded.append(
                f"the node agent gave no sign of life for {survey.silence:.0f} s, so"
                " the leases of what runs are unconfirmed; they are kept"
            )
        if answered is None:
            degraded.append(f"the supervisor did not answer in {SURVEY_SECONDS:g} s")
        served = self._served
        if self.successor is not None:
            degraded.append(f"{self.successor.release} is the active release now")
        known = self.board.now
        ready = known.ready and not degraded and not self.stop_requested.is_set()
        release = "not_observed" if served is None else served.coherence
        if held := self._launcher.held_back:
            # It takes requests all the same, and starts them when there is room.
            degraded.append(f"{len(held)} starts wait for the system: {held[0]}")
        degraded += self._looking.trouble + self._untold
        degraded += self.board.complaints.values()
        degraded += self.scheduling.trouble + self.controllers.trouble
        disk, visits = self._disk.view(), self._store.class_visits()
        if little := self._disk.problem:
            degraded.append(little)
        maintenance = maintenance_view(
            self._settings().cleaning,
            self._store.clean_run(),
            visits,
            self._roots,
            timestamp,
            given_up=survey.no_clean_up,
        )
        return {
            "service": {
                "pid": os.getpid(),
                "agent_pid": self.agent_pid,
                "version": __version__,
                "started_at": timestamp(self._started_at),
                "home": str(self._home),
                "endpoint": self.endpoint,
                "installation": known_installation(self._home),
                "instance": None if owner is None else owner.instance,
                "epoch": None if owner is None else owner.epoch,
                "release": None
                if served is None
                else {
                    "id": served.release.id,
                    "path": served.release.path,
                    "revision": served.active.revision,
                },
            },
            "ready": ready,
            "stage": known.stage,
            "readiness": {
                **known.diagnostics,
                "database": "fail" if trouble else known.diagnostics["database"],
                "releaseCoherence": release,
            },
            "reasons": known.reasons,
            **to_builtins(
                answers(ready=ready, clean_up=maintenance["problem"], release=release)
            ),
            "degraded": degraded,
            "draining": survey.draining,
            "policy": to_builtins(policy_view(self._store)),
            "capacity": capacity,
            "providers": providers,
            "budgets": to_builtins(
                [spent_view(each, timestamp) for each in self._spent_budgets()]
            ),
            "agents": []
            if self._programs is None
            else to_builtins(self._programs.look()),
            "quarantined": self._quarantined(),
            "poisoned": self._poisoned(),
            "inbox": {"items": self._inbox(0).count},
            "pauses": [to_builtins(pause) for pause in pauses],
            "maintenance": maintenance,
            "disk": {**disk, "home": sizes_of(visits.values())},
            "counts": {state: counts[state] for state in STATES if counts.get(state)},
            "pressure": {
                "active": survey.pressure is not None,
                "reason": survey.pressure,
            },
            "open_files": {
                "limit": files.limit,
                "workers": files.workers,
                "connections": files.connections,
                "streams": files.streams(
                    gateway.connections + gateway.tcp_connections, gateway.streams
                ),
                "short_of": files.short_of(
                    workers=self._settings().limits.workers,
                    connections=gateway.connections,
                    streams=gateway.streams,
                ),
            },
            "repositories": {"known": len(self._registry.all()), "awake": survey.awake},
            "store": {"synchronous": "FULL", "last_event": self.last_event},
            "mcp": self.mcp_view(),
        }

    async def quarantined(self) -> list[dict[str, object]]:
        return self._quarantined()

    async def release_quarantine(self, selector: str) -> dict[str, object]:
        job = self._store.match(selector)
        view = self._kept_for(job)
        repo = self._row(job)[25]
        freed: bool = await self._ask(repo, lambda reply: LetGoOfLeft(job, reply))
        if not freed:
            raise nothing_kept(job)  # it was proven gone just then
        return view

    def _kept_for(self, job: str) -> dict[str, object]:
        for view in self._quarantined():
            if view["job"] == job:
                return view
        raise nothing_kept(job)

    async def settings(self) -> list[SettingView]:
        return self._settings.loaded.views()

    async def reload_settings(self) -> list[SettingChange]:
        return await self._settings.reload()

    async def wait_ready(self) -> None:
        if not await self._held.wait(self._ready):
            raise _ending()

    async def _ready(self) -> None:
        await self.board.became_ready.wait()
        await self._store.saving.wait_value(True)

    async def wait_idle(self) -> None:
        while self._store.active:
            if not await self._events.news(self.last_event):
                raise _ending()

    async def drain(self) -> None:
        await self._set_drain(on=True)

    async def undrain(self) -> None:
        await self._set_drain(on=False)

    async def wait_drained(self) -> None:
        while True:
            last = self.last_event
            survey = await self._supervisor.ask(Count)
            if not survey.draining:
                raise Refused("the drain was cancelled")
            # A grant without a job was withdrawn: it will not be used.
            if not survey.tokens[WORKERS].jobs:
                break
            if not await self._events.news(last):
                raise _ending()
        # Tokens are given back with the save of an end: only now is that durable.
        await self._store.save([]).wait()

    async def _set_drain(self, *, on: bool) -> None:
        await self._supervisor.ask(
            lambda reply: SetPause(DRAIN, on, jobs=False, reply=reply)
        )

    def close(self) -> None:
        """The runtime ends: whoever waits for what will not happen learns so."""
        self._held.close()
        self._endings.close()

    def request_stop(self, *, jobs: bool = False) -> int:
        self.ends_jobs = self.ends_jobs or jobs
        self.stop_requested.set()
        return len(self._store.tally.reserved)

    def check_release(self) -> ReleaseCheck:
        if self._served is None:
            raise Refused("this runtime is of no release: it belongs to its program")
        self._served.check()
        successor = self.successor
        active = self._served.active if successor is None else successor
        return ReleaseCheck(
            release=self._served.release.id,
            active=active.release.id,
            revision=active.revision,
            superseded=successor is not None,
            running=len(self._store.tally.reserved),
        )

    @property
    def successor(self) -> ActiveRelease | None:
        """The release that was made the active one in place of this one."""
        return None if self._served is None else self._served.successor

    async def watch_release(self) -> None:
        """Return when another release was made the active one."""
        if self._served is None:
            await trio.sleep_forever()
        else:
            await self._served.watch()

    def supersede(self, successor: ActiveRelease) -> None:
        """Another release serves from now on: begin nothing more, and hand over."""
        event = superseded(successor, self._clock.now())
        with suppress(MailboxClosed):  # it ends already
            self._supervisor.tell(Stop("detached", event))
        self.stop_requested.set()


def _ending() -> Unavailable:
    return Unavailable("the service ends")
