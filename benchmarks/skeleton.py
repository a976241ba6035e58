"""The upper bound for Python: a durable job loop with nothing around it.

A trio loop with a synced SQLite store, and an agent process that starts the jobs. No
actors, claims, limits, events, deadlines or recovery. Three facts are made durable, as
in the service: a job is accepted before it is answered, dispatched before the agent is
told, and its end before anyone is told; an end shares its sync with the next dispatch.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import trio

from benchmarks.cref import trivial_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMA = """
CREATE TABLE job (
    id INTEGER PRIMARY KEY, repo TEXT NOT NULL, spec TEXT NOT NULL,
    state TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,
    started_at REAL, finished_at REAL, exit_code INTEGER
) STRICT;
CREATE TABLE filler (content BLOB) STRICT;
"""
ACCEPT = "INSERT INTO job (id, repo, spec, state) VALUES (?, ?, ?, 'queued')"
DISPATCH = (
    "UPDATE job SET state='dispatched', attempt=attempt+1, started_at=? WHERE id=?"
)
FINISH = "UPDATE job SET state=?, finished_at=?, exit_code=? WHERE id=?"
WAL_BYTES = 8 * 1024 * 1024


def open_store(path: Path, synchronous: str = "FULL") -> apsw.Connection:
    """A store whose write-ahead log has its full length already.

    A sync of a log that grows must save the file's new length too.
    """
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(f"PRAGMA synchronous={synchronous}")
    db.execute(SCHEMA)
    db.execute("INSERT INTO filler VALUES (zeroblob(?))", (WAL_BYTES,))
    db.execute("DELETE FROM filler")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return db


async def run_jobs(
    db: apsw.Connection,
    control: trio.socket.SocketType,
    folders: Sequence[str],
    numbers: range,
    at_once: int,
) -> float:
    """Accept the jobs, then run them; the seconds of running."""
    program = trivial_program()
    queued: deque[tuple[int, str]] = deque()
    rows: list[tuple[int, str, str]] = []
    for job in numbers:
        folder = folders[job % len(folders)]
        spec = json.dumps([job, [program], folder])
        queued.append((job, spec))
        rows.append((job, folder, spec))
    db.execute("BEGIN IMMEDIATE")
    db.executemany(ACCEPT, rows)
    db.execute("COMMIT")
    begin = time.perf_counter()
    free, ended, rest = at_once, 0, b""
    ends: list[tuple[str, float, int, int]] = []
    while True:
        starts = [queued.popleft() for _ in range(min(free, len(queued)))]
        free -= len(starts)
        now = time.time()
        db.execute("BEGIN IMMEDIATE")
        if ends:
            db.executemany(FINISH, ends)
        if starts:
            db.executemany(DISPATCH, [(now, job) for job, _ in starts])
        db.execute("COMMIT")
        ended += len(ends)
        if ended == len(numbers):
            return time.perf_counter() - begin
        if starts:
            await control.send("".join(f"{spec}\n" for _, spec in starts).encode())
        ends = []
        while not ends:
            *lines, rest = (rest + await control.recv(65536)).split(b"\n")
            now = time.time()
            for line in lines:
                job, _pid, code, *_usage = json.loads(line)
                ends.append(("failed" if code else "succeeded", now, code, job))
        free += len(ends)


@contextlib.contextmanager
def agent(folder: Path, output: str, logs: Path) -> Iterator[socket.socket]:
    """An agent process, and our end of its socket; closing that ends it."""
    ours, theirs = socket.socketpair()
    program = str(Path(__file__).with_name("agent.py"))
    arguments = [str(theirs.fileno()), str(folder / "receipts"), output, str(logs)]
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-I", "-S", program, *arguments],
            pass_fds=[theirs.fileno()],
        ),
    ):
        theirs.close()
        yield ours
        ours.close()


def measure(
    folders: Sequence[str],
    count: int,
    folder: Path,
    *,
    warm_up: int = 0,
    at_once: int = 4,
    output: str = "pipes",
    synchronous: str = "FULL",
) -> float:
    """Jobs per second of the skeleton, all queued first, after `warm_up` others.

    Its store stays, in a new folder of `folder`.
    """
    place = Path(tempfile.mkdtemp(prefix="skeleton-", dir=folder))
    logs = place / "logs"
    logs.mkdir()
    db = open_store(place / "store.sqlite", synchronous)

    async def main() -> float:
        with agent(place, output, logs) as ours:
            ours.setblocking(False)
            control = trio.socket.from_stdlib_socket(ours)
            last = warm_up + count
            if warm_up:
                await run_jobs(db, control, folders, range(warm_up), at_once)
            return await run_jobs(db, control, folders, range(warm_up, last), at_once)

    try:
        seconds = trio.run(main)
        done = db.execute("SELECT count(*) FROM job WHERE state='succeeded'").get
        if done != warm_up + count:
            raise RuntimeError(f"only {done} of {warm_up + count} jobs succeeded")
    finally:
        db.close()
    return count / seconds
