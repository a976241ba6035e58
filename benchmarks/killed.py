"""W4: what is lost, and what runs twice, when everything is killed in the middle."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.chaos.run import Sizes, run
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.chaos.report import Report
    from benchmarks.chaos.run import Scenario

#: The same jobs and kills in each run.
SEED = 4


def measure(bench: Bench) -> Iterable[Sample]:
    """The service alone, while the jobs run on; then service, agent and jobs."""
    yield from _row(bench, "w4-service", "outage")
    yield from _row(bench, "w4-all", "wreck")


def _row(bench: Bench, name: str, scenario: Scenario) -> Iterable[Sample]:
    folder = Path(tempfile.mkdtemp(prefix="w4-", dir=bench.folder))
    report = run(folder, Sizes(jobs=bench.killed), SEED, scenario, lambda _: None)
    yield from samples(name, report)
    if report.violations:
        first = report.violations[0]
        raise ServiceFailed(f"{len(report.violations)} are wrong; the first: {first}")


def samples(name: str, report: Report) -> Iterable[Sample]:
    """How many jobs were lost, ran twice or ended wrongly, and the seconds.

    What runs may be cut off where the jobs are killed too; each of those has then to be
    in its right state a second after the restart.
    """
    note = (
        f"of {report.jobs} jobs: lost, twice or not as they ended;"
        f" {report.ended_alone} ended while no service was there"
    )
    if report.interrupted:
        note += f", {report.interrupted} were cut off"
    yield Sample(name, float(len(report.violations)), "jobs", note)
    if report.ready is not None and report.ready.count:
        told = "from the start of the next service until it is ready"
        yield Sample(f"{name}-ready", report.ready.most, "s", told)
    for since_ready, _ in report.decided.values():
        told = (
            f"until all {since_ready.count} that the kill met were in their right"
            " state, from ready"
        )
        yield Sample(f"{name}-decided", since_ready.most, "s", told)
