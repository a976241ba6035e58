"""What can be asked of workflows."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.workflows_messages import (
    Answer,
    Cancel,
    Count,
    Pause,
    Resume,
    Tell,
)
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.goals import Goal
from forge_actors.domain.policies import check_work
from forge_actors.domain.redaction import redact
from forge_actors.domain.rounds import used
from forge_actors.domain.step_waits import holders_of, of_job, without_job
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.workflow_definitions import digest_of
from forge_actors.domain.workflow_records import (
    UnreadableWorkflow,
    header_of,
    loaded,
    unreadable,
)
from forge_actors.domain.workflow_steps import Workflow
from forge_actors.domain.workflow_views import GoalView, StepView, WorkflowView
from forge_actors.runtime.campaign_requests import CampaignDefiner
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.goal_requests import GoalDefiner
from forge_actors.runtime.workflow_plans import plan_of
from forge_actors.runtime.workflow_requests import Definer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from forge_actors.actors.mailbox import Reply
    from forge_actors.actors.workflows_messages import Message
    from forge_actors.domain.workflow_definitions import Definition, StepDefinition
    from forge_actors.domain.workflow_steps import Step
    from forge_actors.domain.workflow_views import WorkflowRequest

#: Workflows that one answer tells of.
MAX_TOLD = 500
#: Steps of a workflow of which it is told what they wait for, with a job and without.
MAX_WAITS = 200
#: Characters of an id that may stand for it.
MIN_PREFIX = 4


class WorkflowControl(JobControl):
    """The part of the port `Control` that is about workflows."""

    async def run_workflow(
        self, request: WorkflowRequest, *, dry_run: bool = False, origin: str = "cli"
    ) -> WorkflowView:
        if request.request_id is not None:
            known = self._store.read("workflow_of_request", request.request_id)
            if known:
                return await self.workflow(known[0][0])
        definer = Definer(request, self._registry.find, self._admission.check)
        if request.kind == "campaign":
            names = [repo.name for repo in self._registry.all() if repo.enabled]
            definition = await CampaignDefiner(request, definer, names).define()
        elif request.kind == "goal":
            definition = await GoalDefiner(request, definer).define()
        else:
            definition = await definer.define()
        wall = self._clock.wall()
        workflow = Workflow(
            id=self.running_workflows.new_id(),
            name=definition.name,
            kind=definition.kind,
            digest=digest_of(definition),
            made=wall,
            origin=origin,
        )
        if not dry_run:
            check_work(self._store.policy, "create", None)
            begin = self.running_workflows.begin
            begun = await begin(workflow, definition, request.request_id)
            if begun != workflow.id:  # somebody else asked for the same meanwhile
                return await self.workflow(begun)
        return _view(workflow, definition, _steps(definition, []))

    async def workflows(
        self, state: str | None = None, *, before: str | None = None, limit: int = 50
    ) -> list[WorkflowView]:
        if not 1 <= limit <= MAX_TOLD:
            raise InvalidInput("limit", f"must be from 1 to {MAX_TOLD}")
        found: list[WorkflowView] = []
        behind = before or "~"
        if state is None:
            rows = self._store.read("workflows", behind, limit)
        else:
            rows = self._store.read("workflows_in_state", behind, limit, state)
        for key, body in rows:
            told = await self.running_workflows.ask(key, Count)
            if told is not None:
                workflow, definition, counts, steps = told
                view = _view(workflow, definition, steps)
                found.append(structs.replace(view, counts=counts, steps=()))
            else:
                found.append(_view(_header(key, body), None, ()))
        return found

    async def workflow(self, name: str) -> WorkflowView:
        key = self._workflow_meant(name)
        told = await self.running_workflows.ask(key, Tell)
        if told is not None:
            return await self._with_waits(_view(*told), told[1].parallel)
        row = self._store.workflow(key)
        if row is None:
            raise NotFound(f"there is no workflow {name!r}")
        try:
            workflow, definition, steps = loaded(*row)
        except UnreadableWorkflow as error:
            header = structs.replace(_header(key, row[0][1]), why=str(error))
            return _view(structs.replace(header, state="quarantined"), None, ())
        return _view(workflow, definition, _steps(definition, steps))

    async def pause_workflow(self, name: str) -> WorkflowView:
        return await self._told_to(name, Pause)

    async def resume_workflow(self, name: str) -> WorkflowView:
        check_work(self._store.policy, "continue", self._workflow_meant(name))
        return await self._told_to(name, Resume)

    async def cancel_workflow(self, name: str) -> WorkflowView:
        return await self._told_to(name, Cancel)

    async def answer_workflow(self, name: str, step: str, *, yes: bool) -> WorkflowView:
        return await self._told_to(name, lambda reply: Answer(step, yes, reply))

    async def retry_workflow(
        self, name: str, steps: Sequence[str] = ()
    ) -> WorkflowView:
        key = self._workflow_meant(name)
        check_work(self._store.policy, "continue", key)
        await self.running_workflows.retry(key, steps)
        return await self.workflow(key)

    async def wait_workflow(self, name: str) -> WorkflowView:
        key = self._workflow_meant(name)
        await self.running_workflows.wait(key)
        return await self.workflow(key)

    # -- the parts -------------------------------------------------------------------

    async def _with_waits(
        self, view: WorkflowView, parallel: int | None
    ) -> WorkflowView:
        """The same, its first steps with what they wait for."""
        jobs = [step.job for step in view.steps if step.state == "running"]
        full = parallel is not None and len(jobs) >= parallel
        rows = self._store.read("view_jobs", json.dumps(jobs[:MAX_WAITS]))
        views = {job.id: job for job in await self._views(rows)}
        holders = [job for one in views.values() for job in holders_of(one)]
        works = dict(self._store.read("works_of", json.dumps(holders)))
        states = {step.name: step.state for step in view.steps}
        steps = list(view.steps)
        told = 0
        for place, step in enumerate(steps):
            wait = None
            if step.state == "waiting" and step.why is None and told < MAX_WAITS:
                before = {name: states[name] for name in step.after}
                wait = without_job(view.state, before, full=full)
                told += wait is not None
            elif step.state == "running" and step.job in views:
                wait = of_job(views[step.job], works)
            if wait is not None:
                steps[place] = structs.replace(step, waiting=wait)
        return structs.replace(view, steps=tuple(steps))

    def _workflow_meant(self, name: str) -> str:
        """The id of the workflow that a name, an id or the beginning of one means.

        Raises:
            NotFound: there is none. Refused: the beginning is that of several.
        """
        rows = self._store.read("workflow_named", name)
        if rows:
            return str(rows[0][0])
        if len(name) >= MIN_PREFIX:
            rows = self._store.read("workflows_meant", name)
            if len(rows) > 1:
                raise Refused(f"{name!r} is the beginning of several workflows")
            if rows:
                return str(rows[0][0])
        raise NotFound(f"there is no workflow {name!r}")

    async def _told_to(
        self, name: str, make: Callable[[Reply[Workflow]], Message]
    ) -> WorkflowView:
        key = self._workflow_meant(name)
        if await self.running_workflows.ask(key, make) is None:
            view = await self.workflow(key)
            raise Refused(f"workflow {view.name!r} has ended: it is {view.state}")
        return await self.workflow(key)


def _steps(
    definition: Definition, known: list[Step]
) -> list[tuple[Step, StepDefinition]]:
    plan = plan_of(definition, known)
    return [(step, plan.define(step.name)) for step in plan.steps]


def _header(key: str, body: bytes) -> Workflow:
    try:
        return header_of(body)
    except UnreadableWorkflow as error:
        return unreadable(key, str(error))


def _view(
    workflow: Workflow,
    definition: Definition | None,
    steps: Iterable[tuple[Step, StepDefinition]],
) -> WorkflowView:
    steps = list(steps)
    told = tuple(_step_view(step, defined) for step, defined in steps)
    counts: dict[str, int] = dict(Counter(step.state for step in told))
    return WorkflowView(
        id=workflow.id,
        name=workflow.name,
        kind=workflow.kind,
        state=workflow.state,
        why=workflow.why,
        digest=workflow.digest,
        origin=workflow.origin,
        made_at=timestamp(workflow.made),
        ended_at=_moment(workflow.ended),
        counts=counts or workflow.counts,
        source=None if definition is None else definition.source,
        goal=None if definition is None else _goal_view(definition, steps),
        steps=told,
    )


def _goal_view(
    definition: Definition, steps: Sequence[tuple[Step, StepDefinition]]
) -> GoalView | None:
    terms = definition.goal
    if terms is None:
        return None
    rounds = Goal(definition, [structs.replace(step) for step, _ in steps]).rounds
    tokens, cost = used(rounds)
    return GoalView(
        round=len(rounds),
        rounds=terms.rounds,
        seconds=terms.seconds,
        used_tokens=tokens,
        tokens=terms.tokens,
        used_cost=cost,
        cost=terms.cost,
    )


def _step_view(step: Step, defined: StepDefinition) -> StepView:
    return StepView(
        name=step.name,
        state=step.state,
        after=defined.after,
        job=step.job,
        tries=step.tries,
        why=step.why,
        gate=defined.gate,
        outputs={name: redact(text) for name, text in step.outputs.items()},
        began_at=_moment(step.began),
        ended_at=_moment(step.ended),
        validation=step.validation,
    )


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
