"""The engine of one issue: from phase to phase, each boundary saved before the next."""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.admitted import Admitted
from forge_actors.domain.epic.phases import WORK, after, is_settled, moment
from forge_actors.domain.epic.records import (
    Assignment,
    Claim,
    EngineState,
    detail,
    encode,
)
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.machine import Clock
from forge_actors.runtime.effect_guard import EffectSettings
from forge_actors.runtime.epic_effects import NotNow, Publisher
from forge_actors.runtime.epic_phases import PhaseJobs
from forge_actors.runtime.epic_settings import EpicSettings
from forge_actors.runtime.github import open_pull_requests
from forge_actors.runtime.limit_settings import PressureSettings
from forge_actors.runtime.maintenance_settings import MaintenanceSettings
from forge_actors.runtime.notifying import NotifySettings
from forge_actors.runtime.runtime import open_runtime
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.settings import Settings, StatusSettings
from forge_actors.runtime.telemetry_settings import TelemetrySettings

if TYPE_CHECKING:
    from forge_actors.domain.epic.phases import Outcome, Plan
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.github.pulls import PullRequests
    from forge_actors.edges.epic.root import FolderRoot
    from forge_actors.runtime.epic_ground import Ground


class Task(Struct, frozen=True):
    """What is to be done, by the records."""

    given: Admitted
    claim: Claim
    assignment: Assignment
    state: EngineState | None
    common_dir: str
    folder: Place

    def at(self, place: Place) -> Place:
        """Where something of the issue is."""
        return places.within(place, self.folder)

    def path(self, place: Place) -> str:
        return places.path(self.common_dir, self.at(place))


class Engine:
    """Goes from phase to phase, and saves the state at each boundary."""

    def __init__(
        self,
        root: FolderRoot,
        task: Task,
        settings: Settings,
        ground: Ground,
        home: Path,
    ) -> None:
        self._root = root
        self._namespaces = FileNamespaces(root, task.folder)
        self._task = task
        self._settings = settings
        self._epic = settings.epic
        self._ground = ground
        self._home = home
        self._issue = task.given.issue
        self._plan: Plan = settings.epic.plan()
        self._clock = Clock()
        self._say = partial(say, self._issue)

    async def work(self) -> int:
        """To where it settles, or to the next boundary once a stop is asked for."""
        state = self._task.state
        if state is None:
            state = await self._begin()
        state = self._under_way(state)
        if not is_settled(state) and not state.made:
            await self._ground.make(state)
            state = structs.replace(state, made=True, updated_at=self._now(state))
            self._save(state)
        if state.phase in WORK and not self._is_told_to_stop():
            state = await self._phases(state)
        if state.phase == "publish" and not self._is_told_to_stop():
            state = await self._publish(state)
        if is_settled(state):
            told = f": {state.detail}" if state.detail else ""
            self._say(f"settled: {state.phase}{told}")
        return 0

    async def _begin(self) -> EngineState:
        """The first state, saved before anything else is made."""
        claim, given = self._task.claim, self._task.given
        epic = self._task.folder[-1] if self._task.folder else given.epic
        branch = self._epic.branch_of(epic, given.issue)
        plan = await self._ground.plan(branch, self._epic.base)
        state = EngineState(
            run_key=claim.run_key,
            issue_url=self._task.assignment.url,
            run_id=f"r-{secrets.token_hex(8)}",
            phase=self._plan.first(),
            config_digest=self._epic.digest(),
            branch=branch,
            base_commit=plan.base_commit,
            tries={},
            updated_at=self._now(None),
        )
        self._save(state)
        return state

    def _under_way(self, state: EngineState) -> EngineState:
        """The state with the settings as they are now, which somebody has accepted: a
        phase that is not set up any more is passed over."""
        phase = state.phase
        if phase in WORK and phase not in self._plan.phases:
            phase = self._plan.follows(phase)
        return structs.replace(state, phase=phase, config_digest=self._epic.digest())

    async def _phases(self, state: EngineState) -> EngineState:
        home = Path(self._task.path(places.worker_home(self._issue)))
        cwd = await self._ground.enter(state)
        settings = _of_phases(self._settings)
        async with open_runtime(home, settings, stop="shutdown") as runtime:
            epic, task = self._task.given.epic, self._task.assignment
            jobs = PhaseJobs(runtime, cwd, task, epic, self._epic)
            while (phase := state.phase) in WORK:
                self._say(f"{phase} begins, try {state.tries.get(phase, 0) + 1}")
                outcome: Outcome = await jobs.run(state, phase)
                if phase == "implement" and outcome.kind == "passed":
                    outcome = await self._ground.committed(state, outcome)
                state = after(state, phase, outcome, self._plan, self._now(state))
                self._save(state)
                words = f": {detail(outcome.text)}" if outcome.text else ""
                self._say(f"{phase} {outcome.kind}{words}")
                if outcome.kind == "later":
                    raise NotNow(f"see to it, and run the EPIC again: {state.detail}")
                if self._is_told_to_stop():
                    break
        return state

    async def _publish(self, state: EngineState) -> EngineState:
        self._say(f"publishes ({', '.join(self._epic.effects)})")
        publisher = Publisher(
            self._ground.folder,
            self._task.assignment,
            self._epic,
            self._pull_requests,
            self._save,
            self._now,
        )
        state = await publisher.publish(state)
        self._save(state)
        return state

    def _pull_requests(self) -> PullRequests:
        secret = SecretFolder(self._home)
        return open_pull_requests(
            self._settings.github, secret, self._task.assignment.url
        )

    def _is_told_to_stop(self) -> bool:
        """Whether somebody wants it to end here. What cannot be read is taken for
        that."""
        given = self._task.given
        found = self._namespaces.read_stop(given.epic)
        bound = None if found.request is None else found.request.invocation_id
        if found.kind == "none" or bound not in (None, given.invocation_id):
            return False
        self._say("stops between two steps, as it was asked to")
        return True

    def _save(self, state: EngineState) -> None:
        place = self._task.at(places.state(self._issue))
        self._root.write(place, encode(state))

    def _now(self, state: EngineState | None) -> str:
        return moment(timestamp(self._clock.wall()), state)


def _of_phases(settings: Settings) -> Settings:
    """The settings of the runtime of the phases: as they are, without what a service
    does by itself. What is not published by the worker is not published."""
    return structs.replace(
        settings,
        status=StatusSettings(enabled=False),
        maintenance=MaintenanceSettings(enabled=False),
        telemetry=TelemetrySettings(),
        notify=NotifySettings(),
        webhooks=(),
        effects=EffectSettings(wrappers="all"),
        epic=EpicSettings(),
        # Whoever admitted the issue has found the room for it.
        pressure=PressureSettings(min_free_memory_mb=64, max_load_per_cpu=1e9),
    )


def say(issue: int, text: str) -> None:
    """One line of its log. How many there are is bounded by the tries of phases."""
    with suppress(OSError, ValueError):  # who reads it is gone: that stops nothing
        print(f"forge-actors: #{issue}: {text}", file=sys.stderr, flush=True)
