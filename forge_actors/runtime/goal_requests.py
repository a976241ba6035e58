"""From what people write of a goal to what it is begun with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.deadlines import parse_budget
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.goals import PLACE
from forge_actors.domain.placeholders import names_in
from forge_actors.domain.rounds import MAX_ROUNDS, Terms
from forge_actors.domain.spending import MAX_COST, MAX_TOKENS
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_views import GoalRequest, StepRequest

if TYPE_CHECKING:
    from forge_actors.domain.rounds import Role
    from forge_actors.domain.workflow_definitions import StepDefinition
    from forge_actors.domain.workflow_views import PartRequest, WorkflowRequest
    from forge_actors.runtime.workflow_requests import Definer

#: The kind of a check that says none: its end is a verdict, or none.
CHECK = "check"


class GoalDefiner:
    """Makes the definition of one goal."""

    def __init__(self, request: WorkflowRequest, definer: Definer) -> None:
        self._request = request
        self._definer = definer

    async def define(self) -> Definition:
        """What the request says, checked.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        request = self._request
        self._definer.check()
        if request.steps:
            raise InvalidInput("step", "a goal has an [act] and a [check], no steps")
        goal = _terms(request.goal or GoalRequest())
        act = await self._part(request.act, "act")
        check = await self._part(request.check, "check")
        return Definition(
            name=request.name,
            kind="goal",
            steps=(act, check),
            goal=goal,
            parameters=request.parameters,
            source=request.source,
        )

    async def _part(self, part: PartRequest | None, role: Role) -> StepDefinition:
        if part is None:
            problem = "is missing: a goal has an [act] and a [check]"
            raise InvalidInput(role, problem)
        named = self._request.repo
        if named is None:
            raise InvalidInput("workflow.repo", "is missing: which repository is it?")
        if "in_worktree" in part.job:
            problem = "cannot be said: a goal works in one worktree of its own"
            raise InvalidInput(f"{role}.job.in_worktree", problem)
        if role == "check" and part.job.get("agent") is not None:
            problem = "is for the act: a check is a command that passes or fails"
            raise InvalidInput(f"{role}.job.agent", problem)
        job = part.job
        if role == "check":
            job = {"kind": CHECK, **job}
        made = self._definer.step_of(StepRequest(name=role, job=job), role)
        assert made.request is not None, part
        for name in sorted(names_in(made.request) - {*self._request.parameters, PLACE}):
            raise InvalidInput(f"{role}.job", f"${{{name}}} is no parameter")
        return await self._definer.placed(made, named, role)


def _terms(goal: GoalRequest) -> Terms:
    limits = (("rounds", 1), ("repeats", 2), ("failures", 1))
    for name, least in limits:
        if not least <= getattr(goal, name) <= MAX_ROUNDS:
            raise InvalidInput(f"goal.{name}", f"must be from {least} to {MAX_ROUNDS}")
    if goal.tokens is not None and not 0 < goal.tokens <= MAX_TOKENS:
        raise InvalidInput("goal.tokens", f"must be from 1 to {MAX_TOKENS}")
    if goal.cost is not None and not 0 < goal.cost <= MAX_COST:
        raise InvalidInput("goal.cost", f"must be over 0, to {MAX_COST:g}")
    seconds = None
    if goal.time is not None:
        seconds = parse_budget(goal.time, field="goal.time")
    return Terms(
        rounds=goal.rounds,
        seconds=seconds,
        tokens=goal.tokens,
        cost=goal.cost,
        repeats=goal.repeats,
        failures=goal.failures,
    )
