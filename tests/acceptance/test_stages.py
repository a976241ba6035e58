"""The stages of a start: each is seen, may fail, may be cut short; ready is last."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.cli import stop
from forge_actors.cli.main import main
from forge_actors.domain.readiness import ORDER, STAGES
from tests.acceptance.bench import PATIENCE, wait_until_ended
from tests.acceptance.notified import manager
from tests.acceptance.service import _MAIN, finished, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import LiveService

#: The stages in which the service has its home.
OWNED = ORDER[ORDER.index("release") :]

#: A stage, once it began, lasts until the gate is open.
STAYS = """
from forge_actors.runtime.readiness import Board
plain = Board.enter
def enter(board, stage):
    plain(board, stage)
    if stage == {stage!r}:
        open({bell!r}, "w").write("x\\n")
        open({gate!r}).read()
Board.enter = enter
"""
FAILS = """
from forge_actors.runtime.readiness import Board
plain = Board.enter
def enter(board, stage):
    plain(board, stage)
    if stage == {stage!r}:
        raise OSError(5, "no luck here")
Board.enter = enter
"""
#: The jobs are taken up once the gate is open; the service does other things meanwhile.
TAKES_LONG = """
import trio
from forge_actors.runtime.parts import Parts
plain = Parts.start
async def start(parts, *args, **more):
    open({bell!r}, "w").write("x\\n")
    await trio.to_thread.run_sync(open({gate!r}).read)
    return await plain(parts, *args, **more)
