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

order = json.loads(sys.argv[1])
queue = huey.SqliteHuey(
    "bench", filename=order["store"], fsync=True, results=order["results"]
)
ended = multiprocessing.Value("i", 0)
finished = multiprocessing.Event()


def run_job(folder: str) -> int:
    """The exit code; huey keeps it as the task's result if it keeps results."""
    done = subprocess.run([order["program"]], cwd=folder, check=True)
    return done.returncode


def count_end(*_: object) -> None:
    with ended.get_lock():
        ended.value += 1
        if ended.value == order["jobs"]:
            finished.set()


def main() -> None:
    task = queue.task()(run_job)
    queue.post_execute()(count_end)
    folders = order["folders"]
    for number in range(order["jobs"]):
        task(folders[number % len(folders)])
    workers = consumer.Consumer(
        queue, workers=order["at_once"], worker_type=order["kind"], periodic=False
    )
    begin = time.perf_counter()
    workers.start()
    if not finished.wait(240):
        raise SystemExit("huey did not run all jobs")
    rate = order["jobs"] / (time.perf_counter() - begin)
    workers.stop(graceful=True)
    kept = queue.result_count()
    print(json.dumps({"rate": rate, "version": huey.__version__, "kept": kept}))


if __name__ == "__main__":
    main()
