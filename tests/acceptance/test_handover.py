"""What runs goes on without its service, and the next one takes it over."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import gather, survivors, wait_until_ended
from tests.acceptance.service import call, finished, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService


def test_jobs_go_on_while_no_service_is_there(
    make_service: Callable[[str], LiveService],
) -> None:
    """D-01: one ends meanwhile, one is killed from outside, three live on."""
    service = make_service("[limits]\nworkers = 5\n")
    service.start()
    service.add("app")
    ran, first, last = service.root / "ran", service.gate(), service.gate()
    bell = service.bell()

    def script(gate: str, code: int) -> str:
        begun = f"echo $FORGE_JOB_ID >> {ran}; echo before"
        return f"{begun}; {bell.ring}; {gate}; echo after; exit {code}"

    ends = service.bash("app", script(first.wait, 7), "--read-only")
    killed = service.bash("app", script(last.wait, 0), "--read-only", "--replay=never")
    live = [service.bash("app", script(last.wait, 0), "--read-only") for _ in range(3)]
    bell.wait(5)
    ends_pid, killed_pid = service.pid_of(ends), service.pid_of(killed)
    live_pids = [service.pid_of(job) for job in live]
    agent = service.agent_pid
    service.kill()
    first.open()
    assert wait_until_ended(ends_pid)
    os.kill(killed_pid, signal.SIGKILL)
    assert wait_until_ended(killed_pid)
    service.start()
    assert service.agent_pid == agent
    end, lost = service.wait(ends, killed)
    assert (end["state"], end["exit_code"]) == ("failed", 7)
    assert (lost["state"], lost["signal"]) == ("human_attention_required", "SIGKILL")
    assert lost["error"]["code"] == "INTERRUPTED"
    for job, pid in zip(live, live_pids, strict=True):
        shown = service.show(job)
        assert (shown["state"], shown["pid"], shown["attempt"]) == ("running", pid, 1)
    used = service.json("status")["capacity"]["workers"]
    assert (used["used"], sorted(used["jobs"])) == (3, sorted(live))
    last.open()
    for done in service.wait(*live):
        assert (done["state"], done["exit_code"]) == ("succeeded", 0)
    for job in (ends, *live):
        assert service.log(job) == b"before\nafter\n"
    assert sorted(ran.read_text().split()) == sorted([ends, killed, *live])


@pytest.mark.parametrize("way", ["stop", "SIGTERM", "SIGINT", "SIGKILL"])
def test_however_a_service_ends_what_runs_goes_on(
    service: LiveService, way: str
) -> None:
    """P-16: also what is paused, and what has left its session."""
    mark, gate, bell = service.marker(), service.gate(), service.bell()
    ran = service.root / "ran"
    script = f"echo x >> {ran}; setsid sleep {mark} & {bell.ring}; {gate.wait}; exit 3"
    job = service.bash("app", script)
    still = service.bash("app", f"{bell.ring}; {gate.wait}; exit 4", "--read-only")
    bell.wait(2)
    service.cli("pause", still, status=0)
    waits = service.bash("app", "true")
    if way == "stop":
        told = service.cli("stop", status=0).out
        assert "2 jobs run on, and the next service takes over" in told
    else:
        os.kill(service.pid, signal.Signals[way])
    assert wait_until_ended(service.pid)
    said = "the service ends; 2 jobs run on, and the next service takes over"
    log = (service.home / "service.log").read_text()
    assert (said in log) == (way != "SIGKILL")
    gather(f"sleep\0{mark}", 1)
    service.start()
    for one in (job, still):
        assert service.show(one)["state"] == "running"
    assert service.show(still)["paused"] is True
    assert service.show(waits)["state"] == "waiting_for_workspace"
    gate.open()
    end, next_one = service.wait(job, waits)
    assert (end["state"], end["exit_code"], end["attempt"]) == ("failed", 3, 1)
    assert next_one["state"] == "succeeded"
    service.cli("resume", still, status=0)
    assert service.end_of(still)["exit_code"] == 4
    assert ran.read_text() == "x\n"
    assert survivors(mark) == []


#: A safety pass fails for good once the fuse is there.
FAILS = """
import os
from forge_actors.actors import supervisor
supervisor.BUSY_PASS_SECONDS = 0.1
plain = supervisor._Supervisor._make_pass
def make_pass(actor):
    if os.path.exists({fuse!r}):
        raise RuntimeError("a bug")
    plain(actor)
