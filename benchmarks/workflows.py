"""What a portfolio costs for each of its jobs that ends, at two sizes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

from benchmarks.rows import Bench, Sample
from forge_actors.actors.workflows import Context
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.rounds import Marks
from forge_actors.domain.workflow_definitions import Definition, StepDefinition
from forge_actors.domain.workflow_steps import StepEnd, Workflow
from forge_actors.edges.machine import Clock
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.workflow_plans import plan_of
from forge_actors.runtime.workflows import RunningWorkflows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from forge_actors.domain.jobs import State
    from forge_actors.edges.sqlite.store import SqliteStore

SMALL, LARGE = 1000, 10_000
#: Each step runs after so many before it.
BEFORE = 3


def measure(bench: Bench) -> Iterable[Sample]:
    """Move a portfolio from its first step to its last, over a real store."""
    small = trio.run(_measure, bench, SMALL)
    large = trio.run(_measure, bench, bench.registered)
    note = "CPU time for a step: its job, its end, what begins after it"
    return [
        Sample("workflow-step-small", small, "us", f"{note}; {SMALL} steps"),
        Sample("workflow-step", large, "us", f"{note}; {bench.registered} steps"),
    ]


class _Ending:
    """The store, but that each job has ended as soon as somebody asks."""

    def __init__(self, store: SqliteStore) -> None:
        self.save = store.save
        self.workflow = store.workflow
        self.active_workflows = store.active_workflows
        self.workflow_of_request = store.workflow_of_request
        self.job_of_request = store.job_of_request

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        del job
        notify("succeeded")


async def _measure(bench: Bench, steps: int) -> float:
    path = bench.folder / f"workflows-{time.monotonic_ns()}.sqlite"
    clock = Clock()

    async def submit(requests: Sequence[JobRequest]) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [str(request.request_id) for request in requests]

    async def cancel(_: str) -> None:
        await trio.lowlevel.checkpoint()

    async def result(_: str, state: State) -> StepEnd:
        await trio.lowlevel.checkpoint()
        return StepEnd(state)

    async def lines(_: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return ()

    async def marks(*_: object) -> Marks:
        await trio.lowlevel.checkpoint()
        return Marks()

    async with (
        open_store(path, repository_workers=4, overtake_after=1800.0) as store,
        trio.open_nursery() as nursery,
    ):
        context = Context(
            store=_Ending(store),
            clock=clock,
            plan=plan_of,
            submit=submit,
            cancel=cancel,
            result=result,
            lines=lines,
            marks=marks,
            has_repository=lambda _: True,
        )
        running = RunningWorkflows(context, lambda: "1")
        nursery.start_soon(running.run)
        definition = Definition("bench", "portfolio", _steps(steps))
        workflow = Workflow("1", "bench", "portfolio", "", 0.0)
        begin = time.process_time()
        await running.begin(workflow, definition, None)
        await running.wait("1")
        took = time.process_time() - begin
        nursery.cancel_scope.cancel()
    return took / steps * 1e6


def _steps(count: int) -> tuple[StepDefinition, ...]:
    request = JobRequest(repo="app", argv=["true"])
    return tuple(
        StepDefinition(
            f"s{number}",
            request=request,
            after=tuple(
                dict.fromkeys(f"s{number * n // (n + 1)}" for n in range(1, BEFORE + 1))
            )
            if number > 1
            else (),
        )
        for number in range(count)
    )
