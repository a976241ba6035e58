"""What is not accepted: nothing of it is, and one line says what is wrong with it."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import LiveService, call, finished, started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.bench import Bench
    from tests.acceptance.service import Done, Json


def refused(done: Done, status: int, *words: str) -> None:
    assert (done.status, done.out, done.err.count("\n")) == (status, "", 1), done
    assert done.err.startswith("forge-actors: ")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


@pytest.fixture(scope="module")
def shared() -> Iterator[LiveService]:
    """One service for all requests that change nothing."""
    started = LiveService()
    started.start()
    started.add("app")
    yield started
    started.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--kind chekc", ["kind", "'chekc'", "check"]),
        ("--priority P9", ["priority", "'P9'", "P0", "P4"]),
        ("--priority high", ["priority", "'high'", "P2"]),
        ("--provider clod", ["provider", "'clod'", "claude"]),
        ("--claim reed:path:x", ["claims", "'reed:path:x'", "read"]),
        ("--claim read:paths:x", ["claims", "'read:paths:x'", "path"]),
        ("--claim read", ["claims", "'read'"]),
        ("--after nosuchjob", ["after", "nosuchjob"]),
        ("--timeout soon", ["timeout", "soon"]),
        ("--timeout 0s", ["timeout", "0s"]),
        ("--timeout 31d", ["timeout", "31d"]),
        ("--grace 2h", ["grace", "2h"]),
        ("--replay sometimes", ["replay", "'sometimes'", "safe"]),
        ("--max-attempts 0", ["max_attempts", "1 to 100"]),
        ("--stop-signal SIGNOTHING", ["stop_signal", "SIGNOTHING"]),
        ("--cwd /nonexistent/folder", ["cwd", "/nonexistent/folder"]),
        ("--stdin-file /nonexistent/file", ["stdin", "/nonexistent/file"]),
        ("--env FORGE_JOB_ID=x", ["env", "FORGE_JOB_ID"]),
    ],
)
def test_an_option_that_is_not_valid_is_named(
    shared: LiveService, options: str, words: list[str]
) -> None:
    done = shared.cli("submit", "--repo", "app", *options.split(), "--", "true")
    refused(done, 2, *words)
    assert shared.json("jobs") == []


def test_a_repository_that_is_not_known_is_named_with_the_nearest(
    shared: LiveService,
) -> None:
    refused(shared.cli("submit", "--repo", "ap", "--", "true"), 2, "'ap'", "'app'")
    refused(shared.cli("repo", "show", "apq"), 2, "'apq'", "'app'")
    refused(shared.cli("jobs", "--repo", "aap"), 2, "'aap'", "'app'")
    other = shared.repository("other")
    done = shared.cli("submit", "--repo", other, "--", "true")
    refused(done, 2, str(other), "not registered", "repo add")
    done = shared.cli("submit", "--", "true", cwd=other)
    refused(done, 2, str(other), "not registered")


def test_a_folder_that_is_no_repository_is_refused(shared: LiveService) -> None:
    plain = shared.root / "plain"
    plain.mkdir(exist_ok=True)
    for verb in (("repo", "add", plain), ("submit", "--repo", plain, "--", "true")):
        refused(shared.cli(*verb), 2, str(plain), "no git work tree")
    missing = shared.root / "missing"
    for verb in (("repo", "add", missing), ("submit", "--repo", missing, "--", "x")):
        refused(shared.cli(*verb), 2, str(missing), "does not exist")
    refused(shared.cli("submit", "--", "true", cwd=plain), 2, "no git work tree")
    shared.git("init", "--quiet", "--bare", "bare.git")
    refused(shared.cli("repo", "add", shared.root / "bare.git"), 2, "bare")
    assert [repo["name"] for repo in shared.json("repo", "list")] == ["app"]


def test_a_name_that_is_taken_is_refused(shared: LiveService) -> None:
    second = shared.root / "below" / "app"
    shared.git("init", "--quiet", second)
    refused(shared.cli("repo", "add", second), 3, "'app'", "--name")
    refused(shared.cli("repo", "add", second, "--name", "A b"), 2, "name", "A b")


def test_one_bad_line_of_a_thousand_is_named_and_nothing_is_accepted(
    shared: LiveService,
) -> None:
    lines = [json.dumps({"repo": "app", "argv": ["true"]})] * 1000
    before = shared.events()
    for bad, words in (
        ('{"repo": "app", "argv": ["true"], "kind": "chekc"}', ["kind", "chekc"]),
        ('{"repo": "app", "argv": []}', ["argv"]),
        ('{"repo": "ap", "argv": ["x"]}', ["repo", "'ap'", "'app'"]),
        ('{"repo": "app", "argv": ["x"], "prioritty": "P1"}', ["'priority'"]),
        ('{"repo": "app", "argv": ["x"], "after": ["nobody"]}', ["after", "nobody"]),
        ('{"repo": "app", "argv": "x"}', ["argv"]),
        ('{"repo": "app", ', ["JSON"]),
    ):
        batch = "\n".join([*lines[:776], bad, *lines[777:]]).encode()
        done = shared.cli("submit", "--batch", "-", stdin=batch)
        refused(done, 2, "line 777:", *words)
    assert shared.json("jobs") == []
    assert shared.events() == before


def test_a_cycle_in_a_batch_is_shown_with_its_path(shared: LiveService) -> None:
    """Q-08: also of one job; nothing of the batch is accepted."""
    jobs: list[Json] = [
        {"repo": "app", "argv": ["true"], "name": "start"},
        {"repo": "app", "argv": ["true"], "name": "a", "after": ["start", "c"]},
        {"repo": "app", "argv": ["true"], "name": "b", "after": ["a"]},
        {"repo": "app", "argv": ["true"], "name": "c", "after": ["b"]},
    ]
    batch = "\n".join(map(json.dumps, jobs)).encode()
    done = shared.cli("submit", "--batch", "-", stdin=batch)
    refused(done, 2, "line ", "cycle")
    assert "a -> c -> b -> a" in done.err
    lonely = json.dumps({**jobs[0], "after": ["start"]}).encode()
    done = shared.cli("submit", "--batch", "-", stdin=lonely)
    refused(done, 2, "line 1", "start -> start")
    assert shared.json("jobs") == []


def test_a_batch_in_any_order_runs_in_the_order_of_its_names(
    service: LiveService,
) -> None:
    jobs: list[Json] = [
        {"repo": "app", "argv": ["true"], "name": "last", "after": ["middle"]},
        {"repo": "app", "argv": ["true"], "name": "middle", "after": ["first"]},
        {"repo": "app", "argv": ["true"], "name": "first"},
    ]
    ids = service.batch(jobs)
    service.wait(*ids)
    order = [e.job for e in service.events() if e.kind == "job_dispatched"]
    assert order == ids[::-1]


def test_a_command_that_cannot_be_started_fails_its_job_with_a_sentence(
    service: LiveService,
) -> None:
    app = service.root / "app"
    (app / "no-program").write_text("")
    (app / "no-interpreter").write_text("#!/nonexistent/shell\n")
    (app / "no-interpreter").chmod(0o755)
    gone = app / "gone"
    gone.mkdir()
    blocker = service.gate()
    first = service.bash("app", blocker.wait)
    late = service.submit("--repo", "app", "--cwd", gone, "--", "true")
    gone.rmdir()
    blocker.open()
    service.wait(first)
    for command, words in (
        ("no-such-program", "there is no program no-such-program in PATH"),
        ("./missing", "there is no program ./missing"),
        ("./no-program", "may not be run: permission denied"),
        ("./no-interpreter", "the interpreter that ./no-interpreter names"),
        ("/", "may not be run: is a folder"),
        (late, "/app/gone does not exist"),
    ):
        job = late
        if command != late:
            job = service.submit("--repo", "app", "--", command)
        end = service.end_of(job)
        assert (end["state"], end["exit_code"]) == ("failed", None)
        assert end["error"]["code"] == "WORKER_START_FAILED"
        assert words in end["error"]["message"]
        assert words in service.why(job)
        assert service.cli("wait", job).status == 1


def test_a_repository_with_active_jobs_is_kept(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    running = service.bash("app", f"{bell.ring}; {gate.wait}")
    waiting = service.bash("app", "true")
    bell.wait()
    refused(service.cli("repo", "remove", "app"), 3, "app", "2 jobs", "--cancel")
    refused(service.cli("repo", "remove", service.root / "app"), 3, "2 jobs")
    assert service.show(running)["finished_at"] is None
    service.cli("repo", "remove", "app", "--cancel", status=0)
    assert [service.show(job)["state"] for job in (running, waiting)] == [
        "cancelled",
        "cancelled",
    ]
    refused(service.cli("submit", "--repo", "app", "--", "true"), 2, "'app'")
    # It can come back, as one that is new.
    service.cli("repo", "add", service.root / "app", status=0)
    assert service.end_of(service.bash("app", "true"))["state"] == "succeeded"


# Exit codes


def test_wait_says_how_it_went_by_its_exit_code(service: LiveService) -> None:
    """C-03: documented codes, and with --pass-code that of the job."""
    gate = service.gate()
    good = service.bash("app", "true")
    bad = service.bash("app", "exit 9")
    service.wait(good, bad)
    held = service.bash("app", gate.wait)
    assert service.cli("wait", good).status == 0
    assert service.cli("wait", good, bad).status == 1
    assert service.cli("wait", "--pass-code", bad).status == 9
    late = service.cli("wait", "--timeout", "0.2s", good, held)
    assert (late.status, "not ended" in late.err) == (5, True)
    assert service.cli("wait", "zzzzzz").status == 2
    with started("--home", service.home, "wait", held[-6:]) as waiter:
        gate.open()
        assert finished(waiter).status == 0
    killed = service.bash("app", "kill -9 $$")
    assert service.cli("wait", "--pass-code", killed).status == 137
    assert service.show(killed)["error"]["code"] == "INTERRUPTED"


def test_a_held_request_that_is_interrupted_exits_as_such(
    service: LiveService,
) -> None:
    gate = service.gate()
    job = service.bash("app", f"echo there; {gate.wait}")
    with started("--home", service.home, "logs", "-f", job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"there\n"
        follower.send_signal(signal.SIGINT)
        assert finished(follower).status == 130
    gate.open()
    assert service.end_of(job)["state"] == "succeeded"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137)],
)
def test_run_exits_as_its_command_does(bench: Bench, script: str, status: int) -> None:
    """C-03: the code of the command."""
    app = bench.repository("app")
    done = call("run", "--", "bash", "-c", f"echo out; echo err >&2; {script}", cwd=app)
    assert (done.status, done.out) == (status, "out\n")
    assert done.err.startswith("err\n")


def test_run_outside_of_a_repository_is_refused(bench: Bench) -> None:
    done = call("run", "--", "true", cwd=bench.root)
    assert (done.status, done.out) == (2, "")
    assert "no git work tree" in done.err
    assert "Traceback" not in done.err


# A home that nothing serves


def test_jobs_can_be_read_where_nothing_is_served(service: LiveService) -> None:
    job = service.bash("app", "echo out; exit 3")
    end = service.end_of(job)
    service.cli("stop", status=0)
    for words in (("jobs",), ("show", job), ("show", job[-6:])):
        done = service.cli(*words, status=0)
        assert job[-6:] in done.out
        assert "no service runs" in done.err
    assert service.show(job) == end
    assert [found["id"] for found in service.json("jobs", "--failed")] == [job]
    assert service.log(job) == b"out\n"
    assert "EXIT_NONZERO" in service.why(job)
    assert service.json("repo", "show", "app")["counts"] == {"failed": 1}
    status = service.cli("status")
    assert (status.status, "failed  1" in status.out) == (4, True)
    assert "no service runs" in status.err
    for line in ("submit --repo app -- true", "status --wait", f"wait {job}"):
        refused(service.cli(*line.split()), 4, "no service runs", "forge-actors serve")


def test_jobs_can_be_read_after_a_kill(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    job = service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    service.kill()
    done = service.cli("show", job, status=0)
    assert "no service runs" in done.err
    assert json.loads(service.cli("jobs", "--json", status=0).out)[0]["id"] == job
    # Reading it changed nothing that the next service needs.
    service.start()
    assert service.show(job)["state"] == "running"
    gate.open()
    assert service.end_of(job)["state"] == "succeeded"


def test_a_home_that_never_was_is_said_to_have_no_service(bench: Bench) -> None:
    for verb in ("jobs", "status"):
        done = call(verb, "--home", bench.root / "none")
        refused(done, 4, "no service runs", "forge-actors serve")
    assert not (bench.root / "none").exists()