supervisor._Supervisor._make_pass = make_pass
"""


def test_what_runs_goes_on_when_a_part_of_the_service_fails_for_good(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    fuse = service.root / "fuse"
    service.start_patched(FAILS.format(fuse=str(fuse)))
    service.add("app")
    gate, bell = service.gate(), service.bell()
    job = service.bash("app", f"{bell.ring}; {gate.wait}; exit 6")
    bell.wait()
    pid = service.pid_of(job)
    fuse.touch()
    assert wait_until_ended(service.pid)
    assert not wait_until_ended(pid, 0)
    service.start()
    assert (service.show(job)["state"], service.show(job)["pid"]) == ("running", pid)
    gate.open()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"], end["attempt"]) == ("failed", 6, 1)


def test_a_service_that_stops_with_its_jobs_leaves_no_process(
    service: LiveService,
) -> None:
    mark, bell = service.marker(), service.bell()
    job = service.bash("app", f"setsid sleep {mark} & {bell.ring}; sleep {mark}")
    bell.wait()
    answer = service.json("stop", "--jobs")
    assert (answer["running"], answer["jobs"], answer["ended"]) == (1, True, True)
    assert survivors(mark) == []
    assert wait_until_ended(service.agent_pid)
    service.start()
    assert service.show(job)["state"] == "human_attention_required"


def test_jobs_that_were_left_running_can_be_ended_without_a_service(
    service: LiveService,
) -> None:
    mark, bell = service.marker(), service.bell()
    script = f"setsid sleep {mark} & {bell.ring}; sleep {mark}"
    once = service.bash("app", script)
    again = service.bash("app", script, "--read-only", "--replay", "safe")
    bell.wait(2)
    service.cli("stop", status=0)
    gather(f"sleep\0{mark}", 4)
    out = service.cli("stop", "--jobs", status=0).out
    assert "without a service ended" in out
    assert survivors(mark) == []
    assert wait_until_ended(service.agent_pid)
    nothing = service.cli("stop", "--jobs", status=4)
    assert "no service runs on" in nothing.err
    service.start()
    assert service.show(once)["state"] == "human_attention_required"
    # It may have begun again by the time that the service is ready.
    assert service.until(again, "job_waiting_for_retry").data["attempt"] == 1
    bell.wait()
    assert service.show(again)["attempt"] == 2


def test_an_idle_service_that_stops_leaves_no_process(service: LiveService) -> None:
    service.end_of(service.bash("app", "true"))
    answer = service.json("stop")
    assert (answer["running"], answer["jobs"]) == (0, False)
    assert wait_until_ended(service.agent_pid)


def test_a_time_budget_runs_on_without_a_service(service: LiveService) -> None:
    mark, bell = service.marker(), service.bell()
    job = service.bash("app", f"{bell.ring}; sleep {mark}", "--timeout", "1s")
    bell.wait()
    pid = service.pid_of(job)
    service.terminate()
    assert wait_until_ended(pid), "its budget was over"
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["error"]["code"]) == ("timed_out", "EXECUTION_TIMEOUT")
    assert survivors(mark) == []


def test_a_follower_of_a_log_sees_all_of_it_over_two_services(
    service: LiveService,
) -> None:
    gate, bell = service.gate(), service.bell()
    job = service.bash("app", f"echo one; {bell.ring}; {gate.wait}; echo two")
    bell.wait()
    with started("--home", service.home, "logs", "-f", job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"one\n"
        service.terminate()
        done = finished(follower)
    assert (done.status, done.err.count("\n")) == (4, 1)
    gate.open()
    service.start()
    assert service.cli("logs", "-f", job, status=0).out == "one\ntwo\n"


def test_a_job_can_be_stopped_by_the_service_that_took_it_over(
    service: LiveService,
) -> None:
    mark, bell = service.marker(), service.bell()
    polite = service.bash(
        "app",
        f"trap 'echo cleaned; exit 5' TERM; {bell.ring}; while :; do sleep .05; done",
        "--read-only",
    )
    rude = service.bash(
        "app", f"trap '' TERM; {bell.ring}; sleep {mark}", "--read-only", "--grace=1s"
    )
    bell.wait(2)
    service.kill()
    service.start()
    service.cli("cancel", polite, rude, status=0)
    first, second = service.wait(polite, rude)
    assert (first["state"], first["forced"]) == ("cancelled", False)
    assert (second["state"], second["forced"]) == ("cancelled", True)
    assert service.log(polite, "--stream", "stdout") == b"cleaned\n"
    assert survivors(mark) == []


def test_after_a_crash_of_everything_each_job_is_decided_by_the_start(
    service: LiveService,
) -> None:
    ran, mark, bell = service.root / "ran", service.marker(), service.bell()
    done = service.bash("app", f"echo $FORGE_JOB_ID >> {ran}")
    before = service.end_of(done)
    script = f"echo $FORGE_JOB_ID >> {ran}; {bell.ring}; sleep {mark}"
    jobs = {
        service.bash("app", script, "--read-only", "--replay", replay): replay
        for replay in ("never", "safe", "never", "safe")
    }
    bell.wait(len(jobs))
    service.crash()
    for line in survivors(mark):
        os.kill(int(line.split()[0]), signal.SIGKILL)
    service.start()
    for job, replay in jobs.items():
        shown = service.show(job)
        if replay == "never":
            assert shown["state"] == "human_attention_required"
        else:
            assert shown["state"] in ("waiting_for_retry", "dispatched", "running")
    assert service.show(done) == before
    bell.wait(2)
    counts = Counter(ran.read_text().split())
    assert counts[done] == 1
    for job, replay in jobs.items():
        assert counts[job] == (1 if replay == "never" else 2)
    service.end()
    assert survivors(mark) == []


def test_run_leaves_the_jobs_of_a_service_alone(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    job = service.bash("app", f"{bell.ring}; {gate.wait}; exit 3")
    bell.wait()
    service.terminate()
    app = service.root / "app"
    refused = call("run", "--home", service.home, "--", "true", cwd=app, status=3)
    assert refused.err.count("\n") == 1
    assert "jobs of a service that has stopped run on in" in refused.err
    service.start()
    gate.open()
    assert service.end_of(job)["exit_code"] == 3
    service.cli("stop", status=0)
    call("run", "--home", service.home, "--", "true", cwd=app, status=0)


def test_a_helper_that_may_stay_outlives_a_stop(service: LiveService) -> None:
    mark = service.marker()
    job = service.bash("app", f"setsid sleep {mark} & exit 0", "--keep-leftovers")
    assert service.end_of(job)["state"] == "succeeded"
    service.cli("stop", status=0)
    assert wait_until_ended(service.agent_pid)
    gather(f"sleep\0{mark}", 1)


#: Kills the service around the commit with the first end of a job.
DIES_AROUND_AN_END = """
import os, signal
from forge_actors.domain.changes import JobEnded
from forge_actors.edges.sqlite.store import SqliteStore
plain = SqliteStore._end_transaction
def end_transaction(store):
    ends = [c for m in store._moves for c in m.changes if isinstance(c, JobEnded)]
    if ends and {before}:
        os.kill(os.getpid(), signal.SIGKILL)
    plain(store)
    if ends:
        os.kill(os.getpid(), signal.SIGKILL)
SqliteStore._end_transaction = end_transaction
"""


@pytest.mark.parametrize("replay", ["never", "always"])
@pytest.mark.parametrize("before", [True, False])
def test_an_end_is_saved_once_though_the_service_dies_around_it(
    make_service: Callable[[str], LiveService], before: bool, replay: str
) -> None:
    """D-02: right before it is durable, and right after."""
    service = make_service("")
    service.start_patched(DIES_AROUND_AN_END.format(before=before))
    service.add("app")
    ran = service.root / "ran"
    script = f"echo x >> {ran}; echo out"
    job = service.bash("app", script, "--replay", replay, "--max-attempts", "3")
    assert wait_until_ended(service.pid)
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"], end["attempt"]) == ("succeeded", 0, 1)
    assert (ran.read_text(), service.log(job)) == ("x\n", b"out\n")
    kinds = [entry.kind for entry in service.events() if entry.job == job]
    assert (kinds.count("job_dispatched"), kinds.count("job_succeeded")) == (1, 1)
    service.kill()
    service.start()
    assert service.show(job) == end
