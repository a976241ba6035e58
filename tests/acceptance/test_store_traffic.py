"""The store while much happens around it: output, readers, a long history."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

import apsw

from forge_actors.client.sync import Service as Connection
from forge_actors.edges.sqlite.connection import CHECKPOINT_PAGES
from tests.acceptance.machine import cpu_ticks
from tests.acceptance.service import started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import Json, LiveService

NOISY, POLLERS, STOPS = 8, 20, 50
FOLLOWERS, WRITTEN = 10, 1200
FINISHED = 100_000
#: Of most of fifty: the machine is busy with the output meanwhile.
STOP_SECONDS, READY_SECONDS = 1.0, 2.0
PAGE = 4096


def test_output_without_end_holds_up_neither_stops_nor_readers(
    make_service: Callable[[str], LiveService],
) -> None:
    """D-10: the output of jobs is not in the database."""
    limits = f"[limits]\nworkers = {NOISY}\nrepository_workers = {NOISY}\n"
    service = make_service(f"{limits}[output]\nstream_bytes = 1048576\n")
    service.start()
    service.add("app")
    done = threading.Event()
    failures: list[BaseException] = []

    def poll() -> None:
        connection = Connection(str(service.home))
        try:
            while not done.is_set():
                connection.get("jobs", query=[("limit", 20)])
                connection.get("status")
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    pollers = [threading.Thread(target=poll, daemon=True) for _ in range(POLLERS)]
    line: Json = {
        "repo": "app",
        "argv": ["sh", "-c", "yes 'a line of the output of a job'"],
        "read_only": True,
    }
    jobs = service.batch([line] * (NOISY + STOPS))
    service.until(jobs[NOISY - 1], "job_running")
    store = (service.home / "store.sqlite").stat().st_size
    for poller in pollers:
        poller.start()
    connection, seconds = Connection(str(service.home)), []
    for job in jobs[:STOPS]:
        service.until(job, "job_running")
        begin = monotonic()
        connection.post("jobs", job, "cancel", body={"grace": 1})
        seconds.append(monotonic() - begin)
    done.set()
    for poller in pollers:
        poller.join()
    assert not failures
    assert median(seconds) < STOP_SECONDS
    assert (service.home / "store.sqlite").stat().st_size - store < 4 << 20
    service.cli("cancel", *jobs[STOPS:], status=0)
    ends = service.wait(*jobs)
    assert {end["state"] for end in ends} == {"cancelled"}
    assert "locked" not in (service.home / "service.log").read_text()


def test_followers_that_stay_do_not_let_the_log_of_the_store_grow(
    service: LiveService,
) -> None:
    """D-12: no reader keeps a view of the store open while it waits."""
    log = service.home / "store.sqlite-wal"
    bound = (2 * CHECKPOINT_PAGES + 200) * (PAGE + 24) + 32
    line: Json = {
        "repo": "app",
        "argv": ["true", "x" * 64_000],
        "after": [],
        "read_only": True,
    }
    service.cli("pause", "--all", status=0)
    with ExitStack() as stack:
        for _ in range(FOLLOWERS):
            words = ("--home", service.home, "events", "-f", "--after", "0")
            follower = stack.enter_context(started(*words))
            assert follower.stdout is not None
            assert follower.stdout.readline()
            thread = threading.Thread(target=follower.stdout.read, daemon=True)
            thread.start()
        sizes = []
        jobs = []
        for _ in range(10):
            jobs += service.batch([line] * (WRITTEN // 10))
            service.cli("cancel", *jobs[-WRITTEN // 10 :], status=0)
            sizes.append(log.stat().st_size)
    written = (service.home / "store.sqlite").stat().st_size
    # More went through it than it may keep.
    assert written > 2 * bound
    assert max(sizes) <= bound


def test_a_long_history_does_not_delay_a_start(
    make_service: Callable[[str], LiveService],
) -> None:
    """D-16: 100,000 jobs that have ended. Of time of the processor, as other tests may
    run beside this one."""
    service = make_service("")
    service.start()
    service.add("app")
    first = service.end_of(service.bash("app", "true"))["id"]
    service.terminate()
    store = apsw.Connection(str(service.home / "store.sqlite"))
    columns = [str(row[1]) for row in store.execute("PRAGMA table_info(job)")][1:]
    others = ", ".join(columns)
    store.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        f" INSERT INTO job (id, {others})"
        f" SELECT printf('0%018d', i), {others} FROM job, n",
        (FINISHED - 1,),
    )
    store.close()
    service.start()
    used = cpu_ticks(service.pid) / os.sysconf("SC_CLK_TCK")
    assert used < READY_SECONDS
    assert service.json("status")["counts"] == {"succeeded": FINISHED}
    assert service.show(first)["state"] == "succeeded"
    assert len(service.json("jobs", "--limit", "20")) == 20
    again = cpu_ticks(service.pid) / os.sysconf("SC_CLK_TCK")
    assert again - used < READY_SECONDS
