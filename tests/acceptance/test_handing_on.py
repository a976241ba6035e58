"""A job that submits others: its work is theirs, whatever becomes of it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

SUBMIT = shlex.join([sys.executable, "-m", "forge_actors", "submit"])


ONE = f"{SUBMIT} --repo app --read-only -- true"
LINE = '{"repo": "app", "argv": ["true"], "read_only": true}'
BATCH = f"echo {shlex.quote(LINE)} | {SUBMIT} --batch -"


@pytest.mark.parametrize("submits", [ONE, BATCH])
def test_a_job_that_handed_its_work_on_has_succeeded_when_it_is_killed(
    service: LiveService, submits: str
) -> None:
    bell = service.bell()
    script = f"{submits}; {bell.ring}; sleep 600"
    options = ("--kind", "dispatch-task", "--read-only")
    parent = service.bash("app", script, *options)
    service.until(parent, "job_running")
    bell.wait()
    os.kill(service.show(parent)["pid"], signal.SIGKILL)
    end = service.end_of(parent)
    assert (end["state"], end["error"]) == ("succeeded", None)
    child = service.log(parent).decode().strip()
    assert service.end_of(child)["state"] == "succeeded"
    assert [entry.kind for entry in service.events()].count("job_delegated") == 1


def test_a_process_of_an_attempt_that_is_over_submits_nothing(
    service: LiveService,
) -> None:
    bell, gate = service.bell(), service.gate()
    late = f"({gate.wait}; {SUBMIT} --repo app --read-only -- true; {bell.ring})"
    script = f"{late} > late.txt 2>&1 & true"
    job = service.bash("app", script, "--read-only", "--keep-leftovers")
    assert service.end_of(job)["state"] == "succeeded"
    gate.open()
    bell.wait()
    kinds = [entry.kind for entry in service.events()]
    assert kinds.count("job_queued") == 1
    cwd = service.show(job)["cwd"]
    with open(os.path.join(cwd, "late.txt"), encoding="utf-8") as told:
        assert "is not its current one any more" in told.read()
