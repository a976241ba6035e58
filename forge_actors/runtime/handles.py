"""What an embedding program holds: its runtime, and the jobs it has given to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.runtime.event_stream import EventStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.repositories import RepositoryView
    from forge_actors.domain.requests import JobQuery
    from forge_actors.domain.workflow_views import WorkflowView
    from forge_actors.runtime.control import RuntimeControl
    from forge_actors.runtime.settings import Settings


class JobHandle:
    """A job that was accepted by this runtime."""

    def __init__(self, control: RuntimeControl, job_id: str) -> None:
        self._control = control
        self.id = job_id

    async def wait(self) -> JobView:
        """Wait until the job has ended; how it ended is in the view."""
        [view] = await self._control.wait([self.id])
        return view

    async def show(self) -> JobView:
        """The job as it is now."""
        return await self._control.job(self.id)

    async def why(self) -> str:
        """Why the job is where it is, in a sentence."""
        return (await self._control.why(self.id)).sentence

    async def cancel(self, *, grace: float | None = None) -> JobView:
        """End the job; one that runs is only asked to stop when this returns."""
        return await self._control.cancel(self.id, grace=grace)


class WorkflowHandle:
    """A workflow that was begun in this runtime."""

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


class Runtime:
    """A running runtime; made by `open_runtime`."""

    def __init__(self, home: Path, settings: Settings, control: RuntimeControl) -> None:
        self.home = home
        #: Those it was started with.
        self.settings = settings
        #: The same runtime as entry points see it.
        self.control = control

    async def add_repository(
        self, path: str | Path, name: str | None = None
    ) -> RepositoryView:
        """Register the git repository of a folder.

        Raises:
            InvalidInput: the folder is in no git work tree, or the name is not fit.
            Refused: the name is taken.
        """
        return await self.control.add_repository(str(path), name)

    async def submit(
        self, repo: str | Path, argv: Sequence[str], **options: Any
    ) -> JobHandle:
        """Accept one job; it is durable when this returns.

        `options` are the other fields of `JobRequest`, such as `kind`, `priority`,
        `claims`, `after` (ids), `provider` and `timeout`. A `repo` that is a path is
        registered if it is not yet.

        Raises:
            InvalidInput: an option is not known or not valid.
            NotFound: no repository has that name.
            StoreFailed: it could not be saved.
        """
        if isinstance(argv, str | bytes):
            raise InvalidInput("argv", "is a list of arguments, not one text")
        if isinstance(repo, Path):
            repo = (await self.add_repository(repo)).name
        table = {"origin": "embedded", **options, "repo": repo, "argv": list(argv)}
        [accepted] = await self.control.submit([convert(table, JobRequest)])
        return JobHandle(self.control, accepted.id)

    async def submit_all(self, requests: Sequence[JobRequest]) -> list[JobHandle]:
        """Accept all of the jobs or none."""
        accepted = await self.control.submit(requests)
        return [JobHandle(self.control, entry.id) for entry in accepted]

    async def run_workflow(self, name: str, **workflow: Any) -> WorkflowHandle:
        """Begin a workflow; it is durable when this returns. The fields are those of
        `WorkflowRequest`: `steps`, each a mapping with a `name` and a `job`, for a
        campaign `kind`, `items` and `template`, for a goal `kind`, `act` and `check`.

        Raises:
            InvalidInput: naming the field that is wrong; nothing has begun.
            Refused: too many workflows have not ended.
        """
        request = convert({"name": name, **workflow}, WorkflowRequest)
        view = await self.control.run_workflow(request, origin="embedded")
        return WorkflowHandle(self.control, view.id)

    async def jobs(self, query: JobQuery) -> list[JobView]:
        """The jobs a query asks for, newest first."""
        return await self.control.jobs(query)

    async def status(self) -> dict[str, object]:
        """Capacity, counts and readiness, as `status --json` prints them."""
        return await self.control.status()

    def events(self, after: int | None = None) -> EventStream:
        """Every event from now on, or after the one with the number `after`."""
        return EventStream(self.control, after)
