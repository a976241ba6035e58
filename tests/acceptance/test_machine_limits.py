"""What the system lets a process have: files, arguments. Nothing is begun by half."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.open_files import AGENT_RESERVE, FILES_PER_JOB, LEAST
from tests.acceptance.machine import closes_to, descriptors
from tests.acceptance.service import PROGRAM, finished, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import Json, LiveService

FILES, JOBS, FOLLOWERS = 128, 100, 30
FIT = (FILES - AGENT_RESERVE) // FILES_PER_JOB
KEPT = 65536


@contextlib.contextmanager
def few_files(service: LiveService, limit: int) -> Iterator[LiveService]:
    """Start a service that may have so many files open."""
    serve = [PROGRAM, "--home", str(service.home), "serve", "--detach"]
    shell = ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "-", *serve]
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    service.pid = int(done.stdout)
    service.agent_pid = service.json("status")["service"]["agent_pid"]
    yield service


def test_with_few_files_starts_are_held_back_and_say_why(
    make_service: Callable[[str], LiveService],
) -> None:
    """X-04: each job takes as many files as one can, thirty clients follow."""
    settings = f"[limits]\nworkers = {JOBS}\n[output]\nstream_bytes = {KEPT}\n"
    service = make_service(settings)
    with few_files(service, FILES):
        service.add("app")
        gate, bell = service.gate(), service.bell()
        # Past the limit of both streams, and on for more than a second.
        more = f"head -c {KEPT} /dev/zero | tr '\\0' x | tee /dev/stderr"
        pause = f"test -p {gate.path} && sleep 1.1"
        script = f"{more}; {pause}; {more}; {bell.ring}; {gate.wait}; echo end"
        line: Json = {"repo": "app", "argv": ["bash", "-c", script], "read_only": True}
        jobs = service.batch([line] * JOBS)
        bell.wait(FIT)
        status = service.json("status")
        assert (status["capacity"]["workers"]["used"], status["ready"]) == (FIT, True)
        assert status["capacity"]["workers"]["limit"] == FIT
        short = status["open_files"]["short_of"]
        assert short == ["workers", "connections", "streams"]
        assert f"workers      {FIT}" in service.cli("status").out
        waits = service.show(jobs[-1])["waiting"]
        assert (waits["kind"], waits["holders"]) == ("pressure", jobs[:FIT])
        limit = f"the limit of open files (ulimit -n) is {FILES}"
        assert f"{JOBS} are set, but {limit}" in service.why(jobs[-1])
        assert "pressure" in service.cli("jobs", "--active").out
        with contextlib.ExitStack() as stack:
            words = ("--home", service.home, "logs", "-f", "--stdout")
            followers = [
                stack.enter_context(started(*words, jobs[number % FIT]))
                for number in range(FOLLOWERS)
            ]
            for follower in followers:
                assert follower.stdout is not None
                assert follower.stdout.read(1) == b"x"
            assert descriptors(service.agent_pid) > FIT * FILES_PER_JOB
            gate.open()
            for follower in followers:
                done = finished(follower)
                assert (done.status, done.err) == (0, "")
                assert done.raw.endswith(b"end\n")
        for end in service.wait(*jobs):
            assert (end["state"], end["attempt"]) == ("succeeded", 1)
            assert end["problem"] is None
            assert end["usage"]["stdout_bytes"] == 2 * KEPT + 4
            assert end["usage"]["stderr_bytes"] == 2 * KEPT
        for name in ("service.log", "agent.log"):
            assert "Too many open files" not in (service.home / name).read_text()
        assert closes_to(service.agent_pid, AGENT_RESERVE)


def test_clients_beyond_the_files_are_told_to_come_again(
    make_service: Callable[[str], LiveService],
) -> None:
    """X-04: the service goes on, and short requests find a place."""
    service = make_service("")
    with few_files(service, LEAST):
        service.add("app")
        gate, bell = service.gate(), service.bell()
        job = service.bash("app", f"echo there; {bell.ring}; {gate.wait}")
        bell.wait()
        with contextlib.ExitStack() as stack:
            words = ("--home", service.home, "logs", "-f", job)
            followers = [stack.enter_context(started(*words)) for _ in range(40)]
            ends, seeing = [], []
            for follower in followers:
                assert follower.stdout is not None
                if follower.stdout.readline() == b"there\n":
                    seeing.append(follower)
                else:
                    ends.append(finished(follower))
            held = service.json("status")["open_files"]["connections"] * 2 // 3
            assert len(ends) == len(followers) - held
            for done in ends:
                assert re.search("are held already|too many connections", done.err)
                assert (done.status, done.err.count("\n")) == (4, 1)
            assert service.show(job)["state"] == "running"
            gate.open()
            for follower in seeing:  # they leave places to be held
                assert finished(follower).status == 0
            assert service.end_of(job)["state"] == "succeeded"
        assert "Too many open" not in (service.home / "service.log").read_text()


def test_a_service_that_could_serve_nobody_says_so(
    make_service: Callable[[str], LiveService],
) -> None:
    """X-04"""
    service = make_service("")
    shell = f'ulimit -n {LEAST - 1}; exec {PROGRAM} --home {service.home} "$@"'
    for words in (["serve"], ["serve", "--detach"], ["doctor"]):
        done = subprocess.run(
            ["bash", "-c", shell, "-", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (1 if words == ["doctor"] else 3)
        said = done.stdout if words == ["doctor"] else done.stderr
        assert f"(ulimit -n) is {LEAST - 1}; " in said
        assert "Traceback" not in done.stderr


# Arguments and variables


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"BIG": "x" * 131_072}, ["env", "'BIG'", "131071", "MAX_ARG_STRLEN"]),
        (
            {f"V{number}": "x" * 20_000 for number in range(200)},
            ["env", "4", "ARG_MAX"],
        ),
    ],
)
def test_an_environment_that_no_program_can_have_is_refused_at_once(
    service: LiveService, env: Json, words: list[str]
) -> None:
    """X-05: nothing waits, nothing is tried, the limit is named."""
    lines: list[Json] = [
        {"repo": "app", "argv": ["true"]},
        {"repo": "app", "argv": ["true"], "env": env, "replay": "always"},
    ]
    batch = "\n".join(map(json.dumps, lines)).encode()
    done = service.cli("submit", "--batch", "-", stdin=batch)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("forge-actors: line 2: ")
    for word in words:
        assert word in done.err
    assert len(done.err) < 300
    assert service.json("jobs") == []


def test_a_large_environment_that_fits_reaches_the_job(service: LiveService) -> None:
    """X-05: 131,071 bytes in one variable, and many of 20 kB."""
    big = "x" * (131_071 - len("BIG="))
    env = {"BIG": big} | {f"V{number}": "y" * 20_000 for number in range(70)}
    script = 'echo ${#BIG} $(env | grep -c "^V")'
    line: Json = {"repo": "app", "argv": ["bash", "-c", script], "env": env}
    [job] = service.batch([line])
    # A program that bash starts has a name more than bash itself had.
    assert service.end_of(job)["state"] == "succeeded"
    assert service.log(job, "--stdout") == b"131067 70\n"
