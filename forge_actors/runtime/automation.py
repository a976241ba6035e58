"""What begins jobs by itself in one runtime, and works through EPICs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.schedules_messages import HeldNoMore
from forge_actors.runtime.activations import consume
from forge_actors.runtime.controllers import RunningControllers
from forge_actors.runtime.epics import RunningEpics, ServedEpics
from forge_actors.runtime.github import GitHubAccess
from forge_actors.runtime.goal_turns import Turns
from forge_actors.runtime.issue_watching import IssueWatching
from forge_actors.runtime.scheduling import Scheduling
from forge_actors.runtime.workflow_plans import context_of
from forge_actors.runtime.workflows import RunningWorkflows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.ports import Clock, WallTimer
    from forge_actors.domain.requests import Accepted, JobRequest, LogChunk
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.candidates import AdmissionDesk
    from forge_actors.runtime.control_following import FollowingControl
    from forge_actors.runtime.ids import IdSource
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.looking import Looking
    from forge_actors.runtime.registry import Registry


class Automation:
    """`run` is its task."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        ids: IdSource,
        submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]],
        cancel: Callable[[str], Awaitable[object]],
        registry: Registry,
        looking: Looking,
        home: Path,
        settings: SettingsInForce,
        output: Callable[[str, int, int], Awaitable[LogChunk]],
        candidates: AdmissionDesk,
        control: Callable[[], FollowingControl],
        timer: Callable[[], WallTimer],
    ) -> None:
        self._home, self._store, self._clock = home, store, clock
        self.github = GitHubAccess(lambda: settings().github, home)
        issues = IssueWatching(clock, self.github)
        self.controllers = RunningControllers(
            *(store, clock, registry, looking, control),
            freed=lambda: self.scheduling.tell(HeldNoMore()),
            timer=timer(),
        )
        self.scheduling = Scheduling(
            *(store, clock, submit, cancel, registry, looking, issues),
            wake=self.controllers.wake,
            timer=timer(),
        )
        turns = Turns(store, clock, home, submit, control)
        context = context_of(store, clock, submit, cancel, output, turns, registry)
        new_id = partial(_new_id, ids, clock)
        self.workflows = RunningWorkflows(context, new_id)
        self.epics = RunningEpics(
            ServedEpics(
                *(store, clock, home, settings, registry, self.github),
                *(candidates, submit, cancel, new_id),
            )
        )

    async def run(self) -> None:
        try:
            # Before anything is decided about a schedule.
            await consume(self._home, self._store, self._clock)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.scheduling.run)
                nursery.start_soon(self.controllers.run)
                nursery.start_soon(self.workflows.run)
                nursery.start_soon(self.epics.run)
        finally:
            await self.github.close()

    def stop(self) -> None:
        """Submit nothing more; jobs that run go on."""
        self.scheduling.stop()
        self.controllers.stop()
        self.workflows.stop()
        self.epics.stop_all()


def _new_id(ids: IdSource, clock: Clock) -> str:
    return ids.make(clock.now())
