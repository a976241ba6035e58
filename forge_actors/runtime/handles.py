"""What an embedding program holds: its runtime, and through it what it has given to it.

Each noun has a handle of its own; `Runtime.control` is everything that entry points
can ask, for what the handles do not have.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.domain.epic.runs import EpicRequest
from forge_actors.domain.requests import JobQuery, convert
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.runtime.automation_handles import (
    EpicHandle,
    ScheduleHandle,
    WorkflowHandle,
)
from forge_actors.runtime.event_stream import EventStream
from forge_actors.runtime.job_handle import JobHandle as JobHandle
from forge_actors.runtime.repository_handle import RepositoryHandle, submit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.capacity_view import CapacityView
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.settings import SettingChange, SettingView
    from forge_actors.runtime.control import RuntimeControl
    from forge_actors.runtime.settings import Settings


class Runtime:
    """A running runtime; made by `open_runtime`.

    Raises:
        StoreFailed: from every method that changes something, if that could not be
            saved; nothing of it is kept then.
    """

    def __init__(self, home: Path, settings: Settings, control: RuntimeControl) -> None:
        self.home = home
        #: Those it was started with.
        self.settings = settings
        #: The same runtime as entry points see it.
        self.control = control

    # -- repositories ----------------------------------------------------------------

    async def add_repository(
        self, path: str | Path, name: str | None = None
    ) -> RepositoryHandle:
        """Register the git repository of a folder, or find it, if that was done.

        Raises:
            InvalidInput: the folder is in no git work tree, or the name is not fit.
            Refused: the name is taken.
        """
        view = await self.control.add_repository(str(path), name)
        return RepositoryHandle(self.control, view)

    async def repository(self, name: str) -> RepositoryHandle:
        """One that is registered, by its name, its id or a path in it.

        Raises:
            NotFound: there is none.
        """
        return RepositoryHandle(self.control, await self.control.repository(name))

    async def repositories(self) -> list[RepositoryHandle]:
        """All that are registered."""
        views = await self.control.repositories()
        return [RepositoryHandle(self.control, view) for view in views]

    # -- jobs ------------------------------------------------------------------------

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
        if isinstance(repo, Path):
            repo = (await self.add_repository(repo)).name
        return await submit(self.control, repo, argv, options)

    async def submit_all(self, requests: Sequence[JobRequest]) -> list[JobHandle]:
        """Accept all of the jobs or none.

        Raises:
            InvalidInput, NotFound: naming the place, as `jobs[3].`.
        """
        accepted = await self.control.submit(requests)
        return [JobHandle(self.control, entry.id) for entry in accepted]

    async def job(self, selector: str) -> JobHandle:
        """One that was accepted, by its id or a part of it that only it has.

        Raises:
            NotFound: there is none. InvalidInput: there are several.
        """
        return JobHandle(self.control, (await self.control.job(selector)).id)

    async def jobs(self, query: JobQuery | None = None, **fields: Any) -> list[JobView]:
        """The jobs that are asked for by a query, or by its fields, newest first.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        return await self.control.jobs(query or convert(fields, JobQuery))

    # -- workflows, EPICs and schedules ---------------------------------------------

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

    async def workflow(self, name: str) -> WorkflowHandle:
        """One that was begun, by its id, or its name.

        Raises:
            NotFound: there is none.
        """
        return WorkflowHandle(self.control, (await self.control.workflow(name)).id)

    async def workflows(self) -> list[WorkflowHandle]:
        """Those that have begun, the newest 50 first."""
        views = await self.control.workflows()
        return [WorkflowHandle(self.control, view.id) for view in views]

    async def run_epic(
        self, epic: str | Path, repo: str | Path, **options: Any
    ) -> EpicHandle:
        """Have an EPIC worked through, an issue as a job each; it is durable when this
        returns. `epic` is the URL of an issue or the path of a plan; `options` are the
        other fields of `EpicRequest`, such as `max_parallel` and `agent`. How issues
        are worked on say the settings, in their section `epic`.

        Raises:
            InvalidInput: naming the field that is wrong; nothing has begun.
            Refused: it is worked through already, or too many have not ended.
        """
        if isinstance(repo, Path):
            repo = (await self.add_repository(repo)).name
        target = str(epic.absolute()) if isinstance(epic, Path) else epic
        request = convert({"epic": target, "repo": repo, **options}, EpicRequest)
        view = await self.control.run_epic(request, origin="embedded")
        return EpicHandle(self.control, view.id)

    async def epic(self, run_id: str) -> EpicHandle:
        """A run that was begun.

        Raises:
            NotFound: there is none.
        """
        return EpicHandle(self.control, (await self.control.epic(run_id)).id)

    async def epics(self) -> list[EpicHandle]:
        """Those that were begun, the newest 50 first."""
        views = await self.control.epics()
        return [EpicHandle(self.control, view.id) for view in views]

    async def add_schedule(
        self, name: str, repo: str | Path, job: Mapping[str, Any], **when: Any
    ) -> ScheduleHandle:
        """Have a job come by itself: at times, or when something comes to pass.

        `job` has the fields of `JobRequest` but `repo`; `when` those of
        `ScheduleRequest`, such as `cron`, `timezone` and `overlap`.

        Raises:
            InvalidInput: naming the field that is wrong. Refused: the name is taken.
            NotFound: there is no such repository.
            Unavailable: schedules are not looked at any more.
        """
        if isinstance(repo, Path):
            repo = (await self.add_repository(repo)).name
        table = {"name": name, "repo": repo, "job": dict(job), **when}
        view = await self.control.add_schedule(convert(table, ScheduleRequest))
        return ScheduleHandle(self.control, view.name)

    async def schedule(self, name: str) -> ScheduleHandle:
        """One that there is.

        Raises:
            NotFound: there is none.
        """
        return ScheduleHandle(self.control, (await self.control.schedule(name)).name)

    async def schedules(self) -> list[ScheduleHandle]:
        """All of them, by name."""
        views = await self.control.schedules()
        return [ScheduleHandle(self.control, view.name) for view in views]

    # -- limits and settings ---------------------------------------------------------

    async def capacity(self) -> CapacityView:
        """What may be in use at once and what is, of tokens and of providers."""
        return await self.control.capacity()

    async def settings_in_force(self) -> list[SettingView]:
        """Every setting as it is now, with where it comes from."""
        return await self.control.settings()

    async def reload_settings(self) -> list[SettingChange]:
        """Read the file and the environment again; what changed, or nothing at all.

        Raises:
            InvalidInput: naming the file and its line, or the variable.
            Refused: the settings were given by a program.
        """
        return await self.control.reload_settings()

    async def change_settings(
        self, changes: Mapping[str, Mapping[str, Any]]
    ) -> list[SettingChange]:
        """Have other values hold from now on, such as `{"limits": {"workers": 8}}`, or
        `{"providers": {"codex": {"limit": 2}}}`; what is not named stays.

        Raises:
            InvalidInput: naming the field that is wrong; nothing changed.
            Refused: the settings are those of a file, or one cannot be exchanged while
                the runtime runs.
        """
        return await self.control.change_settings(changes)

    # -- the whole of it -------------------------------------------------------------

    async def pause(self, scope: str = "all", *, jobs: bool = False) -> None:
        """Start nothing more in `all`, `repo:NAME` or `provider:NAME` until `resume`;
        with `jobs` suspend what runs there too.

        Raises:
            InvalidInput, NotFound: it is no such scope.
        """
        await self.control.pause(scope, jobs=jobs)

    async def resume(self, scope: str = "all", *, jobs: bool = False) -> None:
        """End that pause, and let go on what it suspended."""
        await self.control.resume(scope, jobs=jobs)

    async def drain(self) -> None:
        """Start nothing more until `undrain`; return when nothing runs.

        Raises:
            Refused: `undrain` was called meanwhile.
        """
        await self.control.drain()
        await self.control.wait_drained()

    async def undrain(self) -> None:
        """Work again."""
        await self.control.undrain()

    async def wait_idle(self) -> None:
        """Return when no job waits or runs."""
        await self.control.wait_idle()

    async def status(self) -> dict[str, object]:
        """Capacity, counts and readiness, as `status --json` prints them."""
        return await self.control.status()

    def events(self, after: int | None = None) -> EventStream:
        """Every event from now on, or after the one with the number `after`."""
        return EventStream(self.control, after)
