"""D-06: a disk that is full, before, while and when a service starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.client.sync import Service as Connection
from forge_actors.domain.errors import ForgeError
from tests.acceptance.bench import PATIENCE, wait_until_ended
from tests.acceptance.service import PROGRAM
from tests.small_disk import needs_root, read_only, remount, small_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.acceptance.service import LiveService

pytestmark = needs_root

DISK_KIB = 1536
KIB = 1024
#: Left beside the ballast for the first jobs.
ROOM_KIB = 300
#: Most jobs that may be accepted before the disk is full: each takes some of it.
MANY = 2000


@pytest.fixture
def crowded(make_service: Callable[[str], LiveService]) -> Iterator[LiveService]:
    """A service on a disk of 1.5 MiB that has little room left."""
    service = make_service()
    settings = (service.home / "settings.toml").read_text()
    with small_disk(service.home, DISK_KIB):
        # Otherwise jobs would be refused before it is full.
        settings += "[disk]\nwarn_free = 0\nrefuse_free = 0\n"
        (service.home / "settings.toml").write_text(settings)
        service.start()
        service.add("app")
        leave_room(service.home, ROOM_KIB)
        yield service


def free_kib(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize // KIB


def leave_room(home: Path, kib: int) -> None:
    with (
        open(home / "ballast", "ab", buffering=0) as ballast,
        contextlib.suppress(OSError),
    ):
        while (more := free_kib(home) - kib) > 0:
            ballast.write(bytes(max(4, more) * KIB))


def fill(service: LiveService) -> tuple[list[str], str]:
    """Submit until the service refuses; the ids it gave, and why it did not go on."""
    connection = Connection(str(service.home))
    accepted: list[str] = []
    body = {"repo": "app", "argv": ["true", "x" * 1000], "priority": "P4"}
    for _ in range(MANY):
        try:
            told = connection.post("jobs", body={"jobs": [body]})
        except ForgeError as error:
            return accepted, str(error)
        accepted += [entry["id"] for entry in told["jobs"]]
    raise AssertionError("the disk was never full")


def start_again(service: LiveService) -> int:
    """Start it as a manager would; the reading end of what it says of being ready."""
    reading, writing = os.pipe()
    with open(service.root / "service.log", "ab") as log:
        service._child = subprocess.Popen(
            [PROGRAM, "serve", "--home", service.home, "--ready-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[writing],
        )
    os.close(writing)
    service.pid = service._child.pid
    return reading


def test_a_full_disk_refuses_what_is_new_and_loses_nothing(
    crowded: LiveService,
) -> None:
    crowded.cli("pause", "--all", status=0)
    accepted, reason = fill(crowded)
    assert accepted
    assert "full" in reason or "space" in reason.lower()
    for _ in range(3):
        assert crowded.cli("submit", "--repo", "app", "--", "true").status != 0
    status = crowded.json("status")
    assert (status["ready"], len(status["degraded"])) == (False, 1)
    said = (crowded.root / "home" / "service.log").read_text()
    assert said.count("nothing can be saved now") <= 1
    crowded.kill()
    # It has nothing to do, and goes with its service.
    assert wait_until_ended(crowded.agent_pid)
    leave_room(crowded.home, 0)

    with open(start_again(crowded), "rb", buffering=0) as ready:
        assert ready.readline().strip(), "it says that it waits"
        status = crowded.json("status")
        assert not status["ready"]
        assert "waits for space" in status["degraded"][0]
        refused = crowded.cli("submit", "--repo", "app", "--", "true")
        assert refused.status != 0
        assert "waits for space" in refused.err
        assert "waits for space" in crowded.cli("doctor", status=1).out
        # A second one is refused, and does not disturb the first.
        assert crowded.cli("serve", status=3).err.count("\n") == 1
        (crowded.home / "ballast").unlink()
        assert ready.readline() == b"\n"
    crowded.agent_pid = crowded.json("status")["service"]["agent_pid"]
    assert crowded.json("status")["ready"]
    for job in accepted:
        assert crowded.show(job)["state"] == "queued"
    crowded.cli("resume", "--all", status=0)
    crowded.wait(*accepted)
    assert crowded.end_of(crowded.bash("app", "true"))["state"] == "succeeded"
    said = (crowded.root / "service.log").read_text()
    assert said.count("waits for space") == 1, said


def test_a_start_in_a_read_only_home_waits_until_it_is_not(
    crowded: LiveService,
) -> None:
    job = crowded.bash("app", "exit 3")
    crowded.end_of(job)
    crowded.end()
    remount(crowded.home, writable=False)
    with open(start_again(crowded), "rb", buffering=0) as ready:
        told = ready.readline().decode()
        assert "Read-only file system" in told
        assert crowded.show(job)["state"] == "failed", "it can still be read"
        remount(crowded.home, writable=True)
        assert ready.readline() == b"\n"
    crowded.agent_pid = crowded.json("status")["service"]["agent_pid"]
    assert crowded.end_of(crowded.bash("app", "true"))["state"] == "succeeded"
    said = (crowded.root / "service.log").read_text()
    assert said.count(f"waits until {crowded.home} is no longer read-only") == 1


def test_a_read_only_home_without_a_store_is_refused(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    with read_only(service.home):
        done = service.cli("serve")
    assert done.status != 0
    assert (done.err.count("\n"), "Read-only" in done.err) == (1, True)


def test_a_job_outlives_its_service_on_a_full_disk(crowded: LiveService) -> None:
    """Its agent is there, and so is room in the log of the store, as a rule: then the
    next service need not wait."""
    gate, bell = crowded.gate(), crowded.bell()
    runs = crowded.bash("app", f"{bell.ring}; {gate.wait}; echo done", "--read-only")
    bell.wait()
    crowded.until(runs, "job_running")
    crowded.cli("pause", "--all", status=0)
    accepted, _ = fill(crowded)
    crowded.kill()
    leave_room(crowded.home, 0)
    with open(start_again(crowded), "rb", buffering=0) as ready:
        waits = ready.readline() != b"\n"
        (crowded.home / "ballast").unlink()
        assert not waits or ready.readline() == b"\n"
    assert crowded.show(runs)["state"] == "running"
    gate.open()
    assert crowded.end_of(runs)["state"] == "succeeded"
    assert crowded.log(runs) == b"done\n"
    crowded.cli("resume", "--all", status=0)
    assert {end["state"] for end in crowded.wait(*accepted)} == {"succeeded"}


def test_a_running_job_is_not_killed_for_a_full_disk(crowded: LiveService) -> None:
    gate, bell = crowded.gate(), crowded.bell()
    job = crowded.bash("app", f"{bell.ring}; {gate.wait}; head -c 300000 /dev/zero")
    bell.wait()
    fill(crowded)
    leave_room(crowded.home, 0)
    gate.open()
    (crowded.home / "ballast").unlink()
    assert crowded.end_of(job)["state"] == "succeeded"
    assert crowded.cli("status", "--wait", "ready", "--timeout", "60s").status == 0
    assert crowded.end_of(crowded.bash("app", "true"))["state"] == "succeeded"


def test_a_waiting_service_is_stopped_like_another_one(crowded: LiveService) -> None:
    crowded.terminate()
    leave_room(crowded.home, 0)
    with open(start_again(crowded), "rb", buffering=0) as ready:
        assert ready.readline().strip()
        crowded.cli("stop", status=0)
        assert ready.readline() == b""
    assert crowded._child is not None
    assert crowded._child.wait(PATIENCE) == 0


def test_a_detached_start_on_a_full_disk_says_that_it_waits(
    crowded: LiveService,
) -> None:
    crowded.terminate()
    leave_room(crowded.home, 0)
    done = crowded.cli("serve", "--detach", status=0)
    crowded.pid = int(done.out)
    assert "not ready yet; it waits for space" in done.err
    crowded.terminate()
