"""Verbs that only read, in a home that nothing serves, and in one that is empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest
import trio

from forge_actors.runtime.ownership import own_home
from forge_actors.runtime.runtime import open_runtime
from tests.small_disk import needs_root, read_only

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

READERS = (
    "jobs",
    "show --failed",
    "why --failed",
    "logs --failed",
    "status",
    "repo list",
)
NOTE = "forge-actors: no service runs on {}; this is what its store holds\n"


class Kept(NamedTuple):
    """A home that nothing serves any more, and its jobs."""

    home: Path
    failed: str
    blocked: str
    good: str


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    folder = tmp_path / "app"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)

    async def main() -> list[str]:
        async with open_runtime(tmp_path) as runtime:
            script = 'echo "attempt $FORGE_ATTEMPT"; echo err >&2; exit 3'
            first = await runtime.submit(
                folder,
                ["sh", "-c", script],
                name="first",
                replay="always",
                max_attempts=2,
            )
            second = await runtime.submit(folder, ["true"], after=[first.id])
            third = await runtime.submit(folder, ["printf", "1\n2\n3"], labels=["x"])
            for job in (first, second, third):
                await job.wait()
            return [first.id, second.id, third.id]

    return Kept(tmp_path, *trio.run(main))


@pytest.mark.parametrize("words", READERS)
def test_an_empty_home_has_no_service(shell: Shell, tmp_path: Path, words: str) -> None:
    status, out, err = shell.now(*words.split())
    assert (status, out) == (4, "")
    assert err == (
        f"forge-actors: no service runs on {tmp_path};"
        f" start one with: forge-actors serve --home {tmp_path}\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", READERS)
def test_a_home_that_nothing_serves_is_read(
    kept: Kept, shell: Shell, words: str
) -> None:
    status, out, err = shell.now(*words.split())
    assert status == (4 if words == "status" else 0)
    assert err == NOTE.format(kept.home)
    assert out


def test_what_is_read_is_what_was_saved(kept: Kept, shell: Shell) -> None:
    def read(*words: str) -> object:
        return json.loads(shell.now(*words, "--json")[1])

    ids = [kept.good, kept.blocked, kept.failed]
    jobs = read("jobs")
    assert isinstance(jobs, list)
    assert [job["id"] for job in jobs] == ids
    assert read("show", kept.failed[-6:]) == jobs[2]
    assert read("show", "--repo", "app") == jobs
    assert read("show", "--repo", str(kept.home / "app"), "--label", "x") == jobs[:1]
    why = read("why", "--failed")
    assert isinstance(why, list)
    assert [answer["job"] for answer in why] == ids[1:]
    assert "DEPENDENCY_BLOCKED" in why[0]["sentence"]
    status = read("status")
    assert isinstance(status, dict)
    assert status["counts"] == {
        "succeeded": 1,
        "failed": 1,
        "human_attention_required": 1,
    }
    assert (status["ready"], status["service"]["pid"]) == (False, None)
    [repo] = read("repo", "list")  # type: ignore[misc]
    shown = read("repo", "show", "app")
    assert isinstance(shown, dict)
    for view in (repo, shown):
        assert view["status"].pop("age_ms") >= 0
    [attention] = shown.pop("attention_jobs")
    assert (attention["id"], repo["attention"]) == (kept.blocked, 1)
    assert {**repo, "attention_jobs": []} == {**shown, "attention_jobs": []}
    assert (repo["name"], repo["fence"], repo["enabled"]) == ("app", 3, True)
    assert repo["common_dir"] == str(kept.home / "app" / ".git")


def test_the_logs_are_read_with_every_option(kept: Kept) -> None:
    def logs(*words: str) -> bytes:
        command = [sys.executable, "-m", "forge_actors", "logs", *words]
        done = subprocess.run(
            [*command, "--home", str(kept.home)], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == NOTE.format(kept.home).encode()
        return done.stdout

    assert logs(kept.failed) == b"attempt 2\nerr\n"
    assert logs("-f", kept.failed[-6:]) == b"attempt 2\nerr\n"
    assert logs("--stdout", "--attempt", "1", kept.failed) == b"attempt 1\n"
    assert logs("--stderr", kept.failed) == b"err\n"
    assert logs("--tail", "2", kept.good) == b"2\n3"
    assert logs("--stdout", "--bytes", "2-3", kept.good) == b"2\n"
    assert logs("--since", "1h", kept.good) == b"1\n2\n3"
    assert logs("--since", "2999-01-01T00:00:00Z", kept.good) == b""
    assert logs("--stdout", kept.failed, kept.good).splitlines() == [
        b"first  | attempt 2",
        *(kept.good[-6:].encode() + b" | %d" % number for number in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("show nowhere", 2, "no job has the id 'nowhere'"),
        ("why nowhere", 2, "no job has the id 'nowhere'"),
        ("logs nowhere", 2, "no job has the id 'nowhere'"),
        ("show \udcff\udcfe", 2, "is no job id"),
        ("logs --label \udcff", 3, "no job matches --label"),
        ("events --repo \udcff", 2, "no repository is called"),
        ("repo show nowhere", 2, "no repository is called 'nowhere'"),
        ("jobs --state quued", 2, "'quued' is unknown; did you mean 'queued'?"),
        ("jobs --before nowhere", 2, "no job has the id 'nowhere'"),
        ("show --kind chekc", 2, "'chekc' is unknown; did you mean 'check'?"),
        ("show --kind check", 3, "no job matches --kind check"),
        ("logs --failed --since x", 2, "since: 'x' is neither"),
        ("submit -- true", 4, "start one with: forge-actors serve"),
        ("cancel --mine", 4, "start one with: forge-actors serve"),
        ("retry --failed", 4, "start one with: forge-actors serve"),
        ("wait --failed", 4, "start one with: forge-actors serve"),
        ("repo add .", 4, "start one with: forge-actors serve"),
        ("stop", 4, "start one with: forge-actors serve"),
    ],
)
def test_a_mistake_is_one_line_there_too(
    kept: Kept, shell: Shell, words: str, status: int, message: str
) -> None:
    found, out, err = shell.now(*words.split())
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith("forge-actors: ")
    assert message in err
    assert (kept.home / "store.sqlite").exists()


@pytest.mark.parametrize("words", [*READERS, "submit -- x", "stop", "wait --failed"])
def test_a_home_whose_owner_answers_nobody_is_not_told_to_be_free(
    kept: Kept, shell: Shell, words: str
) -> None:
    """As while a service starts, or waits for the jobs that it ends."""
    with own_home(kept.home):
        status, _, err = shell.now(*words.split())
    assert status == (0 if words in READERS and words != "status" else 4)
    told = f"forge-actors: process {os.getpid()} has {kept.home} and answers nobody: "
    assert err.startswith(told)
    assert "start one with" not in err


@needs_root
@pytest.mark.parametrize("words", [*READERS, "events"])
def test_a_home_that_cannot_be_written_to_is_read(
    kept: Kept, shell: Shell, words: str
) -> None:
    with read_only(kept.home):
        status, out, err = shell.now(*words.split())
    assert status == (4 if words == "status" else 0)
    assert err == NOTE.format(kept.home)
    assert out


@pytest.mark.parametrize("words", [*READERS, "events"])
def test_a_store_that_is_none_is_named(
    tmp_path: Path, shell: Shell, words: str
) -> None:
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"junk" * 5000)
    status, out, err = shell.now(*words.split())
    assert (status, out) == (1, "")
    assert err == (
        f"forge-actors: the store {store} cannot be read: file is not a database\n"
    )
