"""The phases of an issue as jobs of a runtime of its own.

Each try of a phase has a name of its own, by which its job is found again: one that an
earlier worker had begun is gone on with, and one that had ended is not done again.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.agent_verdicts import QUESTION
from forge_actors.domain.deadlines import AGENT_EXECUTION, parse_budget
from forge_actors.domain.epic.asking import (
    NOTES,
    OUTCOME,
    implement_prompt,
    outcome_of,
    review_prompt,
)
from forge_actors.domain.epic.phases import LOOKING, MAX_FINDINGS, Outcome
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.requests import JobQuery
from forge_actors.edges.node import logs
from forge_actors.runtime.again import Given
from forge_actors.runtime.epic_settings import ARGV_TIMEOUT
from forge_actors.runtime.handles import JobHandle
from forge_actors.runtime.kept_logs import STREAMS
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from forge_actors.domain.epic.phases import WorkPhase
    from forge_actors.domain.epic.records import Assignment, EngineState
    from forge_actors.domain.jobs import JobView
    from forge_actors.runtime.epic_settings import EpicSettings, PhaseSettings
    from forge_actors.runtime.handles import Runtime

#: How often an interrupted phase is gone on with.
MAX_ATTEMPTS = 10
#: The agent that is any command, with what it is asked as its input.
COMMAND = "command"
#: What says nothing of the work: nobody is logged in, or an account has no money.
_TO_BE_SEEN_TO = ("PROVIDER_AUTH", "BUDGET_SPENT")
#: Phases that are asked in words.
ASKED: tuple[WorkPhase, ...] = ("implement", "review")


class PhaseJobs:
    """Runs the phases of one issue in its worktree."""

    def __init__(
        self,
        runtime: Runtime,
        folder: str,
        task: Assignment,
        epic: int,
        settings: EpicSettings,
    ) -> None:
        self._runtime = runtime
        self._folder = folder
        self._task = task
        self._epic = epic
        self._settings = settings

    async def run(self, state: EngineState, phase: WorkPhase) -> Outcome:
        """What this try of the phase came to."""
        request = f"{state.run_id}-{phase}-{state.tries.get(phase, 0) + 1}"
        job = await self._known(request) or await self._begin(state, phase, request)
        await JobHandle(self._runtime.control, job).wait()
        view = await self._runtime.control.job(job)  # with what it handed on
        return structs.replace(self._outcome(phase, view), job=view.id)

    async def _known(self, request: str) -> str | None:
        """The job of this try, if it was begun: it is the last one then."""
        for view in await self._runtime.jobs(JobQuery(limit=1)):
            if view.request_id == request:
                return view.id
        return None

    async def _begin(self, state: EngineState, phase: WorkPhase, request: str) -> str:
        table = self._settings.phases.of(phase)
        options: dict[str, Any] = {
            "name": f"{phase} #{self._task.run_key.issue_number}",
            "request_id": request,
            "replay": "safe",
            "max_attempts": MAX_ATTEMPTS,
            "outputs": [OUTCOME, NOTES],
            "timeout": table.timeout or (None if table.agent else ARGV_TIMEOUT),
            "env": self._environment(state, phase),
        }
        if phase in ASKED:
            if phase == "implement":
                resumed = await self._go_on(state, table, request, options["env"])
                if resumed is not None:
                    return resumed
            options["agent"] = table.agent or COMMAND
            options["prompt"] = self._prompt(state, phase, again=False)
            options["isolate"] = False
        job = await self._runtime.submit(Path(self._folder), table.argv, **options)
        return job.id

    async def _go_on(
        self,
        state: EngineState,
        table: PhaseSettings,
        request: str,
        env: dict[str, str],
    ) -> str | None:
        """Have the agent go on in its session; None if there is none."""
        last = state.jobs.get("implement")
        if last is None or table.agent in (None, COMMAND):
            return None
        seconds = AGENT_EXECUTION
        if table.timeout is not None:
            seconds = parse_budget(table.timeout, field="epic.phases.implement.timeout")
        given = Given(request, f"implement #{self._issue}", env, None, seconds, None)
        try:
            view = await self._runtime.control.job(last)
            if view.agent is None or view.agent.name not in table.agents:
                return None
            asked = self._prompt(state, "implement", again=True)
            went = await self._runtime.control.go_on(last, asked, "embedded", given)
        except (NotFound, Refused):
            return None
        return went.id

    @property
    def _issue(self) -> int:
        return self._task.run_key.issue_number

    def _prompt(self, state: EngineState, phase: WorkPhase, *, again: bool) -> str:
        mark = secrets.token_hex(8)
        if phase == "review":
            return review_prompt(self._task, state, mark)
        return implement_prompt(self._task, state, mark, again=again)

    def _environment(self, state: EngineState, phase: WorkPhase) -> dict[str, str]:
        return {
            "EPIC_NUMBER": str(self._epic),
            "EPIC_ISSUE": str(self._issue),
            "EPIC_PHASE": phase,
            "EPIC_BASE": state.base_commit or "",
            "EPIC_BRANCH": state.branch,
        }

    # -- what it came to -------------------------------------------------------------

    def _outcome(self, phase: WorkPhase, view: JobView) -> Outcome:
        table = self._settings.phases.of(phase)
        text = "" if view.agent is None else view.agent.text
        said = outcome_of(view.outputs or {}, text)
        if view.state == "succeeded":
            if said is not None:
                return said
            if phase == "review" and table.agent not in (None, COMMAND):
                return Outcome("failed", f"it gave no verdict ({OUTCOME}: ...)")
            return Outcome("passed")
        error = view.error
        why = view.state if error is None else error.message
        if error is not None and error.code == QUESTION:
            return Outcome("blocked", f"it asks: {why}")
        if error is not None and error.code in _TO_BE_SEEN_TO:
            return Outcome("later", why)
        if said is not None and said.kind in ("findings", "blocked"):
            return said
        own = view.state == "failed" and view.exit_code not in (None, 0)
        if own and phase in LOOKING and table.agent in (None, COMMAND):
            return Outcome("findings", self._printed(view) or why)
        return Outcome("failed", why)

    def _printed(self, view: JobView) -> str:
        """The end of what it printed."""
        base = log_base(str(self._runtime.home), view.id, view.attempt)
        parts = [
            logs.read(base, stream, -MAX_FINDINGS, MAX_FINDINGS).data
            for stream in STREAMS
        ]
        return b"\n".join(parts).decode("utf-8", "replace").strip()
