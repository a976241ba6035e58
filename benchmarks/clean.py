"""What a clean-up costs those who use the service meanwhile."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rows import Sample
from benchmarks.service import Service, ServiceFailed, new_home, running
from benchmarks.w1 import run_queued, trivial_jobs
from benchmarks.wire import request
from forge_actors.edges.sqlite.connection import opened_alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.rows import Bench

PAIRS = 5
#: Seconds that the finished jobs ended ago: older than what is kept.
AGE = 90 * 86_400.0
SETTINGS = """
[maintenance]
period = "30d"
time_limit = "10m"
removals = {removals}
"""
SPINNING = """
[maintenance]
period = "30d"
"""
#: The interpreter runs this before the program of the clean-up, and of nothing else.
SPIN = """\
import os
if os.environ.get("FORGE_RUNTIME_MAINTENANCE_WORKER") == "1":
    while True:
        pass
"""
#: Questions for the state in one half of a pair.
QUESTIONS = 300
STATUS = request("GET", "/v1/status")


def measure(bench: Bench) -> Iterable[Sample]:
    """W1 while ended jobs are removed, by W1 while they are not; pairs in turn."""
    home = new_home(bench.folder, workers=bench.at_once)
    removed_in_a_pair = max(1, bench.finished // PAIRS)
    with (home / "settings.toml").open("a") as file:
        file.write(SETTINGS.format(removals=removed_in_a_pair))
    fill(home, bench)
    ratios = []
    with running(home) as service:
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        jobs = trivial_jobs(names, bench.jobs)
        _run(service, trivial_jobs(names, bench.warm_up))
        removed = 0
        for _ in range(PAIRS):
            calm = _run(service, jobs)
            with cleaning(service) as told:
                meanwhile = _run(service, jobs)
                still = not told
            removed += told[0]
            ratios.append(calm / meanwhile)
            if not still:
                raise ServiceFailed("the clean-up ended before the jobs")
    each = " ".join(f"{ratio:.2f}" for ratio in ratios)
    note = f"{removed} of {bench.finished} ended jobs removed; pairs: {each}"
    yield Sample("w1-clean", 100 * statistics.median(ratios), "% of calm", note)


def _run(service: Service, jobs: list[dict[str, object]]) -> float:
    # A clean-up may take longer than a connection is kept that says nothing.
    with service.client() as client:
        return run_queued(client, service, jobs)


@contextmanager
def cleaning(service: Service) -> Iterator[list[int]]:
    """A clean-up goes on within the block, and has ended behind it: what it removed."""
    told: list[int] = []

    def ask() -> None:
        answer = service.api.post("clean", body={"classes": ["jobs"]})
        told.append(answer["removed"])

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_worker(service.pid)
    yield told
    asking.join()


def measure_spin(bench: Bench) -> Iterable[Sample]:
    """How long the state takes while a clean-up spins, by how long it takes else."""
    home = new_home(bench.folder, workers=bench.at_once)
    with (home / "settings.toml").open("a") as file:
        file.write(SPINNING)
    place = bench.folder / "spin"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(SPIN)
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{place}:{path}" if path else str(place)
    try:
        ratios = _spin_pairs(home, bench)
    finally:
        os.environ["PYTHONPATH"] = path
    each = " ".join(f"{ratio:.2f}" for ratio in ratios)
    note = f"the last one until the clean-up was ended; pairs: {each}"
    yield Sample("status-spin", 100 * statistics.median(ratios), "% of calm", note)


def _spin_pairs(home: Path, bench: Bench) -> list[float]:
    ratios = []
    with running(home) as service:
        bench.saw(service)
        asked = bench.spin_seconds
        for number in range(PAIRS):
            calm = question_seconds(service, 0.0)
            asking = threading.Thread(target=_clean, args=(service,))
            asking.start()
            worker = wait_for_worker(service.pid)
            spins = question_seconds(service, asked if number == PAIRS - 1 else 0.0)
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
            asking.join()
            ratios.append(calm / spins)
    return ratios


def _clean(service: Service) -> None:
    result = service.api.post("clean")
    assert result["error"] is not None, "it was ended"


def question_seconds(service: Service, least: float) -> float:
    """The median time of an answer; asked for at least so many seconds."""
    times: list[float] = []
    began = time.perf_counter()
    with service.client() as client:
        while len(times) < QUESTIONS or time.perf_counter() - began < least:
            before = time.perf_counter()
            client.send(STATUS).result()
            times.append(time.perf_counter() - before)
            time.sleep(0.002)
    return statistics.median(times)


def wait_for_worker(pid: int) -> int:
    """The process of the clean-up, as soon as it is there."""
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        for child in " ".join((t / "children").read_text() for t in tasks).split():
            with suppress(OSError):
                environ = Path(f"/proc/{child}/environ").read_bytes()
                if b"FORGE_RUNTIME_MAINTENANCE_WORKER=1" in environ.split(b"\0"):
                    return int(child)
        time.sleep(0.01)
    raise ServiceFailed("no clean-up was started")


def fill(home: Path, bench: Bench) -> None:
    """A store with so many jobs that ended long ago, in one that was removed since."""
    at = time.time() - AGE
    spec = b'{"argv":["/bin/true"],"cwd":"/","env":{}}'
    with opened_alone(home / "store.sqlite") as db, db:
        db.execute(
            "INSERT INTO repository VALUES"
            " ('old', 'old', '/old', '/old/.git', -1, -1, 1, ?, ?, 1, 0)",
            (at, at),
        )
        db.executemany(
            "INSERT INTO job (id, repo, kind, state, priority, claims, after, replay,"
            " attempt, max_attempts, fence, spec, labels, origin, created_at,"
            " queued_at, dispatched_at, started_at, finished_at, receipt)"
            " VALUES (?, 'old', 'repository-command', 'succeeded', 2, '[]', '[]',"
            " 'never', 1, 3, 1, ?, '[]', 'benchmark', ?, ?, ?, ?, ?, ?)",
            (
                (
                    f"0{number:018}",
                    spec,
                    at,
                    at,
                    at,
                    at,
                    at + number * 0.001,
                    bytes(400),
                )
                for number in range(bench.finished)
            ),
        )
