"""`drain` and `status --wait` on a real service."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.acceptance.bench import wait_until_ended
from tests.acceptance.service import PROGRAM

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def test_a_drain_lets_what_runs_end_and_then_stops(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}", "--name", "long")
    bell.wait()
    waits = service.submit("--repo", "app", "--read-only", "--", "true")
    service.wait(waits)
    done = service.cli("drain", "--timeout", "0.2s")
    assert (done.status, runs[-6:] in done.out, "long" in done.out) == (5, True, True)
    waits = service.submit("--repo", "app", "--read-only", "--", "true")
    assert "the service is draining" in service.why(waits)
    assert service.json("status")["draining"] is True
    call = [PROGRAM, "--home", str(service.home), "drain", "--stop"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as drain:
        gate.open()
        out, _ = drain.communicate()
    assert (drain.returncode, b"ended" in out) == (0, True)
    assert wait_until_ended(service.pid)
    service.start()
    assert service.end_of(waits)["state"] == "succeeded"
    assert service.show(runs)["state"] == "succeeded"
    told = [entry.kind for entry in service.events() if entry.job is None]
    assert told.count("drain_began") == 1
    assert service.cli("status", "--wait", "--timeout", "5s").status == 0


def test_the_end_of_the_service_ends_a_drain_with_no_service(
    service: LiveService,
) -> None:
    gate, bell = service.gate(), service.bell()
    service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    calls = [
        [PROGRAM, "--home", str(service.home), *words]
        for words in (("drain",), ("status", "--wait", "idle"))
    ]
    waiting = [
        subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for call in calls
    ]
    for entry in service._entries(after=0, limit=1000, follow=1):
        if entry.kind == "drain_began":
            break
    service.terminate()
    for client in waiting:
        out, err = client.communicate()
        assert (client.returncode, out) == (4, b"")
        assert err.count(b"\n") == 1
