"""How long a service takes to be ready, on a home in which nothing was yet."""

from __future__ import annotations

import statistics
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.bare import AGENTS, LOADED, SERVICE, load_seconds
from benchmarks.rows import Bench, Sample
from benchmarks.service import new_home, running

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Starts of which the median counts.
STARTS = 5
WITHOUT = "\n[gateway]\nmcp = false\n"


def measure(bench: Bench) -> Iterable[Sample]:
    """From the start of the command until it says that the service is ready."""
    there = find_spec("mcp") is not None
    kinds = {"ready": WITHOUT, "ready-mcp": ""}
    times: dict[str, list[float]] = {row: [] for row in kinds}
    for number in range(STARTS + 1):
        for row, settings in kinds.items():
            if settings or there:
                seconds = _start(bench, settings)
                if number:  # the first one may have to compile modules
                    times[row].append(seconds)
    note = f"serve --detach on an empty home, median of {STARTS}"
    for row, what in (("ready", "no agents served"), ("ready-mcp", "agents served")):
        value = statistics.median(times[row]) if times[row] else None
        told = f"{note}, {what}" if times[row] else "the extra is not installed"
        yield Sample(row, value, "s", told)
    note = "command, service and agent, loaded one after another, which do nothing"
    yield Sample("ready-imports", load_seconds(LOADED), "s", note)
    note = "what serves agents, beside that"
    agents = load_seconds(AGENTS) - load_seconds(SERVICE) if there else None
    yield Sample("ready-imports-mcp", agents, "s", note)


def _start(bench: Bench, settings: str) -> float:
    home = new_home(bench.folder)
    with (home / "settings.toml").open("a") as file:
        file.write(settings)
    begin = time.perf_counter()
    with running(home) as service:
        seconds = time.perf_counter() - begin
        bench.saw(service)
    return seconds
