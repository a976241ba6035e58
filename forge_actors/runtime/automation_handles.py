"""What an embedding program holds of what begins jobs by itself in its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.requests import convert
from forge_actors.domain.schedule_views import ScheduleRequest

if TYPE_CHECKING:
    from forge_actors.domain.epic.runs import EpicRunView
    from forge_actors.domain.schedule_views import (
        NextTime,
        OccurrenceView,
        ScheduleView,
    )
    from forge_actors.domain.workflow_views import WorkflowView
    from forge_actors.runtime.control import RuntimeControl


class WorkflowHandle:
    """A workflow that was begun in this runtime. It is named by its `id`.

    Raises:
        NotFound: from every method, once it was removed.
        StoreFailed: from those that change it, if that could not be saved.
    """

    def __init__(self, control: RuntimeControl, workflow_id: str) -> None:
        self._control = control
        self.id = workflow_id

    async def wait(self) -> WorkflowView:
        """Wait until the workflow has ended; how it ended is in the view."""
        return await self._control.wait_workflow(self.id)

    async def show(self) -> WorkflowView:
        """The workflow and its steps as they are now."""
        return await self._control.workflow(self.id)

    async def pause(self) -> WorkflowView:
        """Let nothing new begin; its jobs go on.

        Raises:
            Refused: it has ended; and so the others.
        """
        return await self._control.pause_workflow(self.id)

    async def resume(self) -> WorkflowView:
        """Let it go on."""
        return await self._control.resume_workflow(self.id)

    async def cancel(self) -> WorkflowView:
        """Let nothing new begin, and ask its jobs to end."""
        return await self._control.cancel_workflow(self.id)

    async def retry(self, *steps: str) -> WorkflowView:
        """Begin steps that failed anew, or all of them, and what was left out.

        Raises:
            Refused: it has not ended, or a step did not fail.
        """
        return await self._control.retry_workflow(self.id, steps)

    async def answer(self, step: str, *, yes: bool) -> WorkflowView:
        """Say yes or no to what a step asks.

        Raises:
            NotFound, Refused: there is no such step, or it asks nothing.
        """
        return await self._control.answer_workflow(self.id, step, yes=yes)


class EpicHandle:
    """A run of an EPIC in this runtime. It is named by its `id`.

    Raises:
        NotFound: from every method, once it was forgotten.
    """

    def __init__(self, control: RuntimeControl, run_id: str) -> None:
        self._control = control
        self.id = run_id

    async def wait(self) -> EpicRunView:
        """Wait until it has ended; how it ended is in the view.

        Raises:
            Unavailable: the runtime ends. The next one of the home goes on with it.
        """
        return await self._control.wait_epic(self.id)

    async def show(self) -> EpicRunView:
        """The run as it is now; in its `view` are the issues and their jobs."""
        return await self._control.epic(self.id)

    async def stop(self, *, now: bool = False) -> EpicRunView:
        """Begin nothing more, and let its workers come to their next boundary, or
        interrupt them now. `wait` returns when that is done.

        Raises:
            Refused: it has ended.
        """
        return await self._control.stop_epic(self.id, "now" if now else "drain")


class ScheduleHandle:
    """A schedule of this runtime. It is named by its `name`.

    Raises:
        NotFound: from every method, once it was removed.
        StoreFailed: from those that change it, if that could not be saved.
        Unavailable: schedules are not looked at any more.
    """

    def __init__(self, control: RuntimeControl, name: str) -> None:
        self._control = control
        self.name = name

    async def show(self) -> ScheduleView:
        """The schedule as it is now."""
        return await self._control.schedule(self.name)

    async def edit(self, **fields: Any) -> ScheduleView:
        """Have it be as it is but for these fields of `ScheduleRequest`.

        Raises:
            InvalidInput: naming the field that is wrong.
            Refused: somebody else changed it meanwhile.
        """
        now = await self._control.schedule(self.name)
        before = convert({**now.definition, "name": now.name}, ScheduleRequest)
        wanted = {**structs.asdict(before), **fields, "name": now.name}
        request = convert(wanted, ScheduleRequest)
        return await self._control.edit_schedule(request, now.revision)

    async def pause(self) -> ScheduleView:
        """Let none of its windows run until `resume`; they are gone then."""
        return await self._control.pause_schedule(self.name)

    async def resume(self) -> ScheduleView:
        """Let its windows run again."""
        return await self._control.resume_schedule(self.name)

    async def remove(self) -> ScheduleView:
        """Have it come no more. Its jobs stay as they are."""
        return await self._control.remove_schedule(self.name)

    async def run(self, request_id: str | None = None) -> OccurrenceView:
        """Have it run now, once for each request id.

        Raises:
            Refused: a job of it has not ended, and its policy is to skip then.
        """
        return await self._control.run_schedule(self.name, request_id)

    async def next_times(self, count: int = 10) -> list[NextTime]:
        """The times at which it comes next."""
        return await self._control.next_times(self.name, count)

    async def occurrences(self, limit: int = 50) -> list[OccurrenceView]:
        """What became of its windows, newest first."""
        return await self._control.occurrences(self.name, limit)
