"""Worktrees of jobs, with a real service that is killed, and a person at work."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.acceptance.service import LiveService, call

if TYPE_CHECKING:
    from tests.acceptance.service import Json


def git(folder: Path | str, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def app(service: LiveService) -> Path:
    folder = service.root / "app"
    found = Path(service.json("repo", "show", "app")["path"])
    assert found.name == folder.name
    (found / "file").write_text("first\n")
    service.git("-C", found, "add", "--all")
    service.git("-C", found, "commit", "-q", "-m", "a file")
    return found


def worktree(job: Json) -> Path:
    return Path(job["worktree"]["path"])


def test_twelve_at_once_in_one_repository_and_the_checkout_is_untouched(
    service: LiveService, app: Path
) -> None:
    (app / "file").write_text("being edited\n")
    lock = app / ".git" / "index.lock"
    lock.touch()  # an editor commits for as long as all of it takes
    script = "echo $FORGE_JOB_ID > new; git add new; git commit -qm new"
    jobs = [service.bash("app", script, "--isolate") for _ in range(12)]
    ends = service.wait(*jobs)
    assert {end["state"] for end in ends} == {"succeeded"}, ends
    assert lock.exists()
    lock.unlink()
    for end in ends:
        branch = end["worktree"]["branch"]
        assert git(app, "show", f"{branch}:new") == end["id"]
        assert git(app, "rev-parse", f"{branch}~1") == end["worktree"]["base_commit"]
    assert git(app, "status", "--porcelain") == "M file"
    assert git(app, "fsck", "--no-dangling") == ""


def test_a_service_killed_while_it_makes_one_goes_on_with_it(
    service: LiveService, app: Path
) -> None:
    """A filter holds the checkout of the files open."""
    gate, bell = service.gate(), service.bell()
    (app / ".gitattributes").write_text("file filter=held\n")
    service.git("-C", app, "add", "--all")
    service.git("-C", app, "commit", "-q", "-m", "held")
    held = f"sh -c '{bell.ring}; {gate.wait}; cat'"
    service.git("-C", app, "config", "filter.held.smudge", held)
    job = service.bash("app", "cat file", "--isolate")
    bell.wait()
    assert service.until(job, "worktree_making").data["branch"] == f"forge/{job}"
    service.kill()
    gate.open()  # the git program that is left ends as it would have
    service.git("-C", app, "config", "--unset", "filter.held.smudge")
    service.start()
    end = service.end_of(job)
    assert end["state"] == "succeeded", end
    assert service.log(job) == b"first\n"
    branches = git(app, "for-each-ref", "--format=%(refname:short)", "refs/heads/forge")
    assert branches.split() == [f"forge/{job}"]


def test_a_cancel_while_one_is_made_leaves_nothing(
    service: LiveService, app: Path
) -> None:
    bell = service.bell()
    mark = service.marker()
    (app / ".gitattributes").write_text("file filter=held\n")
    service.git("-C", app, "add", "--all")
    service.git("-C", app, "commit", "-q", "-m", "held")
    held = f"sh -c '{bell.ring}; sleep {mark}'"
    service.git("-C", app, "config", "filter.held.smudge", held)
    job = service.bash("app", "true", "--isolate")
    bell.wait()
    assert "as soon as its worktree is made" in service.why(job)
    service.cli("cancel", job, status=0)
    assert service.end_of(job)["state"] == "cancelled"
    assert git(app, "for-each-ref", "refs/heads/forge") == ""
    assert git(app, "worktree", "list").count("\n") == 0
    assert service.show(job)["worktree"]["state"] == "removed"


def test_an_interrupted_job_goes_on_in_its_worktree(
    service: LiveService, app: Path
) -> None:
    bell = service.bell()
    mark = service.marker()
    script = f"test -e once && exit; touch once; {bell.ring}; sleep {mark}"
    job = service.bash("app", script, "--isolate", "--replay", "safe")
    bell.wait()
    service.crash()
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["attempt"]) == ("succeeded", 2)
    assert (worktree(end) / "once").exists()


def test_a_worktree_that_vanished_never_lets_git_reach_the_checkout(
    service: LiveService, app: Path
) -> None:
    """Between two attempts it is replaced by a link to the user's own checkout."""
    bell = service.bell()
    mark = service.marker()
    script = f"{bell.ring}; sleep {mark}; git reset --hard; git clean -fdx"
    job = service.bash("app", script, "--isolate", "--replay", "safe")
    bell.wait()
    folder = worktree(service.show(job))
    service.crash()
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(app)
    (app / "file").write_text("being edited\n")
    service.start()
    end = service.end_of(job)
    assert end["error"]["code"] == "WORKER_START_FAILED", end
    assert (app / "file").read_text() == "being edited\n"


def test_a_job_file_may_isolate_its_jobs(service: LiveService, app: Path) -> None:
    file = service.root / "jobs.toml"
    file.write_text(
        f"""\
[[repository]]
name = "app"
path = "{app}"
[[job]]
repo = "app"
argv = ["sh", "-c", "git symbolic-ref HEAD"]
isolate = true
branch = "from-file/{{job}}"
"""
    )
    done = call("run", "--plain", file, status=0)
    assert "is kept, it has worktrees of its jobs" in done.err
    assert git(app, "for-each-ref", "refs/heads/from-file").count("\n") == 0
    batch = {"repo": "app", "argv": ["true"], "isolate": True, "base": "HEAD"}
    [job] = service.batch([batch])
    assert service.end_of(job)["worktree"]["base"] == "HEAD"


def test_a_lock_that_a_killed_git_left_in_the_checkout_is_removed_and_told(
    service: LiveService, app: Path
) -> None:
    """A commit whose editor is open gets no chance to remove its lock."""
    mark = service.marker()
    bell = service.bell()
    editor = f"sh -c '{bell.ring}; exec sleep {mark}'"
    script = f'(GIT_EDITOR="{editor}" git commit -a --allow-empty); exit 1'
    job = service.bash("app", f"echo $$ > pid; {script}", "--grace", "0s")
    bell.wait()
    lock = app / ".git" / "index.lock"
    assert lock.exists()
    lines = subprocess.check_output(["pgrep", "-f", "^git commit"], text=True).split()
    for pid in lines:
        if Path(f"/proc/{pid}/cwd").resolve() == app:
            # By their numbers: the job's own command names the editor too.
            editors = psutil.Process(int(pid)).children(recursive=True)
            subprocess.run(["kill", "-9", pid], check=True)
            for process in editors:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
    assert service.end_of(job)["state"] == "failed"
    told = service.until(job, "lock_removed")
    assert told.data["path"] == str(lock)
    later = service.bash("app", "git add pid")
    assert service.end_of(later)["state"] == "succeeded", service.log(later)


def test_the_lock_of_a_person_is_never_removed(service: LiveService, app: Path) -> None:
    lock = app / ".git" / "index.lock"
    lock.touch()
    before = lock.stat().st_mtime - 1.0
    os.utime(lock, (before, before))
    job = service.bash("app", "git add file")
    assert service.end_of(job)["state"] == "failed"
    told = service.until(job, "lock_kept")
    assert told.data["reason"] == "it did not come while the job ran"
    assert lock.exists()
