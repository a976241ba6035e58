"""However a job ends, nothing of it is left, and the record says how."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import Bench, gather, survivors, wait_until_ended
from tests.acceptance.service import LiveService, finished, started

if TYPE_CHECKING:
    from tests.acceptance.service import Json

#: Prints `ready` once two sleeping processes have left its session: one that made a
#: session of its own, and one that a parent left behind which is gone by now.
LEAVE_THE_SESSION = """
import os, sys

def sleeper(seconds, twice):
    reading, writing = os.pipe()  # closed by exec, and so the sign that it happened
    if os.fork() == 0:
        os.setsid()
        if twice and os.fork():
            os._exit(0)
        os.execvp("sleep", ["sleep", seconds])
    os.close(writing)
    os.read(reading, 1)

sleeper(sys.argv[1], False)
sleeper(sys.argv[1], True)
print("ready", flush=True)
os.execvp("sleep", ["sleep", sys.argv[1]])
"""


def cancelled(service: LiveService, job: str, *options: str) -> Json:
    service.cli("cancel", *options, job, status=0)
    return service.end_of(job)


def test_a_job_ends_although_a_helper_holds_its_output(service: LiveService) -> None:
    """P-01: the record names the helper that had to be ended."""
    mark = service.marker()
    script = f"setsid sleep {mark} & echo $!; sleep 1; echo done"
    job = service.bash("app", script)
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("succeeded", 0)
    assert survivors(mark) == []
    helper, done = service.log(job, "--stream", "stdout").decode().split()
    assert done == "done"
    # The user learns that it had to be ended, and which process it was.
    record = service.cli("show", job).out + service.log(job).decode()
    assert f"{helper} sleep" in record


def test_a_helper_may_stay_where_the_job_said_so(service: LiveService) -> None:
    """P-01: the policy for helpers is that of the job."""
    mark = service.marker()
    job = service.bash(
        "app", f"setsid sleep {mark} & sleep 1; echo done", "--keep-leftovers"
    )
    assert service.end_of(job)["state"] == "succeeded"
    gather(mark, 1)


def test_stopping_a_pipeline_ends_every_part_of_it(service: LiveService) -> None:
    """P-02: `cancelled` means that nothing of the job is alive."""
    mark = service.marker()
    bell = service.bell()
    job = service.bash("app", f"{bell.ring}; sleep {mark} | cat")
    bell.wait()
    assert cancelled(service, job)["state"] == "cancelled"
    assert survivors(mark) == []


def test_children_in_sessions_of_their_own_are_ended_too(service: LiveService) -> None:
    """P-03: one in a session of its own, one whose parent is gone as well."""
    mark = service.marker()
    command = [sys.executable, "-c", LEAVE_THE_SESSION, mark]
    job = service.submit("--repo", "app", "--", *command)
    with started("--home", service.home, "logs", "-f", job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"ready\n"
        gather(f"sleep\0{mark}", 3)
        end = cancelled(service, job)
        assert finished(follower).status == 0
    assert (end["state"], end["forced"]) == ("cancelled", False)
    assert survivors(f"sleep\0{mark}") == []


def test_a_stubborn_child_of_a_polite_leader_is_killed(service: LiveService) -> None:
    """P-04: the grace is that of the whole tree."""
    mark = service.marker()
    bell = service.bell()
    stubborn = f'trap "" TERM; {bell.ring}; sleep {mark}'
    job = service.bash(
        "app", f'trap "exit 0" TERM; ({stubborn}) & wait', "--grace", "1s"
    )
    bell.wait()
    end = cancelled(service, job)
    assert (end["state"], end["forced"]) == ("cancelled", True)
    assert survivors(mark) == []


def test_a_job_that_ignores_the_signal_gets_its_grace_and_delays_nobody(
    service: LiveService,
) -> None:
    """P-07: signal, grace, hard kill; the record says that force was needed."""
    service.add("other")
    mark = service.marker()
    bell = service.bell()
    script = f'trap "" TERM; {bell.ring}; : {mark}; while :; do sleep .2; done'
    stubborn = service.bash("app", script, "--grace", "60s")
    bell.wait()
    service.pid_of(stubborn)
    service.cli("cancel", stubborn, status=0)
    others = [service.bash(repo, "echo hello") for repo in ("other", "other")]
    bystander = service.submit("--repo", "app", "--read-only", "--", "true")
    ends = service.wait(*others, bystander)
    assert [end["state"] for end in ends] == ["succeeded"] * 3
    assert service.show(stubborn)["state"] == "running"  # its grace is not over
    end = cancelled(service, stubborn, "--grace", "1s")
    assert (end["state"], end["forced"], end["signal"]) == (
        "cancelled",
        True,
        "SIGKILL",
    )
    assert survivors(mark) == []
    entries = {(entry.job, entry.kind): entry for entry in service.events()}
    asked = entries[bystander, "job_succeeded"].at  # just before the last stop
    assert entries[stubborn, "job_cancelled"].at - asked >= 1


def test_a_second_stop_can_only_shorten_the_grace(service: LiveService) -> None:
    bell = service.bell()
    script = f'trap "" TERM; {bell.ring}; while :; do sleep .2; done'
    job = service.bash("app", script, "--grace", "10m")
    bell.wait()
    service.cli("cancel", job, status=0)
    service.cli("cancel", job, status=0)
    end = cancelled(service, job, "--grace", "0s")
    assert (end["state"], end["forced"]) == ("cancelled", True)


# When the service, or the program that runs the jobs, ends

#: The first leaves a helper in a session of its own, the second ignores its signal.
#: `{0}` is a marker, `{1}` says that it is there.
SCRIPTS = (
    "setsid sleep {0} & {1}; sleep 1; echo done",
    "trap '' TERM INT; {1}; while :; do sleep {0}; done",
)


def running_jobs(service: LiveService) -> tuple[str, list[str]]:
    """A marker, and jobs of both kinds that run."""
    mark = service.marker()
    bell = service.bell()
    jobs = [
        service.bash("app", script.format(mark, bell.ring), "--read-only", *options)
        for script, options in zip(SCRIPTS, [[], ["--grace", "1s"]], strict=True)
    ]
    bell.wait(len(jobs))
    assert survivors(mark) != []
    return mark, jobs


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_service_that_stops_with_its_jobs_ends_every_process_of_them(
    service: LiveService, taken_over: bool
) -> None:
    mark, jobs = running_jobs(service)
    if taken_over:
        service.kill()
        service.start()
    service.end()
    assert survivors(mark) == []
    # What it did is on record, and read-only jobs are started again.
    service.start()
    assert {service.show(job)["state"] for job in jobs} <= {
        "queued",
        "waiting_for_retry",
        "dispatched",
        "running",
        "succeeded",
    }


def test_an_agent_whose_service_was_killed_ends_with_the_last_job(
    service: LiveService,
) -> None:
    mark, _ = running_jobs(service)
    service.kill()
    for line in survivors(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)
    assert wait_until_ended(service.agent_pid)
    assert survivors(mark) == []


def test_when_service_and_agent_are_killed_the_next_one_cleans_up(
    service: LiveService,
) -> None:
    mark, jobs = running_jobs(service)
    service.crash()
    assert survivors(mark) != []
    before = survivors(mark)
    service.start()
    service.cli("cancel", *jobs)
    service.wait(*jobs)
    assert not set(before) & set(survivors(mark))
    assert survivors(mark) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_interrupted_leaves_no_process(
    bench: Bench, number: signal.Signals
) -> None:
    mark = bench.marker()
    bell = bench.bell()
    app = bench.repository("app")
    script = SCRIPTS[0].format(mark, bell.ring)
    with started("run", "--", "bash", "-c", script, cwd=app) as run:
        bell.wait()
        os.killpg(run.pid, number)
        done = finished(run)
    if number == signal.SIGINT:
        assert done.status == 130
        assert survivors(f"sleep\0{mark}") == []
    else:
        assert done.status in (130, 143, -signal.SIGTERM)
        assert all(wait_until_ended(int(line.split()[0])) for line in survivors(mark))


def test_run_of_a_file_that_is_interrupted_leaves_no_process(bench: Bench) -> None:
    mark = bench.marker()
    bell = bench.bell()
    bench.repository("app")
    lines = ["[[repository]]", 'name = "app"', 'path = "app"']
    for script in SCRIPTS:
        argv = json.dumps(["bash", "-c", script.format(mark, bell.ring)])
        lines += ["[[job]]", 'repo = "app"', f"argv = {argv}"]
        lines += ["read_only = true", 'grace = "1s"']
    file = bench.root / "jobs.toml"
    file.write_text("\n".join(lines))
    with started("run", "--plain", file) as run:
        bell.wait(len(SCRIPTS))
        os.killpg(run.pid, signal.SIGINT)
        done = finished(run)
    assert done.status == 130
    assert survivors(mark) == []


def test_run_whose_reader_leaves_ends_its_command(bench: Bench) -> None:
    mark = bench.marker()
    app = bench.repository("app")
    with started("run", "--", "bash", "-c", f"sleep {mark} & exec yes", cwd=app) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"y\n"
        run.stdout.close()
        assert wait_until_ended(run.pid)
        assert run.wait() == 0
        assert run.stderr is not None
        assert b"Traceback" not in run.stderr.read()
    assert survivors(mark) == []
