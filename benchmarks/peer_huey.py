"""huey on our jobs, run by the interpreter that has huey: one JSON argument."""

import importlib
import json
import multiprocessing
import subprocess
import sys
import time
from typing import Any

huey: Any = importlib.import_module("huey")
consumer: Any = importlib.import_module("huey.consumer")

PATIENCE = 240.0  # seconds

order = json.loads(sys.argv[1])
queue = huey.SqliteHuey(
    "bench", filename=order["store"], fsync=True, results=order["results"]
)
at_gate = multiprocessing.Semaphore(0)
gate = multiprocessing.Event()
ended = multiprocessing.Value("i", 0)
finished = multiprocessing.Event()


def run_job(folder: str) -> int:
    """The exit code; huey keeps it as the task's result if it keeps results."""
    done = subprocess.run([order["program"]], cwd=folder, check=True)
    return done.returncode


def hold_worker() -> None:
    """Keep one worker until all that is timed is queued; huey keeps no None."""
    at_gate.release()
    gate.wait(PATIENCE)


def count_end(*_: object) -> None:
    if not gate.is_set():
        return
    with ended.get_lock():
        ended.value += 1
        if ended.value == order["at_once"] + order["jobs"]:
            finished.set()


def main() -> None:
    job = queue.task()(run_job)
    hold = queue.task()(hold_worker)
    queue.post_execute()(count_end)
    folders = order["folders"]
    for number in range(order["warm_up"]):
        job(folders[number % len(folders)])
    for _ in range(order["at_once"]):
        hold()
    workers = consumer.Consumer(
        queue, workers=order["at_once"], worker_type=order["kind"], periodic=False
    )
    workers.start()
    # A worker at the gate has ended its part of the warm-up.
    for _ in range(order["at_once"]):
        if not at_gate.acquire(timeout=PATIENCE):
            raise SystemExit("huey did not warm up")
    warm = queue.result_count()
    for number in range(order["jobs"]):
        job(folders[number % len(folders)])
    begin = time.perf_counter()
    gate.set()
    if not finished.wait(PATIENCE):
        raise SystemExit("huey did not run all jobs")
    rate = order["jobs"] / (time.perf_counter() - begin)
    workers.stop(graceful=True)
    kept = queue.result_count() - warm
    print(json.dumps({"rate": rate, "version": huey.__version__, "kept": kept}))


if __name__ == "__main__":
    main()
