"""A start that is told to stop ends, whatever it was doing, and loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

from tests.acceptance.service import finished, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

ROUNDS = 20
#: From one round to the next the signal comes so many seconds later.
STEP = 0.045


def test_a_start_that_is_told_to_stop_ends_at_once_and_loses_nothing(
    make_service: Callable[[str], LiveService],
) -> None:
    """P-22"""
    service = make_service("")
    service.start()
    service.add("app")
    ran = service.root / "ran"
    bell, gate = service.bell(), service.gate()
    script = f"{bell.ring}; {gate.wait}; exit 9"
    runs = service.bash("app", script, "--read-only", "--timeout", "10m")
    bell.wait()
    pid = service.until(runs, "job_running").data["pid"]
    service.cli("pause", "--all", status=0)
    argv = ["bash", "-c", f"echo $FORGE_JOB_ID >> {ran}"]
    jobs = service.batch([{"repo": "app", "argv": argv} for _ in range(50)])
    service.cli("resume", "--all", status=0)
    service.cli("stop", status=0)
    for turn in range(ROUNDS):
        with started("--home", service.home, "serve") as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(turn * STEP)
            os.kill(process.pid, signal.SIGTERM)
            done = finished(process)
        # Before the program has begun to act on signals, nothing has begun at all.
        assert done.status in (0, -signal.SIGTERM), (turn, done)
        assert "Traceback" not in done.err, (turn, done)
    service.start()
    shown = service.show(runs)
    assert (shown["state"], shown["pid"]) == ("running", pid)
    gate.open()
    end = service.end_of(runs)
    assert (end["exit_code"], end["attempt"]) == (9, 1)
    ends = service.wait(*jobs)
    assert {end["state"] for end in ends} == {"succeeded"}
    assert Counter(ran.read_text().split()) == dict.fromkeys(jobs, 1)
