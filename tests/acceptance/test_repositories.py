"""Repositories that vanish, move or are others', and git that finds nobody to ask."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import subprocess
import termios
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.service import PROGRAM, LiveService
from tests.edges.test_git_as_others import closed_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Longest that a refusal may take for which others wait for hours.
SECONDS = 60.0


def used(service: LiveService) -> int:
    workers: int = service.json("status")["capacity"]["workers"]["used"]
    return workers


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_what_waits_in_a_deleted_repository_fails_with_its_path(
    service: LiveService,
) -> None:
    """G-13 a: nothing runs in it; others go on."""
    service.add("lib")
    service.cli("pause", "--repo", "app", status=0)
    waits = [service.bash("app", "true") for _ in range(3)]
    shutil.rmtree(service.root / "app")
    service.cli("resume", "--repo", "app", status=0)
    for end in service.wait(*waits):
        assert (end["state"], end["attempt"]) == ("failed", 0)
        assert end["error"]["code"] == "REPOSITORY_GONE"
        assert f"{service.root.name}/app" in end["error"]["message"]
    assert service.end_of(service.bash("lib", "true"))["state"] == "succeeded"
    shown = service.cli("repo", "show", "app", status=0)
    assert "the folder of its repository is gone" in shown.err
    assert "forge-actors repo relocate app PATH" in shown.err
    service.cli("repo", "remove", "app", status=0)


def test_what_runs_in_a_deleted_repository_ends_and_frees_everything(
    make_service: Callable[[str], LiveService],
) -> None:
    """G-13 b: its own end, whatever that is, and claims and tokens are free."""
    service = make_service("[limits]\nworkers = 1\n")
    service.start()
    service.add("app")
    service.add("lib")
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}; ls; exit 3")
    bell.wait()
    next_one, elsewhere = service.bash("app", "true"), service.bash("lib", "true")
    shutil.rmtree(service.root / "app")
    gate.open()
    end = service.end_of(runs)
    assert (end["state"], end["exit_code"]) == ("failed", 3)
    assert service.end_of(next_one)["error"]["code"] == "REPOSITORY_GONE"
    assert service.end_of(elsewhere)["state"] == "succeeded"
    service.cli("status", "--wait", "idle", status=0)
    assert used(service) == 0


def test_another_repository_in_the_place_of_one_is_another(
    service: LiveService,
) -> None:
    """G-13 c: what waits runs in the one that was renamed, not in the other."""
    old, new = service.root / "app", service.root / "renamed"
    gate, bell = service.gate(), service.bell()
    (old / "ours").touch()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}; /bin/pwd; ls")
    bell.wait()
    waits = service.bash("app", "/bin/pwd; ls")
    old.rename(new)
    service.repository("app")
    (old / "theirs").touch()
    gate.open()
    for job in (runs, waits):
        assert service.end_of(job)["state"] == "succeeded"
        assert service.log(job) == f"{new}\nours\n".encode()
    assert service.show(waits)["cwd"] == str(new)
    refused = service.cli("repo", "add", old, status=3)
    assert f"'app' is the name of {new}" in refused.err
    service.cli("repo", "add", old, "--name", "other", status=0)
    other = service.json("repo", "show", "other")
    assert other["id"] != service.json("repo", "show", "app")["id"]
    job = service.bash(str(old), "ls")
    assert service.end_of(job)["repo"] == "other"
    assert service.log(job) == b"theirs\n"


def test_one_that_is_moved_away_takes_along_what_waits(service: LiveService) -> None:
    old, new = service.root / "app", service.root / "far" / "away"
    (old / "sub").mkdir()
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}", "--claim=write:workspace")
    bell.wait()
    service.cli("repo", "disable", "app", status=0)
    below = ("--cwd", str(old / "sub"), "--claim=write:workspace")
    waits = service.bash("app", "/bin/pwd", *below)
    new.parent.mkdir()
    old.rename(new)
    done = service.cli("repo", "relocate", "app", new / "sub", status=0)
    assert f"it was moved here from {old}" in done.err
    service.cli("repo", "enable", "app", status=0)
    # What runs holds what it claimed, where that is now.
    again = service.bash(str(new), "true", "--claim=write:workspace")
    assert runs in service.why(waits)
    assert runs in service.why(again)
    gate.open()
    ends = service.wait(runs, waits, again)
    assert [end["state"] for end in ends] == ["succeeded"] * 3
    assert service.log(waits) == f"{new}/sub\n".encode()
    shutil.copytree(new, service.root / "copy")
    refused = service.cli("repo", "relocate", "app", service.root / "copy", status=3)
    assert f"is a copy of app, which is still at {new}" in refused.err


def test_a_job_from_inside_of_a_hook_does_not_touch_its_repository(
    make_service: Callable[[str], LiveService],
) -> None:
    """The service is started there as well, with all that git gives to hooks."""
    service = make_service("")
    hooked, other = service.repository("hooked"), service.repository("other")
    hook = hooked / ".git" / "hooks" / "pre-commit"
    mine = f"{PROGRAM} --home {service.home}"
    job = "env | grep ^GIT_; git add -A && git commit -qm done && git status --short"
    hook.write_text(
        "#!/bin/sh\nset -e\n"
        f'test -n "$GIT_INDEX_FILE"\nexport GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD\n'
        f"{mine} serve --detach\n{mine} repo add {other}\n"
        f"{mine} submit --repo {other} -- sh -c '{job}' > {service.root}/job\n"
        f"cd {other}\n{PROGRAM} run -- git rev-parse --show-toplevel"
        f" > {service.root}/place\n"
    )
    hook.chmod(0o700)
    git(other, "config", "user.name", "Other")
    git(other, "config", "user.email", "other@example.invalid")
    (other / "new").write_text("x")
    (hooked / "staged").write_text("y")
    git(hooked, "add", "staged")
    git(hooked, "commit", "-qm", "hooked")
    service.find()
    submitted = (service.root / "job").read_text().strip()
    end = service.end_of(submitted)
    assert (end["state"], end["repo"]) == ("succeeded", "other")
    assert service.log(submitted) == b""
    assert (service.root / "place").read_text() == f"{other}\n"
    assert git(hooked, "log", "--format=%s") == "hooked\nfirst"
    assert git(hooked, "ls-tree", "--name-only", "HEAD") == "staged"
    assert git(hooked, "status", "--short") == ""
    assert not (hooked / ".git" / "forge-actors").exists()
    assert git(other, "log", "--format=%s") == "done\nfirst"


@contextmanager
def terminal() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts commands whose terminal is one that nobody types at."""
    ours, theirs = pty.openpty()

    def control() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    def start(*words: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [PROGRAM, *map(str, words)],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=control,  # noqa: PLW1509 - there is one thread
        )

    try:
        yield start
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_clone_that_wants_a_password_fails_at_once(
    make_service: Callable[[str], LiveService],
) -> None:
    """G-14: on a terminal too, where git would open that and wait for hours."""
    service = make_service("")
    file = service.root / "jobs.toml"
    with closed_server() as (address, _), terminal() as start:
        file.write_text(
            f'[[repository]]\nname = "app"\nclone = "{address}"\n'
            '[[job]]\nrepo = "app"\nargv = ["true"]\n'
        )
        with start("run", file) as running:
            out, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 2
    assert b"terminal prompts disabled" in out


def test_a_job_that_is_asked_for_a_password_ends_at_once(
    make_service: Callable[[str], LiveService],
) -> None:
    """G-14: its service was started from a terminal."""
    service = make_service("")
    with closed_server() as (address, _), terminal() as start:
        with start("--home", service.home, "serve", "--detach") as starting:
            starting.communicate(timeout=SECONDS)
        service.find()
        service.add("app")
        job = service.submit("--repo", "app", "--", "git", "ls-remote", address)
        end = service.end_of(job, SECONDS)
        assert (end["state"], end["exit_code"]) == ("failed", 128)
        held = service.bash("app", ": < /dev/tty")
        assert service.end_of(held)["state"] == "failed"
