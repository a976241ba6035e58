"""Every state has a way out, wherever a crash or an upgrade finds a job."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

from forge_actors.domain.jobs import ACTIVE, RESERVED, TERMINAL
from forge_actors.edges.sqlite.statements import migrations
from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService


def change(home: Path, statement: str, *values: object) -> None:
    """Alter the store of a home that nothing serves."""
    with closing(sqlite3.connect(home / "store.sqlite")) as store, store:
        assert store.execute(statement, values).rowcount == 1


#: What an error says of an attempt whose outcome nobody knows.
AMBIGUOUS = ("INTERRUPTED", "OPERATION_OUTCOME_AMBIGUOUS", "WORKER_LOST")
#: The identity of a process that was there in another boot.
DEAD = json.dumps({"boot_id": "gone", "pid": 2**22, "start_ticks": 1})


def test_a_job_in_any_state_ends_after_a_crash(service: LiveService) -> None:
    """D-05: what was reserved is gone; everything else can still run."""
    ran = service.root / "ran"
    service.cli("pause", "--all", status=0)
    script = f"echo $FORGE_JOB_ID >> {ran}"
    jobs = {
        service.bash("app", script, "--replay", replay, "--read-only"): (state, replay)
        # A question is for a person, whatever becomes of the service.
        for state in sorted(ACTIVE - {"waiting_for_approval"})
        for replay in ("never", "safe")
    }
    service.kill()
    assert wait_until_ended(service.agent_pid)
    for fence, (job, (state, _)) in enumerate(jobs.items(), 1):
        if state not in RESERVED:
            change(service.home, "UPDATE job SET state = ? WHERE id = ?", state, job)
            continue
        began = (time.time(), DEAD) if state == "running" else (None, None)
        change(
            service.home,
            "UPDATE job SET state = ?, attempt = 1, fence = ?, dispatched_at = ?,"
            " started_at = ?, identity = ? WHERE id = ?",
            *(state, fence, time.time(), *began, job),
        )
    change(service.home, "UPDATE repository SET fence = 100")
    service.start()
    service.cli("resume", "--all", status=0)
    ends = {end["id"]: end for end in service.wait(*jobs)}
    runs = Counter(ran.read_text().split())
    for job, (state, replay) in jobs.items():
        end = ends[job]
        assert end["state"] in TERMINAL
        if end["state"] == "human_attention_required":
            assert (state in RESERVED, replay, runs[job]) == (True, "never", 0)
            assert end["error"]["code"] in AMBIGUOUS
        else:
            assert (end["state"], runs[job]) == ("succeeded", 1), (state, replay)
    assert {ends[job]["attempt"] for job, (s, _) in jobs.items() if s == "queued"} == {
        1
    }


#: A program that knows one migration less.
OLDER = """
from forge_actors.edges.sqlite import statements
known = dict(statements.migrations())
known.pop(max(known))
statements.migrations = lambda: known
"""


def test_jobs_of_an_older_store_are_recognised_and_the_older_program_refuses(
    make_service: Callable[[str], LiveService],
) -> None:
    """D-14: running, paused, held and waiting ones."""
    service = make_service("")
    service.start()
    service.add("app")
    ran = service.root / "ran"
    service.cli("pause", "--all", status=0)
    script = f"echo $FORGE_JOB_ID >> {ran}"
    once = service.bash("app", script, "--replay", "never")
    again = service.bash("app", script, "--replay", "safe")
    waits = service.bash("app", script, "--after", again)
    held = service.bash("app", script)
    service.cli("hold", held, status=0)
    service.end()
    older(service.home / "store.sqlite")
    for job in (once, again):
        change(
            service.home,
            "UPDATE job SET state = 'running', attempt = 1, fence = 1,"
            " dispatched_at = 1, started_at = 1, identity = ? WHERE id = ?",
            DEAD,
            job,
        )
    service.start()
    first = service.end_of(once)
    assert (first["state"], first["attempt"]) == ("human_attention_required", 1)
    # Its second attempt may be about to begin.
    assert service.show(again)["state"] in ("waiting_for_retry", "queued")
    assert service.show(waits)["state"] == "waiting_for_dependency"
    assert "held" in service.why(held)
    service.cli("resume", "--all", status=0)
    service.cli("unhold", held, status=0)
    ends = service.wait(again, waits, held)
    assert {end["state"] for end in ends} == {"succeeded"}
    assert sorted(ran.read_text().split()) == sorted([again, waits, held])
    service.end()
    files = {path: path.read_bytes() for path in service.home.glob("store.sqlite*")}
    refused = service.start_refused(OLDER)
    assert refused.status == 3
    assert "use the newer forge-actors, nothing was touched" in refused.err
    assert "Traceback" not in refused.err
    now = {path: path.read_bytes() for path in service.home.glob("store.sqlite*")}
    assert now == files
    service.start()
    assert service.show(held)["state"] == "succeeded"


def older(store: Path) -> None:
    """Give a store the schema of the release before, with what it holds."""
    fresh = store.with_suffix(".older")
    known = dict(migrations())
    known.pop(max(known))
    with closing(sqlite3.connect(fresh)) as target:
        for number, script in sorted(known.items()):
            target.executescript(script)
            target.execute(f"PRAGMA user_version = {number}")
        target.execute("ATTACH ? AS old", (str(store),))
        [(application,)] = target.execute("PRAGMA old.application_id")
        target.execute(f"PRAGMA application_id = {application}")
        tables = target.execute(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
            " AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (table,) in tables:
            info = target.execute(f"PRAGMA main.table_info({table})").fetchall()
            names = ", ".join(f'"{row[1]}"' for row in info)
            target.execute(f"DELETE FROM main.{table}")
            target.execute(
                f"INSERT INTO main.{table} ({names}) SELECT {names} FROM old.{table}"
            )
        target.commit()
        target.execute("PRAGMA journal_mode = wal")
    for suffix in ("", "-wal", "-shm"):
        store.with_name(f"{store.name}{suffix}").unlink(missing_ok=True)
    shutil.move(fresh, store)
    for suffix in ("-wal", "-shm"):
        fresh.with_name(f"{fresh.name}{suffix}").unlink(missing_ok=True)
