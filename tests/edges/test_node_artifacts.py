"""Collecting the artifacts of jobs: what is taken, what is not, what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.launch import (
    Collected,
)
from forge_actors.edges.node.agent import artifacts, collecting
from forge_actors.runtime.kept_artifacts import KeptFile, kept

if TYPE_CHECKING:
    pass

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
