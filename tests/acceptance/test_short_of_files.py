"""A service, or its node agent, that can open no file any more, until it can again."""

from __future__ import annotations

import resource
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.bench import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.service import LiveService


@contextmanager
def no_files(pid: int, spare: int = 0) -> Iterator[None]:
    """The process can keep what it has open, and open only so many more."""
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    free = [fd for fd in range(1024) if fd not in taken]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[spare], limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def test_a_service_without_files_lives_on_and_answers_when_it_has_some(
    service: LiveService,
) -> None:
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}")
    after = service.bash("app", bell.ring)
    bell.wait()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        with no_files(service.pid):
            client.connect(str(service.home / "control.sock"))
            client.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            gate.open()
            # The job ends and the next one runs, though nobody can be heard.
            bell.wait()
        answer = client.recv(4096)
        assert b" 200 " in answer.split(b"\r\n")[0]
    for job in (runs, after):
        assert service.end_of(job)["state"] == "succeeded"
    log = (service.home / "service.log").read_text()
    assert log.count("no file for another client") == 1, log
    assert "Traceback" not in log
    assert service.end_of(service.bash("app", "true"))["state"] == "succeeded"


def test_an_agent_without_files_fails_no_job(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}", "--read-only")
    bell.wait()
    service.until(runs, "job_running")  # the agent has closed the ends of its pipes
    # A start needs two pipes; the end of the other job gives enough back.
    with no_files(service.agent_pid, spare=3):
        held = service.bash("app", bell.ring, "--read-only")
        service.until(held, "job_dispatched")
        assert service.show(runs)["state"] == "running"
        assert service.show(held)["state"] == "dispatched"
        # The agent tells of it a little later; the limit of the test is that of this.
        while not (told := service.json("status")["degraded"]):
            pass
        [said] = told
        assert said.startswith("1 starts wait for the system: ")
        assert said.endswith("Too many open files")
        gate.open()
        bell.wait()
    for job in (runs, held):
        assert service.end_of(job)["state"] == "succeeded"
    assert service.json("status")["degraded"] == []
