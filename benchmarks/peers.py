"""The nearest peer on the same jobs: huey with its SQLite storage, synced."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed

if TYPE_CHECKING:
    from collections.abc import Iterable


def measure(bench: Bench) -> Iterable[Sample]:
    """Only draining the queue is timed; the better of huey's two kinds of worker.

    Once with each exit code kept as the task's result, which is what we keep at least,
    and once with nothing kept: a task is gone from the store when it starts.
    """
    missing = bench.peers.lacks("huey")
    for name, results in (("w1-huey", True), ("w1-huey-forgets", False)):
        if missing is not None:
            yield Sample(name, None, "jobs/s", missing, rate=True)
            continue
        runs = [
            (run_huey(bench, kind, results=results), kind)
            for kind in ("thread", "process")
        ]
        (rate, version), kind = max(runs)
        kept = "exit codes kept" if results else "no outcome kept"
        note = (
            f"huey {version}, synced, {kept}, {kind} workers;"
            f" all queued first, after {bench.warm_up} others"
        )
        yield Sample(name, rate, "jobs/s", note, rate=True)


def run_huey(bench: Bench, kind: str, *, results: bool) -> tuple[float, str]:
    """Jobs per second, and huey's version."""
    place = tempfile.mkdtemp(prefix="huey-", dir=bench.folder)
    order = {
        "store": f"{place}/huey.sqlite",
        "kind": kind,
        "results": results,
        "jobs": bench.jobs,
        "warm_up": bench.warm_up,
        "at_once": bench.at_once,
        "program": trivial_program(),
        "folders": [str(path) for path in bench.checkouts],
    }
    result = json.loads(bench.peers.run("peer_huey.py", json.dumps(order)))
    if result["kept"] != (bench.jobs if results else 0):
        raise ServiceFailed(f"huey kept {result['kept']} of {bench.jobs} results")
    return float(result["rate"]), str(result["version"])
