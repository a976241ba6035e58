"""Callers that leave, and the places where they find the service."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import wait_until_ended
from tests.acceptance.service import PROGRAM, Done, LiveService, call, started

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_job_survives_the_terminal_it_was_submitted_from(
    service: LiveService,
) -> None:
    """C-04: the terminal is closed as soon as the id is there."""
    ours, theirs = pty.openpty()
    submit = f"{PROGRAM} --home {service.home} submit --repo app -- sleep 0.5"
    shell = subprocess.Popen(
        ["setsid", "--ctty", "bash", "-c", f"{submit}; cat"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    while b"\n" not in printed:
        printed += os.read(ours, 1024)
    os.close(ours)
    assert shell.wait() in (-signal.SIGHUP, 128 + signal.SIGHUP)
    [job] = printed.decode().split()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("succeeded", 0)


def test_a_job_survives_the_kill_of_the_client_that_submitted_it(
    service: LiveService,
) -> None:
    """C-04: also of one that would have waited for it."""
    gate = service.gate()
    words = ("submit", "--repo", "app", "--", "bash", "-c", gate.wait)
    with started("--home", service.home, *words) as client:
        assert client.stdout is not None
        job = client.stdout.readline().decode().strip()
        client.kill()
    with started("--home", service.home, "wait", job) as waiter:
        service.until(job, "job_running")
        waiter.kill()
    gate.open()
    assert service.end_of(job)["state"] == "succeeded"


# Where the socket is


@pytest.fixture
def homeless(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> LiveService:
    """A home, and beside it `run` for the sockets of homes with long paths."""
    service = make_service("")
    place = service.root / "run"
    place.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    return service


def move_home(service: LiveService, size: int, last: str = "x") -> None:
    """Give the home a path by which its socket would have one of so many bytes."""
    rest = size - len(os.fsencode(service.root / "h" / "control.sock")) + 1
    home = service.root / ("h" * (rest - len(last)) + last)
    service.home.rename(home)
    service.home = home
    assert len(os.fsencode(home / "control.sock")) == size


@pytest.mark.parametrize("size", [100, 107, 108, 250])
def test_a_home_serves_however_long_its_path_is(
    homeless: LiveService, size: int
) -> None:
    """C-06: 107 bytes are the most that the system takes."""
    service = homeless
    move_home(service, size)
    service.start()
    service.add("app")
    assert service.end_of(service.bash("app", "true"))["state"] == "succeeded"
    sockets = [
        *(service.root / "run").rglob("control.sock"),
        *service.home.glob("control.sock"),
    ]
    assert len(sockets) == 1
    assert sockets[0].parent.stat().st_mode & 0o077 == 0
    # The variables of another caller may name another place.
    done = subprocess.run(
        [PROGRAM, "--home", service.home, "status", "--json"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    assert b'"pid": %d' % service.pid in done.stdout
    service.terminate()
    assert not sockets[0].exists()


def test_two_homes_that_differ_only_at_their_ends_never_share_a_socket(
    homeless: LiveService,
) -> None:
    """C-06: the first 107 bytes of both are the same."""
    service = homeless
    move_home(service, 200, last="1")
    other = service.home.with_name(f"{service.home.name[:-1]}2")
    assert os.fsencode(service.home)[:107] == os.fsencode(other)[:107]
    nobody = call("--home", other, "status")
    assert (nobody.status, "no service runs" in nobody.err) == (4, True)
    service.start()
    nobody = call("--home", other, "status")
    assert (nobody.status, "no service runs" in nobody.err) == (4, True)
    pid = int(call("--home", other, "serve", "--detach", status=0).out)
    assert pid != service.pid
    for home, served_by in ((service.home, service.pid), (other, pid)):
        status: Done = call("--home", home, "status", "--json", status=0)
        assert f'"pid": {served_by}' in status.out
        assert str(home) in status.out
    call("--home", other, "stop", status=0)
    assert wait_until_ended(pid)
    assert service.json("status")["service"]["pid"] == service.pid
