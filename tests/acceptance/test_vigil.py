"""A service that watches itself: what stalls is named, and it says how it is inside."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forge_actors.edges.gateway.removal import WRITTEN, watching
from tests.acceptance.bench import PATIENCE
from tests.acceptance.service import finished, started
from tests.acceptance.test_stages import manager, published

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.acceptance.service import LiveService

SHORT = '[watchdog]\nstall_after = "1s"\n'

#: A pause is what makes the supervisor wait, for as long as the gate is shut.
STUCK = """
import trio
from forge_actors.actors import supervisor
plain = supervisor._Supervisor.handle
async def stuck():
    await trio.to_thread.run_sync(open({gate!r}).read, abandon_on_cancel=True)
async def handle(actor, message):
    if type(message).__name__ == "SetPause":
        await stuck()
    await plain(actor, message)
supervisor._Supervisor.handle = handle
"""
#: Whoever waits for it to be idle blocks the loop until the gate is open.
BLOCKED = """
from forge_actors.runtime import control_service
async def wait_idle(control):
    open({gate!r}).read()
control_service.ServiceControl.wait_idle = wait_idle
"""


def reports(service: LiveService, kind: str) -> list[Path]:
    return sorted((service.home / "diagnostics").glob(f"{kind}-*.txt"))


@contextmanager
def next_report(service: LiveService, kind: str) -> Iterator[Callable[[], str]]:
    """Gives what waits for the next one, and says what is in it."""
    folder = service.home / "diagnostics"
    folder.mkdir(mode=0o700, exist_ok=True)
    before = reports(service, kind)
    with watching(str(folder), WRITTEN) as events:

        def wait() -> str:
            while not (new := [p for p in reports(service, kind) if p not in before]):
                assert select.select([events], [], [], PATIENCE)[0]
                os.read(events, 4096)
            assert stat.S_IMODE(new[0].stat().st_mode) == 0o600
            return new[0].read_text()

        yield wait


def test_a_supervisor_that_stalls_is_named_everywhere_and_goes_on(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service(SHORT)
    gate = service.gate()
    notify = str(service.root / "notify")
    patch = STUCK.format(gate=str(gate.path))
    with manager(service.root / "notify") as listening:
        service.start_patched(
            f"import os; os.environ.update(NOTIFY_SOCKET={notify!r},"
            f" WATCHDOG_USEC='500000')\n{patch}"
        )
        listening.until("READY=1")
        listening.until("WATCHDOG=1")
        with started("--home", service.home, "pause", "--all") as pauses:
            event = service.until(None, "actor_stalled")
            assert event.data["actor"] == "supervisor"
            assert event.data["at"].endswith(" stuck")
            file = published(service)
            assert file["readiness"]["ready"] is file["execution_ready"] is False
            assert file["maintenance_healthy"] is file["release_coherent"] is True
            assert file["readiness"]["diagnostics"]["scheduler"] == "fail"
            assert file["readiness"]["reasons"] == ["SCHEDULER_STALLED"]
            assert "supervisor has been at one message" in file["degraded"][0]
            # It cannot be asked, and others answer for it.
            status = service.json("status")
            assert (status["ready"], status["execution_ready"]) == (False, False)
            assert status["maintenance_healthy"] is True
            assert any("supervisor has been" in each for each in status["degraded"])
            log = (service.home / "service.log").read_text()
            assert re.search(r"supervisor is stalled for \d+ s:.*in stuck", log)
            heard = listening.until("STATUS=supervisor has been at one message")
            assert ["WATCHDOG=1"] in heard, "until it was found"
            gate.open()
            assert finished(pauses).status == 0
        service.until(None, "actor_resumed")
        listening.until("WATCHDOG=1")
    status = service.json("status")
    assert (status["ready"], status["degraded"]) == (True, [])
    assert status["reasons"] == ["SCHEDULER_STALLED"]


def test_a_loop_that_is_blocked_is_seen_from_outside_of_it(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service(SHORT)
    gate = service.gate()
    service.start_patched(BLOCKED.format(gate=str(gate.path)))
    words = "--home", service.home, "status", "--wait", "idle"
    with next_report(service, "blocked") as wait, started(*words) as waits:
        assert "in wait_idle" in wait()
        doctor = json.loads(service.cli("doctor", "--json", status=1).out)
        [check] = [each for each in doctor["checks"] if each["name"] == "service"]
        assert check["state"] == "broken"
        assert re.search("does not turn, at .* wait_idle", check["detail"])
        gate.open()
        assert finished(waits).status == 0
    event = service.until(None, "loop_blocked")
    assert event.data["at"].endswith(" wait_idle")
    assert event.data["seconds"] >= 1
    status = service.json("status")
    assert (status["ready"], status["degraded"]) == (True, [])
    assert published(service)["degraded"] == []


def ask(service: LiveService, number: signal.Signals, kind: str) -> str:
    """Have it write something down; what that says."""
    with next_report(service, kind) as wait:
        os.kill(service.pid, number)
        return wait()


def test_a_service_writes_down_its_tasks_and_its_memory(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    service.start()
    service.add("app")
    bell, gate = service.bell(), service.gate()
    job = service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    service.pid_of(job)
    before = service.json("status")
    tasks = ask(service, signal.SIGUSR1, "tasks")
    for name in ("supervisor", r"repository \S+"):
        line = rf"^  {name}  \d+  0  waits for a message$"
        assert re.search(line, tasks, re.MULTILINE)
    assert re.search(r"forge_actors\.actors\.supervisor:\d+ serve", tasks)
    memory = ask(service, signal.SIGUSR2, "memory")
    assert re.search(r"resident \d{7,} bytes", memory)
    assert len(re.findall(r"^ +\d+ +\d+  \S+$", memory, re.MULTILINE)) >= 100
    assert "SqliteStore._sql" in memory
    after: dict[str, Any] = service.json("status")
    assert after["readiness"] == before["readiness"]
    assert (after["ready"], after["degraded"]) == (True, [])
    doctor = service.json("doctor")
    [check] = [each for each in doctor["checks"] if each["name"] == "reports"]
    assert all(path.name in check["detail"] for path in reports(service, "memory"))
    gate.open()
    assert service.end_of(job)["state"] == "succeeded"


def test_only_the_last_reports_are_kept(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    service.start()
    for _ in range(10):
        ask(service, signal.SIGUSR1, "tasks")
    assert len(reports(service, "tasks")) == 8
    assert published(service)["readiness"]["ready"] is True
