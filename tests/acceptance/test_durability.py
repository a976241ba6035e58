"""What a service promised holds after it was killed, and one home has one service."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors, wait_until_ended
from tests.acceptance.service import PROGRAM, LiveService, call, finished, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import Done


def test_a_job_whose_id_was_printed_survives_the_kill_of_the_service(
    service: LiveService,
) -> None:
    done = service.root / "done"
    job = service.submit(
        "--repo", "app", "--replay", "safe", "--", "bash", "-c", f"echo x >> {done}"
    )
    service.kill()
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("succeeded", 0)
    assert done.read_text().splitlines() in (["x"], ["x", "x"])


def test_a_job_that_may_not_be_repeated_is_not(service: LiveService) -> None:
    begun = service.root / "begun"
    bell = service.bell()
    mark = service.marker()
    job = service.bash("app", f"echo x >> {begun}; {bell.ring}; sleep {mark}")
    bell.wait()
    service.crash()
    service.start()
    end = service.end_of(job)
    assert end["state"] == "human_attention_required"
    codes = ("INTERRUPTED", "OPERATION_OUTCOME_AMBIGUOUS", "WORKER_LOST")
    assert end["error"]["code"] in codes
    assert begun.read_text() == "x\n"
    assert survivors(mark) == []


def test_success_stays_success_whenever_the_service_is_killed(
    service: LiveService,
) -> None:
    job = service.submit("--repo", "app", "--", "true")
    before = service.end_of(job)
    service.kill()
    service.start()
    assert service.show(job) == before


@pytest.mark.parametrize("answered", [1, 12, 24])
def test_every_id_that_was_printed_exists_after_a_kill(
    service: LiveService, answered: int
) -> None:
    """D-13: 30 submits at once; the service dies once some of them were answered."""
    gate = service.gate()
    service.bash("app", gate.wait, "--claim", "exclusive:repo-content:*")

    def submit(_: int) -> str:
        done = service.cli("submit", "--repo", "app", "--", "true")
        if done.status == 0:
            os.write(writing, b"x")
        return done.out.strip()

    reading, writing = os.pipe()
    try:
        with ThreadPoolExecutor(10) as pool:
            calls = pool.map(submit, range(30))
            for _ in range(answered):
                os.read(reading, 1)
            service.kill()
            printed = [job for job in calls if job]
    finally:
        os.close(reading)
        os.close(writing)
    assert len(printed) >= answered
    assert len(set(printed)) == len(printed)
    service.start()
    known = {job["id"] for job in service.json("jobs", "--all")}
    assert set(printed) <= known
    # Ids are not used again.
    assert service.submit("--repo", "app", "--", "true") not in known


def test_the_same_request_gives_the_same_job_across_a_kill(
    service: LiveService,
) -> None:
    words = ("submit", "--repo", "app", "--request-id", "r1", "--")
    with ThreadPoolExecutor(5) as pool:
        calls = [pool.submit(service.cli, *words, "true", status=0) for _ in range(10)]
        printed = {done.result().out for done in calls}
    assert len(printed) == 1
    service.kill()
    service.start()
    again = service.cli(*words, "true", status=0)
    assert {again.out} == printed
    assert "was there already" in again.err
    other = service.cli(*words, "false", status=3)
    assert other.out == ""
    assert (other.err.count("\n"), again.out.strip() in other.err) == (1, True)
    assert len(service.json("jobs")) == 1


# One service a home


def problems(done: Done) -> list[str]:
    """What a start says, but how far it is: that is told where it takes a while."""
    lines = done.err.splitlines()
    return [line for line in lines if "the service starts: " not in line]


def test_a_second_service_is_refused_with_one_line_also_through_a_link(
    service: LiveService,
) -> None:
    """D-08: the other ends with a status and a line, the first is not disturbed."""
    link = service.root / "link"
    link.symlink_to(service.home)
    below = service.root / "below"
    below.symlink_to(service.root)
    for home in (service.home, link, below / "home"):
        for detach in ([], ["--detach"]):
            done = call("serve", *detach, "--home", home, status=3)
            [problem] = problems(done)
            assert done.out == ""
            assert "another service" in problem
            assert str(service.pid) in problem
    # The first one was not disturbed, and is found under each name.
    for home in (service.home, link, below / "home"):
        done = call("status", "--json", "--home", home, status=0)
        assert f'"pid": {service.pid}' in done.out


def test_a_home_with_a_long_path_has_one_service_too(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-06: also through a link."""
    service = make_service("")
    long = service.root / ("x" * 120)
    service.home.rename(long)
    service.home = long
    service.start()
    link = service.root / "link"
    link.symlink_to(long)
    for home in (long, link):
        assert "another service" in call("serve", "--home", home, status=3).err
        call("status", "--home", home, status=0)
    # What the one that is refused would choose is no matter to those who look for it.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(service.repository("other")))
    assert "another service" in call("serve", "--home", long, status=3).err
    call("status", "--home", long, status=0)
    service.terminate()
    service.home = link
    service.start()
    call("status", "--home", long, status=0)
    call("stop", "--home", long, status=0)


