"""Artifacts of a real service: whatever ends, they are whole or not there."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import PATIENCE, survivors, wait_until_ended
from tests.acceptance.service import call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService


def test_they_are_collected_while_no_service_is_there(
    make_service: Callable[[str], LiveService],
) -> None:
    """And nobody else gets the folder before: the next job only deletes."""
    service = make_service("")
    service.start()
    service.add("app")
    gate, bell = service.gate(), service.bell()
    script = f"{bell.ring}; {gate.wait}; echo made > made"
    job = service.bash("app", script, "--artifact=made", f"--after-job={bell.ring}")
    deletes = service.bash("app", "rm made")
    bell.wait()
    service.kill()
    gate.open()
    bell.wait()  # the command after the job ran, which is after the artifacts
    shown = json.loads(
        call("--home", service.home, "artifact", "list", job, "--json", status=0).out
    )
    # The store says that it runs; what is there nobody can say before the next start.
    assert shown["state"] in ("pending", "complete")
    service.start()
    end, other = service.wait(job, deletes)
    assert (end["state"], other["state"]) == ("succeeded", "succeeded")
    [file] = service.show(job)["artifacts"]["files"]
    assert (file["path"], file["bytes"]) == ("made", 5)


def test_the_next_job_finds_nothing_collected_half(service: LiveService) -> None:
    """Claims are held until all is copied: the second changes what the first left."""
    first = service.bash(
        "app", "for n in $(seq 200); do echo first > f$n; done", "--artifact=f*"
    )
    second = service.bash("app", "for n in $(seq 200); do echo second > f$n; done")
    service.wait(first, second)
    found = service.show(first)["artifacts"]
    assert (found["state"], len(found["files"])) == ("complete", 200)
    assert len({file["sha256"] for file in found["files"]}) == 1
    done = service.cli("artifact", "get", first, "f7", "--to", "-", status=0)
    assert done.raw == b"first\n"


class Opening:
    """Waits until somebody opens a file."""

    def __init__(self, path: Path) -> None:
        libc, in_open = ctypes.CDLL(None), 0x20
        self._fd = libc.inotify_init1(os.O_CLOEXEC)
        assert libc.inotify_add_watch(self._fd, os.fsencode(path), in_open) >= 0

    def wait(self) -> None:
        ready, _, _ = select.select([self._fd], [], [], PATIENCE)
        os.close(self._fd)
        assert ready, "nobody opened it"


@pytest.mark.parametrize("victim", ["agent", "collector"])
def test_what_was_killed_in_its_middle_is_incomplete_and_says_so(
    make_service: Callable[[str], LiveService], victim: str
) -> None:
    service = make_service("[artifacts]\nbytes = 1000000000000\n")
    service.start()
    service.add("app")
    gate, bell = service.gate(), service.bell()
    script = f"truncate -s 40G big; {bell.ring}; {gate.wait}"
    job = service.bash("app", script, "--artifact=big", "--replay=never")
    bell.wait()
    opening = Opening(service.root / "app" / "big")
    gate.open()
    opening.wait()
    [collector] = [int(line.split()[0]) for line in survivors(f'"job": "{job}"')]
    os.kill(service.agent_pid if victim == "agent" else collector, signal.SIGKILL)
    assert wait_until_ended(collector)
    end = service.end_of(job)
    assert end["state"] == "succeeded"
    found = service.show(job)["artifacts"]
    assert (found["state"], found["files"]) == ("incomplete", [])
    assert found["error"]
    refused = service.cli("artifact", "get", job, status=2)
    assert "incomplete" in refused.err


def test_an_isolated_job_leaves_those_of_its_worktree(service: LiveService) -> None:
    (service.root / "app" / "made").write_text("of the checkout")
    job = service.bash("app", "echo worktree > made", "--isolate", "--artifact=made")
    assert service.end_of(job)["state"] == "succeeded"
    done = service.cli("artifact", "get", job, "--to", "-", status=0)
    assert done.raw == b"worktree\n"
    assert (service.root / "app" / "made").read_text() == "of the checkout"


def test_settings_bound_them(make_service: Callable[[str], LiveService]) -> None:
    service = make_service("[artifacts]\nfiles = 2\nbytes = 100\n")
    service.start()
    service.add("app")
    script = "head -c 200 /dev/zero > big; for n in 1 2 3; do echo $n > f$n; done"
    job = service.bash("app", script, "--artifact=*")
    service.end_of(job)
    found = service.show(job)["artifacts"]
    assert [file["path"] for file in found["files"]] == ["f1", "f2"]
    assert found["left_out"] == [
        {"path": "big", "reason": "over the limit of 100 bytes in all"},
        {"path": "f3", "reason": "over the limit of 2 files"},
    ]
    (service.home / "settings.toml").write_text('[artifacts]\ntimeout = "0s"\n')
    refused = service.cli("settings", "reload")
    assert refused.status == 2
    assert "artifacts.timeout" in refused.err


def test_a_run_keeps_the_home_that_they_are_in(service: LiveService) -> None:
    file = service.root / "jobs.toml"
    text = f"""\
[[repository]]
name = "app"
path = "{service.json("repo", "show", "app")["path"]}"
[[job]]
repo = "app"
argv = ["sh", "-c", "echo made > made; rm -f made.not"]
"""
    file.write_text(text + 'artifacts = ["made"]\n')
    done = call("run", "--plain", file, status=0)
    said, _, home = done.err.strip().rpartition(": ")
    assert said.endswith("the home of this run is kept, it has artifacts of its jobs")
    [job] = json.loads(call("--home", home, "jobs", "--json", status=0).out)
    assert call("--home", home, "artifact", "get", job["id"], "--to=-").out == "made\n"
    call("--home", home, "purge", "--yes", status=0)
    service.end_of(service.bash("app", "true"))  # whose repository it still is
    file.write_text(text + 'artifacts = ["made.not"]\n')
    assert call("run", "--plain", file, status=0).err == ""
