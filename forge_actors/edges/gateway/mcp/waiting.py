"""The tool `wait`: it holds the call until jobs have ended, and tells what they do."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import EventQuery
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.edges.gateway.mcp.rows import job_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.control import Control
    from forge_actors.domain.jobs import JobView
    from forge_actors.edges.gateway.mcp.answers import Json
    from forge_actors.edges.gateway.mcp.arguments import Wait
    from forge_actors.edges.gateway.mcp.calls import Call, Progress


async def wait(call: Call, wanted: Wait) -> Json:
    control = call.control
    # Their ids, so that a shortened selector still means this job in an hour.
    ids = [job.id for job in await control.jobs_named(wanted.jobs)]
    with trio.move_on_after(wanted.timeout):
        await _until_ended(control, ids, call.progress)
    views = await control.jobs_named(ids)
    ended = all(job.state in TERMINAL for job in views)
    answer: Json = {"ended": ended, "jobs": job_rows(views)}
    if not ended:
        answer["next_step"] = "They have not all ended: call `wait` again."
    return answer


async def _until_ended(
    control: Control, ids: Sequence[str], progress: Progress | None
) -> None:
    failure: ForgeError | None = None
    async with trio.open_nursery() as nursery:
        if progress is not None:
            nursery.start_soon(_tell, control, ids, progress)
        try:
            await control.wait(ids)
        except ForgeError as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _tell(control: Control, ids: Sequence[str], progress: Progress) -> None:
    """Tell how far the jobs are, now and whenever one of them moves on."""
    with suppress(ForgeError):  # the wait itself raises it too
        last = await control.events(EventQuery(newest=True, limit=1), wait=False)
        query = EventQuery(after=last.next.after, job=tuple(ids))
        told, before = 0, ""
        while True:
            views = await control.jobs_named(ids)
            done = sum(job.state in TERMINAL for job in views)
            if (says := _in_words(views, done)) != before:
                # It has to grow each time, also while no further job has ended.
                await progress(done + 1 - 1 / (1 + told), len(ids), says)
                told, before = told + 1, says
            page = await control.events(query, wait=True)
            if not page.events:
                return  # the runtime ends
            query = page.next


def _in_words(jobs: Sequence[JobView], done: int) -> str:
    if len(jobs) == 1:
        return f"{jobs[0].id} is {jobs[0].state}"
    running = sum(job.state in RESERVED for job in jobs)
    return f"{done} of {len(jobs)} have ended, {running} run"
