"""What the HTTP interface costs: a page of a long list, and a submit."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import trio

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import HOLDER, new_home, running_service
from benchmarks.wire import request
from forge_actors.domain.requests import JobRequest
from forge_actors.runtime.runtime import open_runtime
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.wire import Client

#: Looks at a list, and submits, of which the median counts.
LOOKS = 200
#: Jobs of one submit call, while the queue is filled.
PIECE = 10_000
PAGE = 50


def measure(bench: Bench) -> Iterable[Sample]:
    """A submit both ways, then pages of the queue that is there at last."""
    inside = trio.run(_submits_inside, bench)
    with running_service(
        bench.folder, workers=1, repositories=bench.repositories
    ) as service:
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        service.submit([{"repo": names[0], "argv": HOLDER}])
        job = {"argv": [trivial_program()]}
        one = request("POST", "/v1/jobs", {"jobs": [{"repo": names[0], **job}]})
        with service.client() as client:
            over_http = _median(client, one)
            for _ in range(0, bench.deep, PIECE):
                count = min(PIECE, bench.deep)
                jobs = [{"repo": names[n % len(names)], **job} for n in range(count)]
                service.submit(jobs)
            page = _median(client, request("GET", f"/v1/jobs?limit={PAGE}"))
            active = f"/v1/jobs?limit={PAGE}&active=1&repo={names[0]}"
            filtered = _median(client, request("GET", active))
            ended = f"/v1/jobs?limit={PAGE}&state=failed"
            nothing = _median(client, request("GET", ended))
    note = f"a page of {PAGE} jobs, {bench.deep} wait; median of {LOOKS}"
    yield Sample("list", page, "ms", note)
    yield Sample("list-filtered", filtered, "ms", "those of one repository")
    yield Sample("list-nothing", nothing, "ms", "those that failed: there are none")
    note = f"more than within one process, where it takes {inside:.2f} ms"
    yield Sample("submit-http", over_http - inside, "ms", note)


def _median(client: Client, data: bytes) -> float:
    client.send(data).result()
    times = []
    for _ in range(LOOKS):
        begin = time.perf_counter()
        client.send(data)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


async def _submits_inside(bench: Bench) -> float:
    """The median of submits in a runtime of this process, whose worker is busy."""
    home = new_home(bench.folder, workers=1, repositories=bench.repositories)
    settings = load(home / SETTINGS_FILE).settings
    async with open_runtime(home, settings) as runtime:
        repository = await runtime.add_repository(bench.checkouts[0])
        name = repository.name
        await runtime.control.submit([JobRequest(name, _argv(HOLDER))])
        one = [JobRequest(name, _argv([trivial_program()]))]
        times = []
        for _ in range(LOOKS):
            begin = time.perf_counter()
            await runtime.control.submit(one)
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def _argv(words: Sequence[str]) -> list[str | dict[str, str]]:
    return [*words]