Parts.start = start
"""


def published(service: LiveService) -> dict[str, Any]:
    """What the status file says."""
    found = json.loads((service.home / "runtime" / "status.json").read_text())
    assert isinstance(found, dict)
    return found


def last_exit(service: LiveService) -> dict[str, Any]:
    found = json.loads((service.home / "runtime" / "last-exit.json").read_text())
    assert isinstance(found, dict)
    return found


@contextmanager
def starting(service: LiveService, patch: str) -> Iterator[subprocess.Popen[bytes]]:
    """A service that has come to a stage and stays there until its gate is open."""
    code = f"import sys\n{patch}\n{_MAIN}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--home", service.home],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=service.root,
    )
    service.pid = process.pid
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def end_of(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err.decode()


@pytest.mark.parametrize("stage", ORDER)
def test_a_service_that_is_told_to_stop_in_a_stage_ends_in_order(
    make_service: Callable[[str], LiveService], stage: str
) -> None:
    service = make_service("")
    bell, gate = service.bell(), service.gate()
    place = {"stage": stage, "bell": str(service.root / "bell0")}
    with starting(service, STAYS.format(**place, gate=str(gate.path))) as process:
        bell.wait()
        process.send_signal(signal.SIGTERM)
        gate.open()
        status, said = end_of(process)
    assert status == 0, said
    assert "Traceback" not in said
    assert ('"event": "ready"' in said) == (stage == "ready")
    assert not (service.home / "runtime" / "status.json").exists()
    assert not (service.home / "control.sock").exists()
    if stage in OWNED:
        assert last_exit(service)["reason"] == "SIGNAL_SIGTERM"
    service.start()
    assert service.json("status")["ready"] is True


@pytest.mark.parametrize("stage", ORDER)
def test_a_stage_that_fails_is_named_and_leaves_nothing_behind(
    make_service: Callable[[str], LiveService], stage: str
) -> None:
    service = make_service("")
    code = next(part.code for name, part in STAGES.items() if name == stage)
    path = str(service.root / "notify")
    notifies = f"import os; os.environ['NOTIFY_SOCKET'] = {path!r}"
    patch = f"{notifies}\n{FAILS.format(stage=stage)}"
    with manager(service.root / "notify") as listening, starting(service, patch) as end:
        listening.until(f"STATUS={code}: ")
        status, err = end_of(end)
    assert status > 0
    assert err.splitlines()[-1].startswith("forge-actors: ")
    assert "no luck here" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert not (service.home / "runtime" / "status.json").exists()
    said = [line for line in err.splitlines() if '"event": "failed"' in line]
    # Nobody wants to hear twice why a service does not start.
    assert len(said) == (stage == "ready")
    if stage in OWNED:
        ended = last_exit(service)
        assert (ended["reason"], ended["stage"]) == (code, stage)
        assert ended["status"] == status
    service.start()


def test_a_service_that_starts_answers_how_far_it_is(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    bell, gate = service.bell(), service.gate()
    place = {"bell": str(service.root / "bell0"), "gate": str(gate.path)}
    with starting(service, TAKES_LONG.format(**place)) as process:
        bell.wait()
        status = service.json("status")
        assert (status["ready"], status["stage"]) == (False, "scheduler")
        assert status["readiness"]["database"] == "pass"
        assert status["readiness"]["scheduler"] == "not_observed"
        file = published(service)
        assert (file["stage"], file["pid"]) == ("scheduler", process.pid)
        assert file["readiness"]["ready"] is False
        waited = service.cli("status", "--wait", "--timeout", "1s")
        assert waited.status == 5
        assert "taking up the jobs" in waited.err
        with started("--home", service.home, "jobs", "--json") as held:
            # Held, not refused: it is answered once there is somebody to answer.
            gate.open()
            assert service.json("status", "--wait")["ready"] is True
            assert finished(held).status == 0
        service.find()


def test_a_service_that_starts_can_be_stopped_over_its_socket(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    bell, gate = service.bell(), service.gate()
    place = {"bell": str(service.root / "bell0"), "gate": str(gate.path)}
    with starting(service, TAKES_LONG.format(**place)) as process:
        bell.wait()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(service.home / "control.sock"))
            client.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")
            service.cli("stop", "--no-wait", status=0)
            answer = client.recv(4096)
        gate.open()
        assert end_of(process)[0] == 0
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"nothing was done" in answer
    assert last_exit(service)["reason"] == "STOP_REQUESTED"


def test_the_status_file_lives_as_long_as_its_service(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    service.start()
    path = service.home / "runtime" / "status.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    file, status = published(service), service.json("status")
    assert file["stage"] == "ready"
    assert file["readiness"]["ready"] is True
    assert file["readiness"]["diagnostics"] == status["readiness"]
    assert file["readiness"]["diagnostics"]["mcpEndToEnd"] in ("pass", "not_observed")
    assert file["readiness"]["diagnostics"]["endToEnd"] == "pass"
    for answer in ("execution_ready", "maintenance_healthy", "release_coherent"):
        assert file[answer] is status[answer] is True
    assert file["pid"] == service.pid
    for name in ("installation", "instance", "version"):
        assert file[name] == status["service"][name]
    assert file["release"] == status["service"]["release"]["id"]
    assert file["endpoints"]["socket"] == str(service.home / "control.sock")
    other = service.cli("serve")
    assert other.status == 3
    assert other.err.startswith("forge-actors: another service ")
    assert published(service) == file, "it is that of the owner"
    service.kill()
    assert published(service) == file, "nobody was there to remove it"
    service.start()
    assert published(service)["instance"] != file["instance"]
    service.terminate()
    assert not path.exists()
    assert last_exit(service)["reason"] == "SIGNAL_SIGTERM"


def test_the_status_file_of_another_owner_is_left_alone(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    service.start()
    path = service.home / "runtime" / "status.json"
    other = {**published(service), "instance": "runtime_of_somebody_else"}
    path.write_text(json.dumps(other))
    service.terminate()
    assert published(service) == other


#: Its parts stop once the gate is open.
STOPS_LATE = """
import trio
from forge_actors.runtime.parts import Parts
plain = Parts.stop
async def stop(parts, *args):
    open({bell!r}, "w").write("x\\n")
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(open({gate!r}).read)
    await plain(parts, *args)