@pytest.mark.parametrize("turn", range(5))
def test_of_two_that_start_at_the_same_moment_one_lives(
    make_service: Callable[[str], LiveService], turn: int
) -> None:
    """D-08: also where one of them came through a link."""
    service = make_service("")
    link = service.root / "link"
    link.symlink_to(service.home)
    homes = (service.home, link) if turn % 2 else (service.home, service.home)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call, "serve", "--detach", "--home", h) for h in homes]
        both = sorted(done.result() for done in calls)
    assert [done.status for done in both] == [0, 3]
    service.pid = int(both[0].out)
    assert both[1].out == ""
    [problem] = problems(both[1])
    assert "another service" in problem
    assert service.json("status")["service"]["pid"] == service.pid


def test_run_on_a_home_that_is_served_is_refused(service: LiveService) -> None:
    app = service.root / "app"
    done = call("run", "--home", service.home, "--", "true", cwd=app, status=3)
    assert (done.err.count("\n"), "another service" in done.err) == (1, True)
    assert service.json("status")["service"]["pid"] == service.pid


def test_files_that_a_dead_service_left_do_not_stop_a_start(
    make_service: Callable[[str], LiveService],
) -> None:
    """D-07: with the pid of nobody, and with that of a process that lives."""
    service = make_service("")
    # The pid of a process that lives, but is no service.
    stranger = subprocess.Popen(["sleep", service.marker()])
    for pid in (999_999_999, stranger.pid):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(service.home / "control.sock"))
        listener.close()
        for name in ("runtime.lock", "agent.lock"):
            (service.home / name).write_text(f"{pid}\n")
        service.start()
        assert call("serve", "--home", service.home).status == 3
        assert stranger.poll() is None
        service.terminate()
    stranger.kill()
    stranger.wait()


def test_a_stop_that_is_asked_for_twice_is_one_stop(service: LiveService) -> None:
    bell = service.bell()
    service.bash("app", f"trap '' TERM; {bell.ring}; sleep 4", "--grace", "1s")
    bell.wait()
    with (
        started("--home", service.home, "stop", "--jobs") as first,
        started("--home", service.home, "stop", "--jobs") as second,
    ):
        ends = [finished(first).status, finished(second).status]
    assert 0 in ends
    assert set(ends) <= {0, 4}
    assert wait_until_ended(service.pid)
    assert service.cli("stop").status == 4


def test_a_submit_whose_terminal_closes_is_safe_once_the_id_was_printed(
    service: LiveService,
) -> None:
    """C-04: the client dies by the hang-up of its terminal right after the id."""
    command = (
        f"{PROGRAM} --home {service.home} submit --repo app -- sleep 0.3; kill -1 $$"
    )
    shell = subprocess.run(
        ["setsid", "--wait", "bash", "-c", command], capture_output=True, check=False
    )
    assert shell.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP)
    [job] = shell.stdout.decode().split()
    assert service.end_of(job)["state"] == "succeeded"
