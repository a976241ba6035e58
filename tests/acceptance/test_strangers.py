"""The pid of a lost job is that of somebody else when the next service comes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.namespaces import CHOOSE_PID, UNSHARE, needs_namespace

ROOT = Path(__file__).parents[2]

pytestmark = needs_namespace

#: What loses its parent in a namespace becomes a child of the first process there.
PRELUDE = f"""
import json, os, signal, subprocess, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.acceptance.service import LiveService
from tests.namespaces import UNSHARE
{CHOOSE_PID}
def running(service):
    service.start()
    service.add("app")
    bell = service.bell()
    job = service.bash("app", f"{{bell.ring}}; exec sleep 60")
    bell.wait()
    service.until(job, "job_running")
    return job, service.show(job)["pid"]

def stranger(pid):
    choose_pid(pid)
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    assert process.pid == pid
    return process

def tell(service, job, process):
    service.start()
    end = service.end_of(job)
    service.cli("cancel", job)
    print(json.dumps([
        end["state"],
        end["error"]["code"],
        service.end_of(service.bash("app", "true", "--read-only"))["state"],
        service.cli("stop").status,
        process.poll(),
    ]))
"""

#: The next job runs, the service stops, and the stranger is still there.
CALM = ["succeeded", 0, None]


def told(script: str) -> Any:
    command = [*UNSHARE, sys.executable, "-c", PRELUDE + script]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100)
    return json.loads(done.stdout)


def test_one_that_has_the_pid_of_a_lost_job_gets_no_signal() -> None:
    """P-11."""
    script = """
service = LiveService()
try:
    job, pid = running(service)
    os.kill(service.agent_pid, signal.SIGSTOP)  # it does not see its service go
    service.kill()
    for gone in (service.agent_pid, pid):
        os.kill(gone, signal.SIGKILL)
        os.waitpid(gone, 0)
    tell(service, job, stranger(pid))
finally:
    service.close()
"""
    assert told(script) == ["human_attention_required", "WORKER_LOST", *CALM]


#: The service of another namespace; only the folder is shared.
WITHIN = """
os.environ["TMPDIR"] = sys.argv[1]
service = LiveService()
choose_pid(20_000)
print(json.dumps([str(service.home), *running(service)]), flush=True)
sys.stdin.read()
"""


def test_one_that_has_the_pid_of_another_namespace_gets_no_signal() -> None:
    """P-13: from where we are it cannot be seen whether the job's own is gone."""
    script = f"""
service = LiveService()
try:
    within = {PRELUDE + WITHIN!r}
    with subprocess.Popen(
        [*UNSHARE, sys.executable, "-c", within, service.root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        home, job, pid = json.loads(other.stdout.readline())
        other.kill()
    service.home = Path(home)
    tell(service, job, stranger(pid))
finally:
    service.close()
"""
    assert told(script) == ["orphaned", "WORKER_TERMINATION_INCOMPLETE", *CALM]
