"""Which plan a workflow goes by, and what its jobs came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.workflows import Context
from forge_actors.domain.campaigns import Campaign
from forge_actors.domain.goals import Goal
from forge_actors.domain.redaction import redact
from forge_actors.domain.rounds import TurnRequest
from forge_actors.domain.workflow_steps import StepEnd
from forge_actors.domain.workflows import Graph
from forge_actors.runtime.step_ends import step_end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from forge_actors.domain.jobs import State
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.requests import Accepted, JobRequest
    from forge_actors.domain.workflow_definitions import Definition
    from forge_actors.domain.workflow_steps import Plan, Step
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.goal_turns import Turns
    from forge_actors.runtime.registry import Registry

#: Bytes of the output that tells what a campaign is about.
MAX_OUTPUT = 1 << 20


def plan_of(definition: Definition, steps: list[Step]) -> Plan:
    """The plan of its kind, from what was saved of its steps."""
    if definition.kind == "goal":
        return Goal(definition, steps)
    kind = Campaign if definition.kind == "campaign" else Graph
    return kind(definition, steps)


def context_of(
    store: SqliteStore,
    clock: Clock,
    submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]],
    cancel: Callable[[str], Awaitable[object]],
    output: Callable[[str, int], Awaitable[bytes]],
    turns: Turns,
    registry: Registry,
) -> Context:
    """What the actors of workflows are given by a runtime."""

    async def submit_all(requests: Sequence[JobRequest]) -> list[str]:
        if isinstance(requests[0], TurnRequest):  # a goal has one step at a time
            return [await turns.submit(requests[0])]
        return [accepted.id for accepted in await submit(requests)]

    async def result(job: str, state: State) -> StepEnd:
        return step_end(store, job, state)

    async def lines(job: str) -> tuple[str, ...]:
        data = await output(job, MAX_OUTPUT + 1)
        if len(data) > MAX_OUTPUT:
            return ()
        return tuple(redact(data.decode(errors="replace")).splitlines())

    return Context(
        store=store,
        clock=clock,
        plan=plan_of,
        submit=submit_all,
        cancel=cancel,
        result=result,
        lines=lines,
        marks=turns.marks,
        has_repository=lambda repo: registry.get(repo) is not None,
    )
