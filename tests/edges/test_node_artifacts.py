"""Collecting the artifacts of jobs: what is taken, what is not, what goes wrong."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.launch import (
    AfterJob,
    ArtifactOrder,
    Collected,
    ProcessLimits,
)
from forge_actors.edges.node.agent import artifacts, collecting
from forge_actors.runtime.kept_artifacts import KeptFile, kept
from tests.edges.node_jobs import (
    named,
    opened,
    order,
    run,
    shell,
    stop_when_ready,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JOB = "job1"


def collect(place: Path, *patterns: str, **limits: Any) -> int:
    """Run the program as the agent does; its exit status."""
    (place / "home").mkdir(exist_ok=True)
    wanted = {
        "folder": str(place / "work"),
        "home": str(place / "home"),
        "job": JOB,
        "attempt": 1,
        "patterns": patterns,
        "files": 1000,
        "bytes": 1 << 30,
        "seconds": 60.0,
        **limits,
    }
    command = [sys.executable, "-I", "-S", "-c", artifacts.PROGRAM, json.dumps(wanted)]
    return subprocess.run(command, cwd="/", check=False).returncode


def paths(place: Path) -> list[str]:
    return [file.path for file in kept(str(place / "home"), JOB, 1, None).files]


def left_out(place: Path) -> dict[str, str]:
    found = kept(str(place / "home"), JOB, 1, None).left_out
    return {each.path: each.reason for each in found}


def content(place: Path, path: str) -> bytes:
    with KeptFile(str(place / "home"), JOB, 1, path).opened() as read:
        return read(1 << 20)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path


def make(place: Path, *names: str) -> None:
    for name in names:
        path = place / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content of " + os.fsencode(name))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.txt", ["a.txt"]),
        ("*.txt", ["a.txt", "b.txt"]),
        ("*", ["a.txt", "b.txt", "d/e/f.txt", "d/e/g.log", "d/h.txt"]),
        ("d", ["d/e/f.txt", "d/e/g.log", "d/h.txt"]),
        ("d/*", ["d/e/f.txt", "d/e/g.log", "d/h.txt"]),
        ("d/*.txt", ["d/h.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "d/e/f.txt", "d/h.txt"]),
        ("**/f.txt", ["d/e/f.txt"]),
        ("d/**/e/**/*.log", ["d/e/g.log"]),
        ("**", ["a.txt", "b.txt", "d/e/f.txt", "d/e/g.log", "d/h.txt"]),
        ("[ab].tx?", ["a.txt", "b.txt"]),
        (".hidden/*", [".hidden/x"]),
        ("**/.git/*", []),
        ("d/e/f.txt/x", []),
    ],
)
def test_what_a_pattern_means(place: Path, pattern: str, expected: list[str]) -> None:
    make(place, "a.txt", "b.txt", "d/e/f.txt", "d/e/g.log", "d/h.txt")
    make(place, ".hidden/x", ".git/config", "d/.git/HEAD")
    assert collect(place, pattern) == (0 if expected else 3)
    assert paths(place) == expected
    if not expected:
        assert left_out(place) == {pattern: "nothing matches it"}


def test_files_are_kept_with_their_hashes_for_the_owner_alone(place: Path) -> None:
    make(place, "a", "b/c")
    (place / "work" / "a").chmod(0o755)
    (place / "work" / "empty").touch()
    assert collect(place, "a", "b", "empty") == 0
    found = kept(str(place / "home"), JOB, 1, None)
    assert found.state == "complete"
    first, second, third = found.files
    assert (first.path, first.executable, second.path) == ("a", True, "b/c")
    assert first.sha256 == sha256(b"content of a").hexdigest()
    assert found.bytes == len("content of a" + "content of b/c")
    assert (third.path, third.bytes) == ("empty", 0)
    assert content(place, "b/c") == b"content of b/c"
    for path in (place / "home" / "artifacts").rglob("*"):
        assert path.stat().st_mode & 0o77 == 0


def test_no_link_is_followed_and_only_files_are_read(place: Path) -> None:
    secret = place / "secret"
    secret.mkdir()
    (secret / "key").write_text("precious")
    work = place / "work"
    make(place, "out/good")
    (work / "out" / "file").symlink_to(secret / "key")
    (work / "out" / "folder").symlink_to(secret)
    (work / "out" / "inner").symlink_to("good")
    os.mkfifo(work / "out" / "pipe")
    (work / "top").symlink_to(secret)
    assert collect(place, "out", "top/*") == 3
    assert paths(place) == ["out/good"]
    assert left_out(place) == {
        "out/file": "it is a link",
        "out/folder": "it is a link",
        "out/inner": "it is a link",
        "out/pipe": "it is no regular file",
        "top/*": "nothing matches it",
    }


def test_a_folder_that_is_a_link_itself_is_not_entered(place: Path) -> None:
    make(place, "a")
    (place / "work").rename(place / "real")
    (place / "work").symlink_to(place / "real")
    assert collect(place, "*") not in (0, 3)
    assert kept(str(place / "home"), JOB, 1, None).state == "incomplete"


def test_a_link_in_the_home_is_not_written_through(place: Path) -> None:
    make(place, "a")
    (place / "home").mkdir()
    (place / "elsewhere").mkdir()
    (place / "home" / "artifacts").symlink_to(place / "elsewhere")
    assert collect(place, "*") not in (0, 3)
    assert list((place / "elsewhere").iterdir()) == []


def test_over_a_limit_is_said_and_the_rest_is_kept(place: Path) -> None:
    make(place, *(f"f{number}" for number in range(5)))
    assert collect(place, "*", files=2) == 3
    assert paths(place) == ["f0", "f1"]
    assert left_out(place)["f2"] == "over the limit of 2 files"


def test_what_would_be_too_much_is_left_out_and_smaller_ones_are_not(
    place: Path,
) -> None:
    make(place, "a", "z")
    (place / "work" / "big").write_bytes(b"x" * 1000)
    assert collect(place, "*", bytes=100) == 3
    assert paths(place) == ["a", "z"]
    assert left_out(place) == {"big": "over the limit of 100 bytes in all"}


def test_when_the_time_is_over_it_says_so(place: Path) -> None:
    make(place, "a", "b")
    assert collect(place, "*", seconds=0.0) == 3
    assert left_out(place) == {"": "it took longer than 0 s"}


def test_of_very_many_only_some_are_named(place: Path) -> None:
    for number in range(collecting.MAX_NAMED + 20):
        (place / "work" / f"{number:03}").symlink_to("nowhere")
    assert collect(place, "*") == 3
    found = kept(str(place / "home"), JOB, 1, None)
    assert (len(found.left_out), found.left_out_more) == (collecting.MAX_NAMED, 20)


def test_a_name_that_is_no_text_is_left_out_and_shown(place: Path) -> None:
    make(place, "good", os.fsdecode(b"caf\xe9"), "\x1b[31mred\n")
    assert collect(place, "*") == 3
    assert paths(place) == ["\x1b[31mred\n", "good"]
    assert left_out(place) == {r"caf\udce9": "its name is not UTF-8"}


def test_a_file_that_changes_while_it_is_read_is_left_out(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place, "grows", "shrinks", "same", "touched")
    work = place / "work"
    read, seen = os.read, set()

    def reading(fd: int, size: int) -> bytes:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        if name not in seen and name != "same":
            seen.add(name)
            change(name)
        return read(fd, size)

    def change(name: str) -> None:
        if name == "grows":
            (work / name).write_text("more" * 100)
        elif name == "shrinks":
            os.truncate(work / name, 1)
        else:
            os.utime(work / name, (1, 1))

    monkeypatch.setattr(collecting.os, "read", reading)
    (place / "home").mkdir()
    wanted = {"folder": str(work), "home": str(place / "home"), "patterns": ["*"]}
    limits = {"files": 9, "bytes": 1 << 20, "seconds": 60.0}
    assert collecting.main({**wanted, **limits, "job": JOB, "attempt": 1}) == 3
    assert paths(place) == ["same"]
    assert left_out(place) == dict.fromkeys(
        ("grows", "shrinks", "touched"), "it changed while it was read"
    )
    folder = place / "home" / "artifacts" / JOB / "1"
    assert sorted(path.name for path in folder.iterdir()) == ["1", "manifest.json"]


@pytest.mark.parametrize("moment", range(8))
def test_killed_at_any_moment_there_is_all_of_it_or_nothing(
    place: Path, moment: int
) -> None:
    """In front of each call that changes the home."""
    make(place, "a", "b")
    calls = ("mkdir", "open", "write", "fsync", "rename")
    script = (
        "import os, sys, json\n"
        f"sys.argv[1:] = sys.argv[2:]\nleft = [{moment * 3}]\n"
        "def killing(call):\n"
        "    def counted(*a, **k):\n"
        "        left[0] -= 1\n"
        "        if left[0] < 0: os.kill(os.getpid(), 9)\n"
        "        return call(*a, **k)\n"
        "    return counted\n"
        f"for name in {calls}:\n"
        "    setattr(os, name, killing(getattr(os, name)))\n"
        f"exec({artifacts.PROGRAM!r})\n"
    )
    (place / "home").mkdir()
    wanted = {
        "folder": str(place / "work"),
        "home": str(place / "home"),
        "job": JOB,
        "attempt": 1,
        "patterns": ["*"],
        "files": 10,
        "bytes": 1 << 20,
        "seconds": 60.0,
    }
    command = [sys.executable, "-I", "-S", "-c", script, "", json.dumps(wanted)]
    done = subprocess.run(command, check=False)
    found = kept(str(place / "home"), JOB, 1, Collected(unfinished=True))
    if found.state == "complete":
        assert paths(place) == ["a", "b"]
        assert content(place, "b") == b"content of b"
    else:
        assert done.returncode == -signal.SIGKILL
        assert (found.state, found.files) == ("incomplete", [])


# In the agent.


def wanting(home: Path, *patterns: str, **limits: Any) -> ArtifactOrder:
    values = {"files": 1000, "bytes": 1 << 30, "seconds": 60.0, **limits}
    return ArtifactOrder(patterns, str(home), **values)


def endless(folder: Path) -> Callable[[], Awaitable[None]]:
    """A folder with a file that takes very long to read; waits until that has begun."""
    folder.mkdir()
    (folder / "big").touch()
    os.truncate(folder / "big", 40 << 30)
    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    in_open = 0x20
    assert libc.inotify_add_watch(fd, os.fsencode(folder / "big"), in_open) >= 0

    async def begun() -> None:
        await trio.lowlevel.wait_readable(fd)
        os.close(fd)

    return begun


async def test_they_are_collected_before_the_command_that_follows(home: Path) -> None:
    (home / "folder").mkdir()
    wanted = shell(
        home,
        "echo made > made; echo kept; exit 3",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*"),
        after_job=f"rm made; ls {home}/artifacts/*/1",
        env={"PYTHONPATH": "/nowhere", "LD_PRELOAD": ""},
        secrets={"TOKEN": "a-secret-value"},
    )
    (receipt,) = await run(home, wanted)
    assert (receipt.exit_code, receipt.artifacts) == (3, Collected())
    assert receipt.after_job == AfterJob(exit_code=0)
    assert text(wanted) == "kept\n1\nmanifest.json\n"
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, [file.path for file in found.files]) == ("complete", ["made"])


async def test_a_job_that_is_stopped_or_out_of_time_leaves_them_too(
    home: Path,
) -> None:
    (home / "folder").mkdir()
    place = {"cwd": str(home / "folder"), "artifacts": wanting(home, "*", "no")}
    wanted = shell(home, "echo x > made; echo; exec sleep 600", **place)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.ending == "stop"
    assert receipt.artifacts == Collected(left_out=True)
    late = shell(home, "exec sleep 600", job="late", wall=0.2, **place)
    (receipt,) = await run(home, late)
    assert (receipt.ending, receipt.artifacts) == ("wall", Collected(left_out=True))
    found = kept(str(home), named(home, "late"), 1, receipt.artifacts)
    assert [file.path for file in found.files] == ["made"]


async def test_what_could_not_be_collected_is_told_and_changes_nothing(
    home: Path,
) -> None:
    (home / "artifacts").symlink_to("/tmp")
    (home / "folder").mkdir()
    wanted = shell(home, "true", cwd=str(home), artifacts=wanting(home, "folder"))
    (receipt,) = await run(home, wanted)
    assert receipt.exit_code == 0
    assert receipt.artifacts is not None
    assert receipt.artifacts.error == "it failed, see the end of the job's stderr"
    problem = "the artifacts were not collected: Not a directory\n"
    assert text(wanted, "stderr") == problem
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])


async def test_the_folder_is_that_in_which_the_job_began(home: Path) -> None:
    """However it is spelt, wherever it is moved to, and whatever is in its place."""
    (home / "folder").mkdir()
    (home / "link").symlink_to("folder")
    script = "echo ours > a; cd ..; mv folder moved; mkdir folder; echo not > folder/a"
    place = {"cwd": str(home / "link"), "artifacts": wanting(home, "a")}
    wanted = shell(home, script, **place)
    (receipt,) = await run(home, wanted)
    assert receipt.artifacts == Collected()
    with KeptFile(str(home), named(home), 1, "a").opened() as read:
        assert read(100) == b"ours\n"


async def test_a_folder_that_is_gone_has_nothing(home: Path) -> None:
    (home / "folder").mkdir()
    place = {"cwd": str(home / "folder"), "artifacts": wanting(home, "*")}
    (receipt,) = await run(home, shell(home, "cd /; rmdir $OLDPWD", **place))
    assert receipt.artifacts == Collected(left_out=True)


@pytest.mark.parametrize("how", ["plain", "limits", "pty", "no program", "no folder"])
async def test_it_leaves_no_descriptor_open_in_the_agent(home: Path, how: str) -> None:
    (home / "folder").mkdir()
    extra: dict[str, Any] = {"artifacts": wanting(home, "*"), "after_job": "true"}
    extra["cwd"] = str(home / ("nowhere" if how == "no folder" else "folder"))
    if how == "limits":
        extra["limits"] = ProcessLimits(nice=1)
    async with opened(home) as launcher:
        held = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(held.iterdir()))
        script = "/no/program" if how == "no program" else "true"
        wanted = order(home, script, pty=how == "pty", **extra)
        receipt = await launcher.launch(wanted).exited()
        assert (receipt.artifacts is None) == how.startswith("no")
        assert len(list(held.iterdir())) == before


async def test_a_cancel_ends_the_collecting(home: Path) -> None:
    wanted = shell(
        home,
        "echo",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*", bytes=1 << 50),
        after_job="echo after",
    )
    async with opened(home) as launcher:
        begun = endless(home / "folder")
        attempt = launcher.launch(wanted)
        await begun()
        attempt.stop()
        receipt = await attempt.exited()
    assert receipt.exit_code == 0
    assert receipt.artifacts == Collected(error="it was ended by SIGTERM")
    assert receipt.after_job == AfterJob(exit_code=0)
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])
    assert list((home / "artifacts" / named(home)).iterdir()) == []


async def test_the_death_of_the_agent_meanwhile_is_told(home: Path) -> None:
    wanted = shell(
        home,
        "exit 3",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*", bytes=1 << 50),
        after_job="touch ran",
    )
    async with opened(home) as launcher:
        begun = endless(home / "folder")
        attempt = launcher.launch(wanted)
        await begun()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code) == ("exit", 3)
    assert receipt.artifacts == Collected(unfinished=True)
    assert receipt.after_job is not None
    assert receipt.after_job.error is not None
    assert "before it could begin" in receipt.after_job.error
    assert not (home / "folder" / "ran").exists()
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])
