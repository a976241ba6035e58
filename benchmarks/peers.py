"""The nearest peer on the same jobs: huey with its SQLite storage, synced."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

PROGRAM = Path(__file__).with_name("peer_huey.py")


def measure(bench: Bench) -> Iterable[Sample]:
    """Only draining the queue is timed; the better of huey's two kinds of worker.

    Once with each exit code kept as the task's result, which is what we keep at least,
    and once with nothing kept: a task is gone from the store when it starts.
    """
    python = bench.peer_python or sys.executable
    probe = subprocess.run(
        [python, "-c", "import huey"], check=False, capture_output=True
    )
    if probe.returncode != 0:
        note = "huey is not installed; see --peer-python"
        yield Sample("w1-huey", None, "jobs/s", note, rate=True)
        return
    for name, results in (("w1-huey", True), ("w1-huey-forgets", False)):
        runs = [
            (run_huey(bench, python, kind, results=results), kind)
            for kind in ("thread", "process")
        ]
        (rate, version), kind = max(runs)
        kept = "exit codes kept" if results else "no outcome kept"
        note = f"huey {version}, synced, {kept}, {kind} workers, submit not timed"
        yield Sample(name, rate, "jobs/s", note, rate=True)


def run_huey(
    bench: Bench, python: str, kind: str, *, results: bool
) -> tuple[float, str]:
    """Jobs per second, and huey's version."""
    place = Path(tempfile.mkdtemp(prefix="huey-", dir=bench.folder))
    order = {
        "store": str(place / "huey.sqlite"),
        "kind": kind,
        "results": results,
        "jobs": bench.jobs,
        "at_once": bench.at_once,
        "program": trivial_program(),
        "folders": [str(path) for path in bench.checkouts],
    }
    done = subprocess.run(
        [python, str(PROGRAM), json.dumps(order)],
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    result = json.loads(done.stdout)
    if result["kept"] != (bench.jobs if results else 0):
        raise ServiceFailed(f"huey kept {result['kept']} of {bench.jobs} results")
    return float(result["rate"]), str(result["version"])
