"""What many schedules cost: to add one, to have none due, and to have many due."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import trio

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from forge_actors.domain.events import EventQuery
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.runtime.runtime import open_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.runtime.handles import Runtime

#: That are due in the same second; and seconds from their making until then.
DUE, AHEAD = 1000, 10.0
#: Of those that are added, the first and the last so many are compared.
COMPARED = 500
QUIET_SECONDS = 10.0


def measure(bench: Bench) -> Iterable[Sample]:
    """Add many, let time pass, and have some more come due at once."""
    return trio.run(_measure, bench)


async def _measure(bench: Bench) -> list[Sample]:
    settings = {"pressure": {"max_load_per_cpu": 10_000.0}}
    home = bench.folder / f"schedules-{time.monotonic_ns()}"
    async with open_runtime(home, settings) as runtime:
        repo = (await runtime.add_repository(bench.checkouts[0])).name
        first, last = await _add(runtime, repo, bench.registered)
        begin = time.process_time()
        await trio.sleep(QUIET_SECONDS)
        idle = (time.process_time() - begin) * 1000
        late = await _due(runtime, repo)
    note = f"{bench.registered} schedules"
    of = f"CPU time of {QUIET_SECONDS:.0f} s; {note}"
    many = f"until all of {DUE} that are due are decided"
    return [
        Sample("schedule-add", last, "ms", f"the last of {note}"),
        Sample("schedule-add-first", first, "ms", "the first of them"),
        Sample("schedule-idle", idle, "ms", of),
        Sample("schedule-due", late, "s", many),
    ]


async def _add(runtime: Runtime, repo: str, count: int) -> tuple[float, float]:
    """Milliseconds for each of the first, and of the last."""
    took = []
    for number in range(count):
        begin = time.perf_counter()
        await runtime.control.add_schedule(
            ScheduleRequest(
                name=f"s{number}",
                repo=repo,
                cron=f"{number % 60} {number % 24} 29 2 *",
                timezone="Europe/Prague",
                job={"argv": ["true"]},
            )
        )
        took.append(time.perf_counter() - begin)
    part = min(COMPARED, count)
    return sum(took[:part]) / part * 1000, sum(took[-part:]) / part * 1000


async def _due(runtime: Runtime, repo: str) -> float:
    """Seconds from the moment until the last one is decided."""
    moment = time.time() + AHEAD
    at = datetime.fromtimestamp(moment, UTC).isoformat()
    for number in range(DUE):
        await runtime.control.add_schedule(
            ScheduleRequest(
                name=f"due{number}",
                repo=repo,
                at=at,
                job={"argv": [trivial_program()]},
            )
        )
    query, decided = EventQuery(kind=("schedule_decided",), after=0, limit=1000), 0
    while decided < DUE:
        page = await runtime.control.events(query, wait=True)
        decided, query = decided + len(page.events), page.next
    return time.time() - moment