Parts.stop = stop
"""


def test_whoever_asks_a_service_that_ends_to_stop_waits_for_the_same_end(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service("")
    bell, gate = service.bell(), service.gate()
    place = {"bell": str(service.root / "bell0"), "gate": str(gate.path)}
    service.start_patched(STOPS_LATE.format(**place))
    service.cli("status", "--wait", status=0)
    with started("--home", service.home, "stop") as first:
        bell.wait()
        assert published(service)["stage"] == "stopping"
        assert service.cli("stop", "--no-wait", status=0).out.endswith("already\n")
        plain = stop._open

        def opened(pid: int) -> int | None:
            found = plain(pid)
            gate.open()
            return found

        monkeypatch.setattr(stop, "_open", opened)
        assert main(["--home", str(service.home), "stop"]) == 0
        assert wait_until_ended(service.pid, 0), "it came back after the end"
        assert finished(first).status == 0


#: Writes down in which order a service tells of a failure and acts on it.
IN_ORDER = """
import os
from forge_actors.actors import supervisor
from forge_actors.domain.events import Event
from forge_actors.edges.gateway.door import Door
from forge_actors.runtime import status_file, parts, service
def say(what):
    with open({diary!r}, "a") as diary:
        diary.write(what + "\\n")
def first(place, name, says):
    plain = getattr(place, name)
    def patched(*args, **more):
        if (said := says(*args)) is not None:
            say(said)
        return plain(*args, **more)
    setattr(place, name, patched)
first(status_file.StatusFile, "write", lambda _, found:
    None if found["readiness"]["ready"] else "not-ready")
first(parts.Parts, "_note_failure", lambda _, failure: "event")
first(parts.Parts, "stop", lambda *_: "parts")
first(Door, "remove", lambda *_: "door")
first(status_file.StatusFile, "remove", lambda *_: "removed")
supervisor.BUSY_PASS_SECONDS = supervisor.IDLE_PASS_SECONDS = 0.1
plain = supervisor._Supervisor._make_pass
def make_pass(actor):
    if os.path.exists({fuse!r}):
        raise RuntimeError("a bug")
    plain(actor)
supervisor._Supervisor._make_pass = make_pass
"""


def test_a_part_that_fails_for_good_is_told_of_before_the_service_ends(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    fuse, diary = service.root / "fuse", service.root / "diary"
    service.start_patched(IN_ORDER.format(fuse=str(fuse), diary=str(diary)))
    service.cli("status", "--wait", status=0)
    diary.unlink()
    words = "--home", service.home, "events", "-f", "--since", "1h"
    with started(*words) as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        fuse.touch()
        assert wait_until_ended(service.pid)
        assert finished(follower).err, "it is told that nothing more comes"
    acts = list(dict.fromkeys(diary.read_text().split()))
    assert acts == ["not-ready", "event", "door", "parts", "removed"]
    ended = last_exit(service)
    assert ended["reason"] == "SCHEDULER_STOPPED"
    assert ended["status"] == 1
    assert "a bug" in ended["message"]
    lines = service.cli("events", "--json").out.splitlines()
    [event] = [e for e in map(json.loads, lines) if e["kind"] == "runtime_failed"]
    assert event["data"]["code"] == "SCHEDULER_STOPPED"
    assert '"reason": "SCHEDULER_STOPPED"' in (service.home / "service.log").read_text()


def test_a_service_manager_hears_of_each_stage(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    path = service.root / "notify"
    with manager(path) as listening:
        service.start_patched(f"import os; os.environ['NOTIFY_SOCKET'] = {str(path)!r}")
        heard = listening.until("READY=1")
        told = [message[0].removeprefix("STATUS=") for message in heard[:-1]]
        assert list(dict.fromkeys(told)) == [
            STAGES[stage].doing for stage in ORDER if stage != "ready"
        ]
        assert heard[-1] == ["READY=1", "STATUS=ready"]
        os.kill(service.pid, signal.SIGHUP)
        [*_, reloading] = listening.until("RELOADING=1")
        assert re.fullmatch(r"MONOTONIC_USEC=[0-9]+", reloading[1])
        listening.until("READY=1")
        service.terminate()
        [*_, last] = listening.until("STOPPING=1")
        assert last == ["STOPPING=1", "STATUS=ending: SIGNAL_SIGTERM"]
