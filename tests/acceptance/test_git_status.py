"""The git status of repositories, kept fresh beside whoever works in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.acceptance.service import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService

    Json = dict[str, Any]

CHANGED = "repository_status_changed"

#: Works in a repository as an editor with a git extension does: it changes files, looks
#: at them, stages them and commits, and holds the lock of the index now and then.
_EDITOR = """
import os, pathlib, subprocess, sys
root = pathlib.Path(sys.argv[1])
lock = root / ".git" / "index.lock"
def git(*words):
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True)
    if done.returncode:
        sys.exit(f"git {words}: {done.stderr.decode()}")
for number in range(60):
    (root / "edited").write_text(f"{number}\\n")
    git("status", "--porcelain")
    git("add", "edited")
    git("commit", "-q", "-m", f"{number}")
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    (root / "edited").write_text(f"{number} again\\n")
    lock.unlink()
    git("stash", "-q")
    git("stash", "drop", "-q")
"""


def status(service: LiveService) -> Json:
    found: Json = service.json("repo", "show", "app")["status"]
    return found


def until(service: LiveService, holds: Callable[[Json], bool]) -> Json:
    """Ask until that holds of the status; the limit of the test is that of the wait."""
    while not holds(found := status(service)):
        pass
    return found


def test_a_job_and_an_edit_are_both_seen_soon(service: LiveService) -> None:
    app = service.add("app")
    first = until(service, lambda found: found["clean"] is not None)
    assert first["clean"]
    service.end_of(service.bash("app", "echo made >made"))
    event = service.until(None, CHANGED)
    assert event.data["clean"] is False
    assert until(service, lambda found: not found["stale"])["untracked"] == 1
    # Nobody says that this happens.
    (app / "edited").write_text("edited")
    seen = until(service, lambda found: found["untracked"] == 2)
    assert seen["age_ms"] < 60_000


def test_an_editor_at_work_never_fails_because_of_us(service: LiveService) -> None:
    app = service.add("app")
    editor = subprocess.Popen(
        [sys.executable, "-c", _EDITOR, str(app)], stderr=subprocess.PIPE
    )
    jobs = []
    while editor.poll() is None:
        jobs += [service.bash("app", f"echo {len(jobs)} >from-job", "--read-only")]
        service.end_of(jobs[-1])
    assert editor.stderr is not None
    with editor.stderr as errors:
        assert (editor.returncode, errors.read()) == (0, b"")
    assert len(jobs) > 3
    settled = until(service, lambda found: not found["stale"])
    assert (settled["untracked"], settled["staged"]) == (1, 0)
    assert settled["head"] == head(app)


def head(path: Path) -> str:
    words = ["git", "-C", str(path), "rev-parse", "HEAD"]
    return (
        subprocess.run(words, check=True, capture_output=True).stdout.decode().strip()
    )


def test_a_lock_that_is_held_for_long_holds_nobody_up(service: LiveService) -> None:
    app = service.add("app")
    until(service, lambda found: found["clean"] is not None)
    lock = app / ".git" / "index.lock"
    lock.write_text("the editor's")
    before = lock.stat()
    service.end_of(service.bash("app", "echo made >made"))
    service.until(None, CHANGED)
    after = lock.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_a_killed_service_did_not_look_at_is_taken_up_by_the_next_one(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("[status]\nenabled = false\n")
    service.start()
    service.add("app")
    service.end_of(service.bash("app", "echo made >made"))
    service.kill()
    shown = service.json("repo", "show", "app")["status"]
    assert (shown["stale"], shown["clean"]) == (True, None)
    (service.home / "settings.toml").write_text(SETTINGS)
    service.start()
    assert until(service, lambda found: not found["stale"])["untracked"] == 1


def test_looking_can_be_switched_off_while_the_service_runs(
    service: LiveService,
) -> None:
    service.add("app")
    until(service, lambda found: found["clean"] is not None)
    settings = service.home / "settings.toml"
    settings.write_text(f"{SETTINGS}[status]\nenabled = false\n")
    service.cli("settings", "reload", status=0)
    service.end_of(service.bash("app", "echo made >made"))
    assert until(service, lambda found: found["stale"])["untracked"] == 0
    settings.write_text(f"{SETTINGS}[status]\nsafety_round = '1s'\n")
    service.cli("settings", "reload", status=0)
    assert until(service, lambda found: not found["stale"])["untracked"] == 1


def test_a_repository_that_is_gone_is_shown_with_its_age_and_the_reason(
    service: LiveService,
) -> None:
    app = service.add("app")
    until(service, lambda found: found["clean"] is not None)
    shutil.rmtree(app)
    job = service.submit("--repo", "app", "--", "true")
    service.end_of(job)
    seen = until(service, lambda found: "failed" in (found["reason"] or ""))
    assert seen["clean"], "what was known is still shown"
    assert seen["stale"]
    assert seen["age_ms"] > 0


def test_a_service_started_by_a_hook_looks_at_the_right_repository(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    other = service.repository("other")
    service.git("-C", other, "checkout", "-q", "-b", "wrong")
    service.start_patched(f"import os; os.environ['GIT_DIR'] = {str(other / '.git')!r}")
    service.add("app")
    seen = until(service, lambda found: found["clean"] is not None)
    assert seen["branch"] != "wrong"
