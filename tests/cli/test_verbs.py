"""Each verb in front of a service, and every failure as one line and a status."""

from __future__ import annotations

import io
import json
import os
import shlex
from typing import TYPE_CHECKING

import pytest

from forge_actors.cli import main as program
from forge_actors.domain.errors import StoreFailed
from forge_actors.testing.service import fake_service
from tests.cli.shell import finish

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


async def test_a_job_from_submit_to_its_end(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        status, out, err = await shell("submit", "--name", "build", "--", "make", "-k")
        assert (status, err) == (0, "")
        job = out.strip()
        request = control.requests[job]
        assert (request.argv, request.repo) == (["make", "-k"], os.getcwd())
        assert request.cwd == os.getcwd()
        assert "waits its turn" in (await shell("why", job))[1]
        finish(control, job, b"text \x1b[31m\xff")
        assert (await shell("wait", job))[0] == 0
        assert "build" in (await shell("jobs"))[1]
        assert "succeeded" in (await shell("show", job[-4:]))[1]


async def test_every_option_of_submit_reaches_the_service(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAKEN", "from here")
    words = shlex.split(
        "--repo app --kind check --priority P1 --claim read:path:a --claim read:path:b"
        " --after x --after y --timeout 90s --queue-timeout 1h --idle-timeout 5m"
        " --request-id r --name n --label l --label m --provider claude --unique u"
        " --read-only --replay safe --max-attempts 2 --cwd /tmp --env A=b=c --env TAKEN"
        " --secret S --secret T"
        " --stdin-file /etc/hosts --stop-signal SIGINT --grace 1s --keep-leftovers"
        " --pty --nice 5 --memory 2G --pids 64 --after-job 'make clean; date'"
        " --isolate --branch 'x/{job}' --base origin/main"
        " --budget-cost 2.5 --budget-tokens 900"
        " --verify 'make test' --verify-timeout 20m --verify-rounds 4"
    )
    async with fake_service(tmp_path) as control:
        status, out, _ = await shell("submit", *words, "--", "x", "--repo", "--", "y")
        assert status == 0
        found = control.requests[out.strip()]
    assert found.argv == ["x", "--repo", "--", "y"]
    assert (found.repo, found.kind, found.priority) == ("app", "check", "P1")
    assert found.claims == ["read:path:a", "read:path:b"]
    assert (found.after, found.labels) == (["x", "y"], ["l", "m"])
    assert (found.budget_cost, found.budget_tokens) == (2.5, 900)
    assert (found.verify, found.verify_timeout) == ("make test", "20m")
    assert found.verify_rounds == 4
    assert (found.timeout, found.queue_timeout) == ("90s", "1h")
    assert (found.idle_timeout, found.grace) == ("5m", "1s")
    assert (found.request_id, found.name, found.unique) == ("r", "n", "u")
    assert (found.provider, found.replay, found.max_attempts) == ("claude", "safe", 2)
    assert found.read_only
    assert found.keep_leftovers
    assert (found.pty, found.nice, found.memory, found.pids) == (True, 5, "2G", 64)
    assert found.after_job == "make clean; date"
    assert (found.isolate, found.branch) == (True, "x/{job}")
    assert found.base == "origin/main"
    assert found.env == {"A": "b=c", "TAKEN": "from here"}
    assert found.secrets == ["S", "T"]
    assert (found.cwd, found.stdin) == ("/tmp", "/etc/hosts")
    assert found.stop_signal == "SIGINT"


async def test_bytes_that_are_no_text_are_submitted_as_they_are(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        _, out, _ = await shell("submit", "--", "x", os.fsdecode(b"\xff\xfe"))
        assert control.requests[out.strip()].argv == ["x", {"b64": "//4="}]
        assert "\\xff" in (await shell("jobs"))[1]


async def test_a_job_that_a_job_submits_names_its_parent(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_JOB_ID", "j1")
    async with fake_service(tmp_path) as control:
        _, out, _ = await shell("submit", "--", "x")
        assert control.requests[out.strip()].origin == "job:j1"


async def test_a_batch_comes_from_a_file_or_from_standard_input(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b'{"repo":"app","argv":["a"]}\n{"repo":"app","argv":["b"]}\n'
    path = tmp_path / "jobs"
    path.write_bytes(lines)
    async with fake_service(tmp_path) as control:
        status, out, _ = await shell("submit", "--batch", str(path))
        assert (status, len(out.split())) == (0, 2)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        status, out, _ = await shell("submit", "--batch", "-", "--json")
        assert [job["existing"] for job in json.loads(out)] == [False, False]
        path.write_bytes(lines + b"{}")
        status, out, err = await shell("submit", "--batch", str(path))
        assert (status, out) == (2, "")
        assert "line 3" in err
        assert len(control.views) == 4


async def test_a_job_that_was_there_is_said_to_have_been(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        _, first, err = await shell("submit", "--request-id", "r", "--", "x")
        assert err == ""
        _, second, err = await shell("submit", "--request-id", "r", "--", "x")
        assert first == second
        assert "was there already" in err


async def test_wait_tells_how_it_went(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        jobs = [(await shell("submit", "--", "x"))[1].strip() for _ in range(3)]
        control.end(jobs[0])
        control.end(jobs[1], "failed", exit_code=7)
        assert (await shell("wait", jobs[0]))[0] == 0
        status, out, _ = await shell("wait", jobs[0], jobs[1])
        assert (status, len(out.splitlines())) == (1, 2)
        assert "exit code 7" in out
        assert (await shell("wait", "--pass-code", jobs[1]))[0] == 7
        status, out, err = await shell("wait", "--timeout", "0", *jobs)
        assert (status, "not ended" in err) == (5, True)
        status, out, _ = await shell("wait", "--timeout", "0", "--json", jobs[2])
        assert json.loads(out)["timed_out"] is True
        assert (await shell("wait", "--pass-code", *jobs))[0] == 2
        status, out, _ = await shell("cancel", jobs[2], "--grace", "1s")
        assert (status, out) == (0, f"{jobs[2]} cancelled\n")
        assert (await shell("wait", "--pass-code", jobs[2]))[0] == 1


async def test_jobs_fetches_as_many_as_were_asked_for(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        path = tmp_path / "batch"
        path.write_text('{"repo":"app","argv":["x"]}\n' * 2345)
        await shell("submit", "--batch", str(path))
        counts = {}
        for words in ("", "--limit 7", "--limit 1500", "--all"):
            _, out, _ = await shell("jobs", "--json", *words.split())
            counts[words] = len({job["id"] for job in json.loads(out)})
        assert counts == {"": 100, "--limit 7": 7, "--limit 1500": 1500, "--all": 2345}
        job = next(iter(control.views))
        control.end(job, "failed", exit_code=1)
        _, out, _ = await shell("jobs", "--failed")
        assert job[-6:] in out
        assert "EXIT_NONZERO" in out
        assert len(out.splitlines()) == 2
        assert "--all shows all" in (await shell("jobs"))[2]


async def test_jobs_come_in_pages(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path):
        jobs = [await shell.submit() for _ in range(5)][::-1]
        found: list[str] = []
        before: list[str] = []
        notes = []
        while len(found) < 5:
            words = ("jobs", "--json", "--limit", "2", *before)
            status, out, err = await shell(*words)
            assert status == 0
            found += [job["id"] for job in json.loads(out)]
            notes.append(err)
            before = ["--before", found[-1][-6:]]
        assert found == jobs
        there_are_more = "forge-actors: there are more: --before {} goes on"
        assert notes[0].startswith(there_are_more.format(jobs[1][-6:]))
        assert notes[1].startswith(there_are_more.format(jobs[3][-6:]))
        assert notes[2] == ""
        assert (await shell("jobs", "--limit", "5"))[2] == ""
        assert (await shell("jobs", "--before", "nowhere"))[0] == 2
        assert (await shell("jobs", "--limit", "5", "--all"))[0] == 2


async def test_repositories_are_added_listed_and_removed(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with fake_service(tmp_path) as control:
        assert await shell("repo", "add", "app") == (0, "app\n", "")
        assert control.repos["app"].path == f"{tmp_path}/app"
        await shell("repo", "add", ".", "--name", "top")
        assert control.repos["top"].path == str(tmp_path)
        _, out, _ = await shell("repo", "list")
        assert len(out.splitlines()) == 3
        assert json.loads((await shell("repo", "show", "app", "--json"))[1])["id"]
        _, out, _ = await shell("repo", "show", "app")
        lines = dict(line.split(maxsplit=1) for line in out.splitlines())
        assert lines["path"] == f"{tmp_path}/app"
        assert lines["common_dir"] == f"{tmp_path}/app/.git"
        assert (lines["enabled"], lines["fence"]) == ("yes", "0")
        await shell("repo", "disable", "app")
        assert "enabled     no\n" in (await shell("repo", "show", "app"))[1]
        await shell("submit", "--repo", "app", "--", "x")
        status, _, err = await shell("repo", "remove", "app")
        assert (status, "active jobs" in err) == (3, True)
        assert (await shell("repo", "remove", "app", "--cancel"))[0] == 0
        assert list(control.repos) == ["top"]


async def test_the_service_is_shown_and_stopped(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        assert "0 of 4" in (await shell("status"))[1]
        assert json.loads((await shell("status", "--json"))[1])["ready"] is True
        assert "runs" not in (await shell("stop", "--no-wait"))[1]
        assert control.stop_requested.is_set()
        assert control.ends_jobs is False
        await shell("repo", "add", "/src/app")
        await shell("submit", "--repo", "app", "--", "x")
        [job] = control.views
        control.begin(job)
        status, out, _ = await shell("stop", "--no-wait")
        assert (status, "stops; 1 job runs on, and the next" in out) == (0, True)
        status, out, _ = await shell("stop", "--no-wait", "--jobs")
        assert (status, "runs on" in out) == (0, False)
        assert control.ends_jobs is True


# Failures


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("jbos", 2, "there is no verb 'jbos'; did you mean jobs?"),
        ("zzz", 2, "forge-actors --help lists the verbs"),
        ("jobs --limitt 3", 2, "there is no option --limitt; did you mean --limit?"),
        ("jobs --lim 3", 2, "there is no option --lim"),
        ("jobs --limit x", 2, "'x' is no whole number"),
        ("jobs --limit 0", 2, "--limit: must be at least 1"),
        ("jobs more", 2, "'more' is one word too many"),
        ("jobs -- x", 2, "takes no command behind --"),
        ("show", 2, "no job is selected: give ids, or --repo,"),
        ("submit", 2, "no command: put it behind --"),
        ("submit --", 2, "no command: put it behind --"),
        ("submit --env NOT_SET_HERE -- x", 2, "NOT_SET_HERE is not set here"),
        ("submit --env =x -- x", 2, "env: '=x' is neither NAME=VALUE"),
        ("submit --batch f -- x", 2, "takes its commands from the file"),
        ("submit --batch /nonexistent", 2, "No such file"),
        ("repo", 2, "required: ACTION"),
        ("repo lsit", 2, "'lsit' is unknown; did you mean list?"),
        ("status", 4, "start one with: forge-actors serve"),
        ("wait abcd", 4, "start one with: forge-actors serve"),
    ],
)
def test_a_mistake_is_one_line_and_a_status(
    shell: Shell, words: str, status: int, message: str
) -> None:
    found, out, err = shell.now(*words.split())
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith("forge-actors: ")
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", ""), "JOB: an empty word is no id"),
        (("cancel", "abcd", ""), "JOB: an empty word is no id"),
        (("repo", "show", ""), "an empty word is no repository"),
        (("repo", "remove", ""), "an empty word is no repository"),
        (("jobs", "--repo", ""), "an empty word is no repository"),
        (("repo", "add", ""), "an empty word is no repository"),
        (("jobs", "--before", ""), "--before: an empty word is no id"),
        (("submit", "--env", "", "--", "x"), "env: '' is neither NAME=VALUE nor NAME"),
        (("submit", "--name", "-x", "--", "x"), "is written --name=-..."),
        (("jobs", "--color", "pink"), "--color: 'pink' is unknown (allowed: auto, "),
    ],
)
def test_an_empty_word_is_told_before_it_is_sent(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    status, out, err = shell.now(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


async def test_what_the_service_refuses_has_its_status(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        status, _, err = await shell("submit", "--kind", "chekc", "--", "x")
        assert status == 2
        assert err.startswith("forge-actors: kind: 'chekc' is unknown (allowed: ")
        assert (await shell("show", "nowhere"))[0] == 2
        control.failure = StoreFailed("the disk is full\x1b[2J")
        assert await shell("status") == (1, "", "forge-actors: the disk is full\n")
        job = (await shell("submit", "--", "x"))[1].strip()
        control.end(job)
        status, _, err = await shell("hold", "--json", job)
        assert (status, json.loads(err)["error"]["code"]) == (3, "REFUSED")


def test_a_bug_is_a_line_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("forge_actors.cli.verb.run_verb", fail)
    status, _, err = shell.now("jobs")
    assert (status, err) == (1, "forge-actors: internal error: ZeroDivisionError: oh\n")


def test_an_interrupt_is_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("forge_actors.cli.verb.run_verb", interrupt)
    assert shell.now("jobs") == (130, "", "")


@pytest.mark.parametrize("words", ["jobs --home=", "serve --home=", "run --home= -- x"])
def test_an_empty_home_is_not_the_default_one(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """As `--home "$X"` gives it where X is not set."""
    assert program.main(words.split()) == 2
    assert capsys.readouterr().err.startswith("forge-actors: home: is empty: ")


@pytest.mark.parametrize("words", [["--home"], ["--home", "x"]])
def test_a_home_without_a_verb_is_told_what_is_missing(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert program.main(words) == 2
    assert "a verb follows: --home DIR VERB" in capsys.readouterr().err


def test_a_home_that_is_a_file_is_no_folder(tmp_path: Path, shell: Shell) -> None:
    tmp_path.rmdir()
    tmp_path.touch()
    for words in ("serve", "serve --detach", "run -- true"):
        status, _, err = shell.now(*words.split())
        assert (status, err) == (2, f"forge-actors: home: {tmp_path} is no folder\n")
