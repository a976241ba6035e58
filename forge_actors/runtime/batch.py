"""Runs of their own: a file of jobs, or one command, from the first job to the last."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import Struct, structs

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.events import EventQuery
from forge_actors.domain.jobfile import FileRepository, JobFile
from forge_actors.domain.jobs import TERMINAL, JobView
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.runtime.event_stream import EVENT_PAGE
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.job_files import in_file, load_job_file
from forge_actors.runtime.runtime import open_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.runtime.handles import Runtime
    from forge_actors.runtime.job_handle import JobHandle

#: Bytes read of a job's output at once.
CHUNK = 64 * 1024


class Progress(Struct, frozen=True):
    """How far a run is: its jobs in the order of the file, and what they waited for."""

    jobs: list[JobView]
    #: Seconds that jobs have waited, by what for.
    waits: dict[str, float]
    seconds: float

    @property
    def ended(self) -> bool:
        return all(job.state in TERMINAL for job in self.jobs)

    @property
    def succeeded(self) -> bool:
        return all(job.state == "succeeded" for job in self.jobs)


class Watcher(Protocol):
    """Shows the progress of a run. Called in the loop, so it must not block."""

    @property
    def refresh(self) -> float | None:
        """Seconds between two calls when nothing happens; None for no such calls."""

    def note(self, text: str) -> None:
        """Something is prepared."""

    def show(self, progress: Progress) -> None:
        """Something has changed, or `refresh` seconds have passed."""


async def run_file(path: Path, home: Path, watcher: Watcher) -> Progress:
    """Run every job of the file in a runtime on `home`; how it went.

    Raises:
        InvalidInput: the file is not valid, or a repository cannot be had; no job was
            started.
        Refused: two of its repositories are one.
    """
    file, settings = load_job_file(path)
    async with open_runtime(home, settings) as runtime:
        await _prepare(runtime, file, path, watcher)
        requests = [
            structs.replace(request, origin="run", name=request.name or f"job {n}")
            for n, request in enumerate(file.job, start=1)
        ]
        try:
            handles = await runtime.submit_all(requests)
        except InvalidInput as error:
            field = error.field.replace("jobs[", "job[")
            if len(requests) == 1:  # of which the place is not told
                field = f"job[0].{field}"
            raise in_file(path, field, error) from None
        return await _watch(runtime, handles, watcher)


async def _prepare(
    runtime: Runtime, file: JobFile, path: Path, watcher: Watcher
) -> None:
    for index, repository in enumerate(file.repository):
        where = f"repository[{index}]"
        try:
            place = await _place(runtime, repository, path.parent, watcher)
            await runtime.add_repository(place, repository.name)
        except InvalidInput as error:
            raise in_file(path, f"{where}.{error.field}", error) from None
        except Refused as error:
            raise Refused(f"{path}: {where}.{error}") from None


async def _place(
    runtime: Runtime, repository: FileRepository, folder: Path, watcher: Watcher
) -> Path:
    if repository.path is not None:
        return folder / Path(repository.path).expanduser()
    assert repository.clone is not None, "a checked file has one of the two"
    clones = runtime.home / "clones"
    watcher.note(f"cloning {repository.name}")
    clones.mkdir(mode=0o700, exist_ok=True)
    place = clones / repository.name
    await GitProgram().clone(_source(repository.clone, folder), place)
    return place


def _source(clone: str, folder: Path) -> str:
    """A URL as it is; a path relative to the job file made absolute."""
    local = folder / Path(clone).expanduser()
    return str(local.resolve()) if local.exists() else clone


async def _watch(
    runtime: Runtime, handles: Sequence[JobHandle], watcher: Watcher
) -> Progress:
    began = last = trio.current_time()
    waits: dict[str, float] = defaultdict(float)
    kinds: dict[str, str] = {}
    seen = EventQuery(after=runtime.control.last_event, limit=EVENT_PAGE)
    order = {handle.id: place for place, handle in enumerate(handles)}
    while True:
        jobs = await runtime.jobs(JobQuery(limit=len(handles)))
        jobs.sort(key=lambda job: order[job.id])
        # Reasons change only with an event, and every event brings us here.
        now = trio.current_time()
        for kind in kinds.values():
            waits[kind] += now - last
        last = now
        kinds = {
            job.id: str(job.waiting["kind"]) for job in jobs if job.waiting is not None
        }
        progress = Progress(jobs, dict(waits), now - began)
        watcher.show(progress)
        if progress.ended:
            return progress
        with trio.move_on_after(watcher.refresh or float("inf")):
            seen = (await runtime.control.events(seen, wait=True)).next


async def run_command(
    request: JobRequest,
    home: Path,
    stdout: Callable[[bytes], None],
    stderr: Callable[[bytes], None],
) -> JobView:
    """Run one command in the repository of the folder `request.repo`, now.

    Its output is handed to `stdout` and `stderr` in the loop, as it comes.

    Raises:
        InvalidInput: the folder is in no git work tree, or an option is not valid.
    """
    async with open_runtime(home) as runtime:
        await runtime.add_repository(request.repo)
        [handle] = await runtime.submit_all([request])
        try:
            async with trio.open_nursery() as nursery:
                for stream, sink in (("stdout", stdout), ("stderr", stderr)):
                    nursery.start_soon(_copy, runtime, handle.id, stream, sink)
        except BaseExceptionGroup as group:
            # An interrupt, or a reader that left: the caller knows them by themselves.
            raise only_failure(group) from None
        return await handle.show()


async def _copy(
    runtime: Runtime, job: str, stream: str, sink: Callable[[bytes], None]
) -> None:
    offset = 0
    while True:
        chunk = await runtime.control.read_log(
            job, stream, offset, limit=CHUNK, wait=True
        )
        if chunk.missing:
            sink(f"\n[forge-actors: {chunk.missing} bytes were not kept]\n".encode())
        sink(chunk.data)
        offset = chunk.next_offset
        if chunk.ended:
            return
