"""A service whose socket somebody removed is still the one service of its home."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors, wait_for_words
from tests.acceptance.service import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

    Make = Callable[[str], LiveService]


class Busy:
    """A service with one worker that is taken, and a job that waits."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        service.start()
        service.add("app")
        self.mark, bell = service.marker(), service.bell()
        self.gate = service.gate()
        self.script = f"{bell.ring}; {self.gate.wait}; exit 0; {self.mark}"
        self.runs = service.bash("app", self.script)
        self.waits = service.bash("app", "true")
        bell.wait()
        service.pid_of(self.runs)
        self.socket = service.home / "control.sock"

    def check(self) -> None:
        """It is the same service, with the same jobs and limits, and it goes on."""
        service = self.service
        status = service.json("status")
        assert status["service"]["pid"] == service.pid
        assert status["capacity"]["workers"]["limit"] == 1
        assert {job["id"] for job in service.json("jobs")} == {self.runs, self.waits}
        assert len(survivors(self.mark)) == 1
        self.gate.open()
        ends = service.wait(self.runs, self.waits)
        assert [end["state"] for end in ends] == ["succeeded"] * 2
        assert [end["attempt"] for end in ends] == [1, 1]


@pytest.fixture
def busy(make_service: Make) -> Busy:
    return Busy(make_service("[limits]\nworkers = 1\n"))


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_socket_that_is_removed_is_made_again(busy: Busy, how: str) -> None:
    """Q-14: the service notices, and until then clients say what happened."""
    service, socket = busy.service, busy.socket
    os.kill(service.pid, signal.SIGSTOP)  # so that it cannot notice yet
    if how == "removed":
        socket.unlink()
    else:
        socket.rename(service.root / "moved")
    if how == "replaced":
        (service.root / "moved").rename(socket)
        old = service.root / "old"
        socket.rename(old)
        subprocess.run(["cp", "-a", old, socket], check=True)
    for verb in (("jobs",), ("status",), ("submit", "--repo", "app", "--", "true")):
        done = service.cli(*verb, status=4)
        assert done.out == ""
        assert done.err == (
            f"forge-actors: the service on {service.home} (pid {service.pid}) runs, but"
            f" its socket {socket} is gone; kill -HUP {service.pid} has it make"
            " another one\n"
        )
    refused = call("serve", "--home", service.home, status=3)
    assert f"another service (pid {service.pid}, runtime_" in refused.err
    doctor = service.cli("doctor", status=1)
    assert f"broken   service    the service on {service.home}" in doctor.out
    os.kill(service.pid, signal.SIGCONT)
    wait_for_words(service.home / "service.log", "is made again")
    busy.check()
    service.cli("stop", status=0)
    assert not socket.exists()


def test_a_service_without_its_socket_and_its_lock_is_still_the_only_one(
    busy: Busy,
) -> None:
    """Q-14: who cleans up all that looks left over does not get a second service."""
    service = busy.service
    os.kill(service.pid, signal.SIGSTOP)
    for name in ("control.sock", "runtime.lock", "agent.lock"):
        (service.home / name).unlink()
    refused = call("serve", "--home", service.home, status=3)
    assert f"another service (pid unknown) runs on {service.home}" in refused.err
    os.kill(service.pid, signal.SIGCONT)
    wait_for_words(service.home / "service.log", "is made again")
    busy.check()


def test_a_service_whose_socket_cannot_be_made_again_stops_in_order(
    busy: Busy,
) -> None:
    """Q-14: what stands in its place is not touched, and nothing is lost."""
    service = busy.service
    os.kill(service.pid, signal.SIGSTOP)
    busy.socket.rename(service.root / "moved")
    busy.socket.write_text("mine")
    os.kill(service.pid, signal.SIGCONT)
    wait_for_words(service.home / "service.log", "cannot be made again")
    done = service.cli("jobs", status=4)
    assert f"kill -HUP {service.pid}" in done.err
    busy.socket.unlink()
    os.kill(service.pid, signal.SIGHUP)
    wait_for_words(service.home / "service.log", "is made again")
    busy.check()
    os.kill(service.pid, signal.SIGSTOP)
    busy.socket.rename(service.root / "moved")
    busy.socket.mkdir()
    os.kill(service.pid, signal.SIGCONT)
    service.terminate()
    assert busy.socket.is_dir()
    assert "Traceback" not in (service.home / "service.log").read_text()
