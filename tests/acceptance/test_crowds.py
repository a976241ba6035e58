"""Many at once: followers that die, queues that are long, output that does not end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.acceptance.machine import closes_to, cpu_ticks, descriptors, written
from tests.acceptance.service import started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import Json, LiveService

FOLLOWERS, ROUNDS = 50, 2
QUEUED, LOOKS = 10_000, 20
WAITING, SECONDS = 5_000, 3
OUTPUT = 100_000_000


def test_followers_that_are_killed_while_a_job_prints_are_no_trouble(
    unwatched: LiveService,
) -> None:
    """L-07: half of fifty at a time; the others see all of it, nothing leaks."""
    gate = unwatched.gate()
    loop = "while :; do echo a line of the log; sleep 0.01; done & printer=$!"
    script = f"{loop}; {gate.wait}; kill $printer; wait; echo end"
    job = unwatched.bash("app", script, "--read-only")
    unwatched.until(job, "job_running")
    before = descriptors(unwatched.pid)
    ends = []
    with contextlib.ExitStack() as stack:
        kept = []
        for _ in range(ROUNDS):
            clients = [
                stack.enter_context(
                    started("--home", unwatched.home, "logs", "-f", "--stdout", job)
                )
                for _ in range(FOLLOWERS - len(kept))
            ]
            for client in clients:
                assert client.stdout is not None
                assert client.stdout.readline() == b"a line of the log\n"
            for client in clients[::2]:
                client.kill()
            kept += clients[1::2]
        assert unwatched.json("status")["ready"] is True
        assert unwatched.show(job)["state"] == "running"
        gate.open()
        for client in kept:
            assert client.stdout is not None
            ends.append((client.stdout.read(), client.wait()))
    assert unwatched.end_of(job)["state"] == "succeeded"
    whole = unwatched.log(job, "--stdout")
    assert set(ends) == {(whole.removeprefix(b"a line of the log\n"), 0)}
    assert closes_to(unwatched.pid, before)
    assert "Traceback" not in (unwatched.home / "service.log").read_text()


def test_a_long_queue_that_drains_is_listed_and_changed_without_delay(
    make_service: Callable[[str], LiveService],
) -> None:
    """X-01: the order is kept; how long calls take is a matter of the benchmarks."""
    service = make_service("")
    service.start()
    service.add("app")
    lines: list[Json] = [{"repo": "app", "argv": ["true"], "read_only": True}]
    jobs = service.batch(lines * QUEUED)
    last = jobs[-LOOKS:]
    for job in last:
        service.cli("jobs", status=0)
        service.submit("--repo", "app", "--priority", "P4", "--", "true")
        # It is still to come: nobody had to wait until the queue was short.
        assert service.cli("cancel", job, status=0).out == f"{job} cancelled\n"
    page = service.json("jobs", "--limit", "30", "--before", jobs[5000])
    assert [job["id"] for job in page] == jobs[4970:5000][::-1]
    service.cli("pause", "--all", status=0)
    entries = service.events()
    begun = [entry.job for entry in entries if entry.kind == "job_dispatched"]
    assert len(begun) >= 100
    assert begun == jobs[: len(begun)]
    assert not set(begun) & set(last)


def test_jobs_that_wait_for_a_sleeper_cost_nothing(service: LiveService) -> None:
    """X-02: less than 2 % of a core, of service and agent together."""
    sleeper = service.bash("app", f"sleep {service.marker()}")
    line: Json = {"repo": "app", "argv": ["true"], "after": [sleeper]}
    claim: Json = {"repo": "app", "argv": ["true"]}
    jobs = service.batch([line, claim] * (WAITING // 2))
    kinds = [service.show(job)["waiting"]["kind"] for job in jobs[:2]]
    assert kinds == ["dependency", "claim"]
    service.until(sleeper, "job_running")
    pids = (service.pid, service.agent_pid)
    before = sum(map(cpu_ticks, pids))
    done = service.cli("wait", "--timeout", f"{SECONDS}s", sleeper)
    assert done.status == 5
    assert sum(map(cpu_ticks, pids)) - before <= 2 * SECONDS
    service.cli("cancel", sleeper, status=0)
    # Those behind it are told at once, the others run.
    assert service.end_of(jobs[-2])["error"]["code"] == "DEPENDENCY_BLOCKED"
    assert service.end_of(jobs[1])["state"] == "succeeded"


def test_output_in_small_pieces_is_written_about_once(service: LiveService) -> None:
    """X-03: at most twice what the job printed, of service and agent together."""
    pids = (service.pid, service.agent_pid)
    before = sum(map(written, pids))
    gate, bell = service.gate(), service.bell()
    command = f"dd if=/dev/zero bs=200 count={OUTPUT // 200} status=none"
    job = service.bash("app", f"{command}; {bell.ring}; {gate.wait}")
    bell.wait()
    # When the job is reaped, what it wrote itself counts as the agent's.
    seen = sum(map(written, pids)) - before
    assert OUTPUT * 0.99 < seen <= 2 * OUTPUT
    gate.open()
    end = service.end_of(job)
    assert (end["state"], end["usage"]["stdout_bytes"]) == ("succeeded", OUTPUT)
