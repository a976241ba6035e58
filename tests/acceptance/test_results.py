"""What jobs did in worktrees: told, shown as a patch, brought into the checkout."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import FakeAgent
from tests.acceptance.service import finished, started

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

BINARY = bytes(range(256))
WORK = """\
printf 'first\\nsecond\\n' > file; git commit -qam 'two lines'
git mv old new; git commit -qm 'another name'
printf '%s' "$BINARY" | base64 -d > picture
echo loose > loose
"""


def git(folder: Path | str, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def state(folder: Path) -> tuple[str, str, str]:
    return git(folder, "rev-parse", "HEAD"), git(folder, "status", "-s"), names(folder)


def names(folder: Path) -> str:
    return " ".join(sorted(path.name for path in folder.iterdir()))


@pytest.fixture
def app(service: LiveService) -> Path:
    folder = Path(service.json("repo", "show", "app")["path"])
    (folder / "file").write_text("first\n")
    (folder / "old").write_text("a text\nthat is\nlong enough\nto be known again\n")
    commit(service, folder, "two files")
    return folder


def commit(service: LiveService, folder: Path, message: str) -> None:
    service.git("-C", folder, "add", "--all")
    service.git("-C", folder, "commit", "-q", "-m", message)


def worked(service: LiveService, script: str) -> str:
    job = service.bash("app", script, "--isolate")
    assert service.end_of(job)["state"] == "succeeded", service.why(job)
    return job


def refusal(service: LiveService, *words: str) -> str:
    return service.cli(*words, status=3).err


def test_show_has_what_a_job_did_and_diff_gives_it_to_the_byte(
    service: LiveService, app: Path
) -> None:
    script = f"BINARY={base64.b64encode(BINARY).decode()}\n{WORK}"
    job = worked(service, script)
    before = git(service.show(job)["worktree"]["path"], "status", "--porcelain")
    result = service.show(job)["result"]
    assert result["branch"] == f"forge/{job}"
    assert result["base_commit"] == git(app, "rev-parse", "HEAD")
    assert [each["subject"] for each in result["commits"]] == [
        "another name",
        "two lines",
    ]
    assert (result["commit_count"], result["uncommitted"]) == (2, 2)
    files = {each["path"]: each for each in result["files"]}
    assert sorted(files) == ["file", "loose", "new", "picture"]
    assert files["new"]["renamed_from"] == "old"
    assert "added" not in files["picture"]
    assert (result["file_count"], result["added"], result["deleted"]) == (4, 2, 0)
    patch = service.cli("diff", job, status=0).raw
    copy = service.root / "copy"
    service.git("clone", "-q", app, copy)
    subprocess.run(["git", "-C", copy, "apply"], input=patch, check=True)
    assert (copy / "picture").read_bytes() == BINARY
    assert (copy / "loose").read_text() == "loose\n"
    assert not (copy / "old").exists()
    listed = service.cli("diff", job, "--name-only", status=0).out
    assert listed.split() == ["file", "loose", "new", "picture"]
    assert "4 files changed" in service.cli("diff", job, "--stat", status=0).out
    page = service.cli("show", job, status=0).out
    assert f"on forge/{job}: 2 commits, 4 files (+2 -0), 2 not committed" in page
    assert git(service.show(job)["worktree"]["path"], "status", "--porcelain") == before


def test_a_result_is_still_known_when_the_worktree_is_gone(
    service: LiveService, app: Path
) -> None:
    job = worked(service, "echo more >> file; git commit -qam more; echo x > loose")
    service.cli("worktree", "remove", job, status=0)
    result = service.show(job)["result"]
    assert sorted(each["path"] for each in result["files"]) == ["file", "loose"]
    assert "uncommitted" not in result
    assert "+more" in service.cli("diff", job, status=0).out
    assert "--commit-first" in refusal(service, "apply", job)
    service.cli("apply", job, "--commit-first", status=0)
    assert (app / "loose").read_text() == "x\n"
    assert git(app, "log", "-1", "--format=%P").split() == [
        git(app, "rev-parse", "HEAD~1")
    ]


def test_a_job_without_a_worktree_has_no_diff(service: LiveService, app: Path) -> None:
    job = service.bash("app", "true")
    assert service.end_of(job)["result"] is None
    assert "no worktree of its own" in refusal(service, "diff", job)
    assert "no worktree of its own" in refusal(service, "apply", job)
    assert app.exists()


def test_a_branch_is_brought_in_forward_by_a_merge_or_commit_by_commit(
    service: LiveService, app: Path
) -> None:
    jobs = [
        worked(service, f"echo {n} > n{n}; git add .; git commit -qm n{n}")
        for n in range(4)
    ]
    how = [
        service.json("apply", jobs[0], "--ff-only"),
        service.json("apply", jobs[1], "--cherry-pick"),
        service.json("apply", jobs[2]),
    ]
    assert [each["how"] for each in how] == ["fast-forward", "cherry-pick", "merge"]
    assert "gone on since" in refusal(service, "apply", jobs[3], "--ff-only")
    assert service.json("apply", jobs[3], "--merge")["commits"] == 1
    again = service.json("apply", jobs[3])
    assert (again["how"], again["by"]) == ("nothing", None)
    assert git(app, "status", "--porcelain") == ""
    assert git(app, "fsck", "--no-dangling") == ""
    assert [(app / f"n{n}").read_text() for n in range(4)] == [
        "0\n",
        "1\n",
        "2\n",
        "3\n",
    ]
    subjects = git(app, "log", "--first-parent", "--format=%s").splitlines()
    assert subjects[:4] == [
        f"Merge branch 'forge/{jobs[3]}' of job {jobs[3]}",
        f"Merge branch 'forge/{jobs[2]}' of job {jobs[2]}",
        "n1",
        "n0",
    ]
    events = [each for each in service.events() if each.kind == "job_applied"]
    assert [each.job for each in events] == jobs
    assert events[0].data["by"] == how[0]["by"]
    by = service.show(how[0]["by"])
    assert (by["kind"], by["state"]) == ("integration", "succeeded")


def test_nothing_is_changed_where_it_is_refused(
    service: LiveService, app: Path
) -> None:
    job = worked(
        service, "echo theirs > file; echo n > new; git add .; git commit -qm x"
    )
    (app / "file").write_text("ours\n")
    seen = state(app)
    assert "not clean: file" in refusal(service, "apply", job)
    commit(service, app, "ours")
    assert "both sides changed the same in file" in refusal(service, "apply", job)
    assert "changed the same" in refusal(service, "apply", job, "--cherry-pick")
    service.git("-C", app, "reset", "-q", "--hard", "HEAD~1")
    (app / "new").write_text("of the user\n")
    assert "new" in refusal(service, "apply", job)
    (app / "new").unlink()
    exclude = app / ".git" / "info" / "exclude"
    exclude.write_text("new\n")
    (app / "new").write_text("ignored, and of the user\n")
    assert "new" in refusal(service, "apply", job)
    (app / "new").unlink()
    (app / ".git" / "MERGE_HEAD").write_text(f"{seen[0]}\n")
    assert "a merge is going on" in refusal(service, "apply", job)
    (app / ".git" / "MERGE_HEAD").unlink()
    (app / ".git" / "index.lock").touch()
    assert "index.lock" in refusal(service, "apply", job)
    (app / ".git" / "index.lock").unlink()
    service.git("-C", app, "checkout", "-q", "--detach")
    assert "is on no branch" in refusal(service, "apply", job)
    service.git("-C", app, "checkout", "-q", "-")
    assert state(app) == (seen[0], "", seen[2])
    assert service.json("apply", job)["how"] == "fast-forward"


def test_it_is_refused_while_a_job_has_the_checkout_or_the_job_runs(
    service: LiveService, app: Path
) -> None:
    job = worked(service, "echo n > new; git add .; git commit -qm x")
    gate = service.gate()
    holder = service.bash("app", gate.wait)
    service.until(holder, "job_running")
    assert f"job {holder} runs in" in refusal(service, "apply", job)
    running = service.bash("app", gate.wait, "--isolate")
    service.until(running, "job_running")
    assert "only what has ended" in refusal(service, "apply", running)
    gate.open()
    service.wait(holder, running)
    assert not (app / "new").exists()
    service.cli("apply", job, status=0)
    assert (app / "new").exists()


def test_what_is_not_committed_is_refused_or_committed_first(
    service: LiveService, app: Path
) -> None:
    job = worked(service, "echo more >> file; echo loose > loose")
    assert "2 files are not committed" in refusal(service, "apply", job)
    assert service.json("apply", job, "--commit-first")["how"] == "fast-forward"
    assert (app / "loose").read_text() == "loose\n"
    folder = service.show(job)["worktree"]["path"]
    assert git(folder, "status", "--porcelain") == ""
    empty = worked(service, "true")
    assert "made no commit" in refusal(service, "apply", empty)


def test_a_killed_apply_leaves_the_checkout_as_after_it(
    service: LiveService, app: Path
) -> None:
    """The filter of the last file holds git in the middle of its work."""
    gate, bell = service.gate(), service.bell()
    (app / ".gitattributes").write_text("zz filter=held\n")
    commit(service, app, "held")
    job = worked(
        service, "echo a > aa; echo b > file; echo z > zz; git add .; git commit -qm x"
    )
    held = f"sh -c '{bell.ring}; {gate.wait}; cat'"
    service.git("-C", app, "config", "filter.held.smudge", held)
    with started("--home", service.home, "apply", job, "--json") as asking:
        bell.wait()
        service.git("-C", app, "config", "--unset", "filter.held.smudge")
        [by] = service.json("jobs", "--kind", "integration")
        assert (app / "file").read_text() == "b\n"
        pid = service.until(by["id"], "job_running").data["pid"]
        os.kill(pid, signal.SIGKILL)
        done = finished(asking)
    assert json.loads(done.out)["how"] == "fast-forward", done
    assert service.show(by["id"])["attempt"] == 2
    assert git(app, "status", "--porcelain") == ""
    assert git(app, "log", "-1", "--format=%s") == "x"
    assert (app / "zz").read_text() == "z\n"
    assert not list((app / ".git" / "forge-actors").glob("applying-*"))


def test_a_service_that_is_killed_does_not_stop_it(
    service: LiveService, app: Path
) -> None:
    gate, bell = service.gate(), service.bell()
    (app / ".gitattributes").write_text("zz filter=held\n")
    commit(service, app, "held")
    job = worked(service, "echo b > file; echo z > zz; git add .; git commit -qm x")
    held = f"sh -c '{bell.ring}; {gate.wait}; cat'"
    service.git("-C", app, "config", "filter.held.smudge", held)
    with started("--home", service.home, "apply", job) as asking:
        bell.wait()
        [by] = service.json("jobs", "--kind", "integration")
        service.kill()
        assert finished(asking).status != 0
    gate.open()
    service.start()
    assert service.end_of(by["id"])["state"] == "succeeded"
    assert git(app, "log", "-1", "--format=%s") == "x"
    assert git(app, "status", "--porcelain") == ""
    assert service.json("apply", job)["how"] == "nothing"


def test_what_an_agent_did_is_told_with_its_words_and_applied(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("acts", text="the answer", file="made.txt")
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    assert service.end_of(job)["state"] == "succeeded"
    result = service.show(job)["result"]
    assert (result["text"], result["usage"]["output_tokens"]) == ("the answer", 7)
    assert [each["path"] for each in result["files"]] == ["made.txt"]
    assert result["uncommitted"] == 1
    service.cli("apply", job, "--commit-first", status=0)
    folder = Path(service.json("repo", "show", "app")["path"])
    assert (folder / "made.txt").exists()
    fake.play("acts", text="more", file="more.txt")
    next_job = service.cli("continue", job, "Go on.", status=0).out.strip()
    assert service.end_of(next_job)["state"] == "succeeded"
    result = service.show(next_job)["result"]
    assert (result["text"], result["branch"]) == ("more", f"forge/{job}")
    assert [each["path"] for each in result["files"]] == ["made.txt", "more.txt"]
    service.cli("apply", next_job, "--commit-first", status=0)
    assert (folder / "more.txt").exists()
