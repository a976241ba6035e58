"""How processes end that were not asked to, may not be, or need their time for it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import PATIENCE, survivors, wait_until_ended
from tests.acceptance.service import LiveService

if TYPE_CHECKING:
    from collections.abc import Callable

#: Holds the port that it is given, in a session of its own, when its parent ends.
SERVE = """
import os, socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", ["sleep", sys.argv[3]])
"""
#: The agent of such a service has no right to end what belongs to another user.
NO_KILL = "import ctypes\nctypes.CDLL(None).prctl(24, 5, 0, 0, 0)"


def cancelled(service: LiveService, job: str, *options: str) -> dict[str, object]:
    service.cli("cancel", *options, job, status=0)
    return service.end_of(job)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root, and setpriv for a process of another user",
)
def test_a_process_that_refuses_the_kill_is_told_and_holds_nobody_up(
    make_service: Callable[[str], LiveService],
) -> None:
    """P-10: its worker is free, its claims are not before the process is gone."""
    service = make_service("")
    service.start_patched(NO_KILL)
    service.add("app")
    service.add("other")
    mark = service.marker()
    bell = service.bell()
    stuck = f"setpriv --reuid=65534 sh -c 'echo $$; exec sleep {mark}'"
    script = f"trap 'exit 0' TERM; {stuck} & {bell.ring}; wait"
    job = service.bash("app", script, "--grace", "1s")
    bell.wait()
    while not (sleepers := [x for x in survivors(mark) if x.split()[1] == "sleep"]):
        os.sched_yield()
    end = cancelled(service, job)
    [line] = sleepers
    pid = line.split()[0]
    told = f"process {pid} sleep may not be ended by this user"
    assert (end["state"], end["exit_code"], end["problem"]) == ("orphaned", 0, told)
    waiting = service.bash("app", "true")

    def check() -> None:
        again = service.show(job)
        assert (again["state"], again["problem"]) == ("orphaned", told)
        assert service.end_of(service.bash("other", "true"))["state"] == "succeeded"
        assert service.show(waiting)["waiting"]["kind"] == "claim"
        assert f"process {pid}" in service.why(waiting)
        assert line in survivors(mark)

    check()
    service.kill()
    assert wait_until_ended(service.agent_pid)
    service.start_patched(NO_KILL)
    check()
    # While something runs there is a safety pass every 5 s, which sees that it is gone.
    service.bash("other", service.gate().wait)
    os.kill(int(pid), signal.SIGKILL)
    assert wait_until_ended(int(pid))
    assert service.end_of(waiting)["state"] == "succeeded"


def test_killing_only_the_first_process_ends_the_rest(service: LiveService) -> None:
    """P-17: the end is seen, the tree is swept, and the signal is on record."""
    mark = service.marker()
    bell = service.bell()
    script = f"setsid sleep {mark} & {bell.ring}; sleep {mark}; true"
    job = service.bash("app", script)
    bell.wait()
    os.kill(service.pid_of(job), signal.SIGKILL)
    end = service.end_of(job)
    assert (end["state"], end["signal"]) == ("human_attention_required", "SIGKILL")
    assert survivors(mark) == []


def defunct_children(*parents: int) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "stat").read_text(errors="replace")
            except OSError:
                continue
            state, parent = line.rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) in parents:
                found.append(line)
    return found


def test_jobs_that_fork_twice_pile_up_no_dead_children(service: LiveService) -> None:
    """P-18: 500 of them, and soon no defunct child of the service or agent."""
    script = "(setsid true &) & (setsid sh -c true &) & exit 0"
    ask = {"repo": "app", "argv": ["sh", "-c", script], "kind": "check"}
    running = set(service.batch([{**ask, "claims": ["read:workspace"]}] * 500))
    for entry in service.follow():
        if entry.kind == "job_succeeded":
            running.discard(str(entry.job))
        if not running:
            break
    deadline = monotonic() + PATIENCE
    while left := defunct_children(service.pid, service.agent_pid):
        assert monotonic() < deadline, left
        os.sched_yield()


@pytest.mark.parametrize("number", ["TERM", "INT"])
def test_a_tool_has_the_time_it_needs_to_give_its_lock_back(
    service: LiveService, number: str
) -> None:
    """P-19: the grace and the first signal are those of the job."""
    lock = service.root / "lock"
    release = f"trap 'sleep 2; rm {lock}; exit 0' {number}"
    ends = []
    for grace in ("1s", "30s"):
        bell = service.bell()
        lock.touch()
        script = f"{release}; {bell.ring}; while :; do sleep .05; done"
        options = ["--grace", grace, "--stop-signal", number]
        job = service.bash("app", script, *options)
        bell.wait()
        end = cancelled(service, job)
        ends.append((end["forced"], end["exit_code"], lock.exists()))
    assert ends == [(True, None, True), (False, 0, False)]


def test_the_usual_grace_is_long_enough_for_a_short_clean_up(
    service: LiveService,
) -> None:
    """P-19, without any option."""
    lock = service.root / "lock"
    lock.touch()
    bell = service.bell()
    release = f"trap 'sleep 2; rm {lock}; exit 0' TERM"
    job = service.bash("app", f"{release}; {bell.ring}; while :; do sleep .05; done")
    bell.wait()
    assert cancelled(service, job)["forced"] is False
    assert not lock.exists()


def test_the_last_words_of_a_stopped_job_are_in_its_log(service: LiveService) -> None:
    """P-21: the streams are read until the job has ended."""
    bell = service.bell()
    script = f"trap 'echo bye; exit 0' TERM; {bell.ring}; while :; do sleep .1; done"
    job = service.bash("app", script)
    bell.wait()
    assert cancelled(service, job)["state"] == "cancelled"
    assert service.log(job, "--stream", "stdout").endswith(b"bye\n")


def test_a_server_that_a_successful_job_left_holds_no_port(
    service: LiveService,
) -> None:
    """P-23: the next job has the port, unless the first one asked to keep it."""
    # No other test on this machine takes a port of an address that is ours alone.
    host = f"127.{os.getpid() >> 16 | 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    with socket.create_server((host, 0)) as free:
        port = str(free.getsockname()[1])
    inherited = SERVE.replace("\nif", "\nlistener.set_inheritable(True)\nif")
    for options, state in (((), "succeeded"), (("--keep-leftovers",), "failed")):
        mark = service.marker()
        serve = [sys.executable, "-c", inherited, host, port, mark]
        first = service.submit("--repo", "app", *options, "--", *serve)
        assert service.end_of(first)["state"] == "succeeded"
        bind = f"import socket; socket.create_server(('{host}', {port}))"
        second = service.submit("--repo", "app", "--", sys.executable, "-c", bind)
        assert service.end_of(second)["state"] == state
    [left] = survivors(mark)
    os.kill(int(left.split()[0]), signal.SIGKILL)
    wait_until_ended(int(left.split()[0]))
