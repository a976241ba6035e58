"""Options of `submit` that change how a job runs: its terminal, its limits, its end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors
from tests.acceptance.service import started

if TYPE_CHECKING:
    import subprocess
    from contextlib import AbstractContextManager

    from tests.acceptance.service import LiveService


def following(
    service: LiveService, job: str
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Somebody who reads the output of a job while it runs."""
    return started("--home", service.home, "logs", "-f", job)


def test_a_job_has_a_terminal_if_it_asks_for_one(service: LiveService) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo error >&2; cat"
    job = service.bash("app", script, "--pty")
    plain = service.bash("app", "test -t 1 || echo none")
    assert [end["state"] for end in service.wait(job, plain)] == ["succeeded"] * 2
    assert service.log(job, "--stream", "stdout") == b"24 80\nerror\n"
    assert service.log(job, "--stream", "stderr") == b""
    assert service.log(plain) == b"none\n"


def test_what_a_program_says_to_a_terminal_is_there_while_it_runs(
    service: LiveService,
) -> None:
    """L-08: it is not held back in the program, and not lost when that is ended."""
    program = "import time; print('\\033[31mhi\\033[0m'); time.sleep(600)"
    job = service.submit("--repo", "app", "--pty", "--", "python3", "-c", program)
    with following(service, job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"\x1b[31mhi\x1b[0m\n"
    service.cli("cancel", job, status=0)
    assert service.end_of(job)["state"] == "cancelled"
    assert service.log(job) == b"\x1b[31mhi\x1b[0m\n"


def test_a_terminal_and_a_file_for_the_input_are_refused_together(
    service: LiveService,
) -> None:
    words = ["--repo", "app", "--pty", "--stdin-file", "/etc/passwd", "--", "cat"]
    done = service.cli("submit", *words, status=2)
    assert done.out == ""
    assert "pty" in done.err
    assert "takes no stdin file" in done.err


def test_a_command_follows_a_job_and_what_it_claims_is_held_until_then(
    service: LiveService,
) -> None:
    gate = service.gate()
    after = f"echo after:$FORGE_EXIT_CODE; {gate.wait}; exit 5"
    job = service.bash("app", "echo job; exit 3", "--after-job", after)
    second = service.bash("app", "echo second")
    with following(service, job) as follower:
        assert follower.stdout is not None
        lines = [follower.stdout.readline() for _ in range(2)]
        assert lines == [b"job\n", b"after:3\n"]
    service.pid_of(job)
    assert service.show(job)["state"] == "running"
    assert service.show(second)["state"] == "waiting_for_workspace"
    gate.open()
    end, next_one = service.wait(job, second)
    assert (end["state"], end["exit_code"]) == ("failed", 3)
    assert end["after_job"] == {"exit_code": 5}
    assert end["error"]["code"] == "EXIT_NONZERO"
    assert next_one["after_job"] is None
    assert "exit_code 5" in service.cli("show", job, status=0).out
    service.terminate()
    assert json.loads(service.cli("show", job, "--json").out) == end


def test_each_attempt_is_followed_by_its_command(service: LiveService) -> None:
    place = service.home / "ends"
    after = f'echo "$FORGE_ATTEMPT $FORGE_ENDING $FORGE_SIGNAL" >> {place}'
    options = ["--after-job", after, "--replay", "always", "--max-attempts", "2"]
    job = service.bash("app", "kill -KILL $$", *options)
    assert service.end_of(job)["state"] != "succeeded"
    assert place.read_text() == "1 exit SIGKILL\n2 exit SIGKILL\n"


def test_cancelling_a_job_ends_the_command_that_follows_it(
    service: LiveService,
) -> None:
    mark = service.marker()
    after = f"echo; setsid sleep {mark} & sleep {mark}"
    job = service.bash("app", "true", "--after-job", after)
    with following(service, job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"\n"
    service.cli("cancel", job, status=0)
    end = service.end_of(job)
    assert (end["exit_code"], end["after_job"]) == (0, {"signal": "SIGTERM"})
    assert not survivors(mark)


def test_memory_and_niceness_of_a_job_are_limited(service: LiveService) -> None:
    program = "import os; print(os.nice(0)); bytearray(1 << 30)"
    options = ["--memory", "256M", "--nice", "6"]
    job = service.submit("--repo", "app", *options, "--", "python3", "-uc", program)
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("failed", 1)
    assert "MemoryError" in end["error"]["message"]
    assert service.log(job, "--stream", "stdout") == b"%d\n" % (os.nice(0) + 6)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--nice", "20", "0 to 19"),
        ("--nice", "much", "is no whole number"),
        ("--memory", "2 apples", "write for example 512M"),
        ("--memory", "1K", "outside 1M to 1024T"),
        ("--pids", "0", "pids"),
        ("--after-job", "", "is empty"),
        ("--after-job", b"\xff", "after_job: is no UTF-8 text"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(
    service: LiveService, option: str, value: str | bytes, says: str
) -> None:
    done = service.cli("submit", "--repo", "app", option, value, "--", "true", status=2)
    assert done.out == ""
    assert says in done.err
    assert len(done.err.splitlines()) <= 3
    assert service.json("jobs") == []


def test_doctor_tells_how_limits_are_kept(service: LiveService) -> None:
    checks = json.loads(service.cli("doctor", "--json").out)["checks"]
    [limits] = [check for check in checks if check["name"] == "limits"]
    [cgroup] = [check for check in checks if check["name"] == "cgroup"]
    if "(cgroups)" in limits["detail"]:
        assert "memory of the whole job" in limits["detail"]
        assert cgroup["state"] == "ok"
    else:
        assert "per process" in limits["detail"] or "per user" in limits["detail"]
        assert "(rlimits, as " in limits["detail"]
