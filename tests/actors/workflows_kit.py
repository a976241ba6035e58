"""What the tests of workflows share: actors of workflows over fakes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs

from forge_actors.actors.workflows_messages import Context, Tell
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.rounds import Marks
from forge_actors.domain.workflow_definitions import Definition, StepDefinition
from forge_actors.domain.workflow_steps import StepEnd, Workflow
from forge_actors.runtime.workflow_plans import plan_of
from forge_actors.runtime.workflows import RunningWorkflows
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import ended_waiting, job, repository
from forge_actors.testing.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from forge_actors.domain.jobs import State
    from forge_actors.domain.rounds import Turn

JOB = JobRequest(repo="app", argv=["true"])


def step(name: str, *after: str, **fields: Any) -> StepDefinition:
    wanted = {"request": JOB, **fields}
    return StepDefinition(name, after=after, **wanted)


class World:
    """The workflows of a runtime over fakes, and what a test does with them."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore() if store is None else store
        self.workflows: RunningWorkflows
        #: What was submitted, by the id of its job, and the calls it came in.
        self.requests: dict[str, JobRequest] = {}
        self.calls: list[int] = []
        self.cancelled: list[str] = []
        #: Raised by a submission of a job with this name, or of any.
        self.refusals: dict[str | None, Exception] = {}
        self.outputs: dict[str, dict[str, str]] = {}
        #: What jobs leave in their turn of a goal, by name.
        self.marks: dict[str | None, Marks] = {}
        #: Ids of repositories that are not there any more.
        self.removed: set[str] = set()
        self.ids = 0

    def again(self) -> World:
        """The world of a runtime that takes over what is durable here."""
        other = World(MemoryStore(durable=self.store.durable))
        other.requests, other.outputs = self.requests, self.outputs
        other.marks = self.marks
        return other

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[World, None]:
        context = Context(
            store=self.store,
            clock=self.clock,
            plan=plan_of,
            submit=self._submit,
            cancel=self._cancel,
            result=self._result,
            lines=self._lines,
            marks=self._marks,
            has_repository=lambda repo: repo not in self.removed,
        )
        self.workflows = RunningWorkflows(context, self._new_id)
        async with self.store.open(), trio.open_nursery() as nursery:
            if not self.store.durable.repositories:
                await self.store.save([repository()]).wait()
            nursery.start_soon(self.workflows.run)
            yield self
            nursery.cancel_scope.cancel()

    async def begin(self, *steps: StepDefinition, **fields: Any) -> str:
        definition = Definition("release", "portfolio", steps, **fields)
        workflow = Workflow(self._new_id(), "release", "portfolio", "0", 0.0)
        await self.workflows.begin(workflow, definition, None)
        await trio.testing.wait_all_tasks_blocked()
        return workflow.id

    async def end(self, name: str, state: State = "succeeded") -> None:
        """The job of the step with this name ends."""
        [key] = [
            key
            for key, request in self.requests.items()
            if request.name == name and self.store.durable.jobs[key].state == "queued"
        ]
        await self.store.save([ended_waiting(key, state=state)]).wait()
        await trio.testing.wait_all_tasks_blocked()

    async def now(self, workflow: str) -> tuple[Workflow, dict[str, str]]:
        told = await self.workflows.ask(workflow, Tell)
        assert told is not None
        header, _, steps = told
        return header, {one.name: one.state for one, _ in steps}

    def names(self) -> list[str | None]:
        """The names of the jobs that were submitted, in order."""
        return [request.name for request in self.requests.values()]

    def _new_id(self) -> str:
        self.ids += 1
        return f"{len(self.store.durable.workflows):03}{self.ids:03}"

    async def _submit(self, requests: Sequence[JobRequest]) -> list[str]:
        await trio.lowlevel.checkpoint()
        self.calls.append(len(requests))
        for request in requests:
            for named in (None, request.name):
                if named in self.refusals:
                    raise self.refusals[named]
        return [await self._accept(request) for request in requests]

    async def _accept(self, request: JobRequest) -> str:
        assert request.request_id is not None
        known = self.store.job_of_request(request.request_id)
        if known is not None:
            return known
        key = f"job{len(self.store.durable.jobs)}"
        added = job(key)
        details = structs.replace(added.details, request_id=request.request_id)
        self.requests[key] = request
        await self.store.save([structs.replace(added, details=details)]).wait()
        return key

    async def _cancel(self, key: str) -> None:
        self.cancelled.append(key)
        await self.store.save([ended_waiting(key, state="cancelled")]).wait()

    async def _result(self, key: str, state: State) -> StepEnd:
        await trio.lowlevel.checkpoint()
        return StepEnd(state, outputs=self.outputs.get(key, {}))

    async def _lines(self, key: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.outputs.get(key, {}).values())

    async def _marks(self, key: str, turn: Turn, end: StepEnd) -> Marks:
        await trio.lowlevel.checkpoint()
        assert end.state, turn
        return self.marks.get(self.requests[key].name, Marks())


def named(name: str, *after: str, **fields: Any) -> StepDefinition:
    """A step whose job has its name."""
    request = structs.replace(JOB, name=name, **fields.pop("job", {}))
    return step(name, *after, request=request, **fields)
