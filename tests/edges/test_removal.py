"""Removing a worktree: what is in it is found again, wherever it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from forge_actors.domain.removal import STEPS, Limits, Receipt
from tests.edges.removal_kit import BRANCH, JOB, Lab, git


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def receipt(lab: Lab) -> Receipt:
    path = lab.preserved / "receipt.json"
    assert path.stat().st_mode & 0o777 == 0o600
    return msgspec.json.decode(path.read_bytes(), type=Receipt)


def gone(lab: Lab) -> None:
    """Everything that says that the worktree is no more."""
    assert not os.path.lexists(lab.tree)
    assert lab.worktree.state == "removed"
    assert str(lab.tree) not in git(lab.repo, "worktree", "list")
    assert [taken.step for taken in receipt(lab).steps][-1] == "closed"
    lab.check_store()


def test_a_worktree_with_nothing_of_its_own_goes_with_its_branch(lab: Lab) -> None:
    assert lab.remove().gone
    gone(lab)
    assert [taken.step for taken in receipt(lab).steps] == list(STEPS)
    assert {path.name for path in lab.preserved.iterdir()} == {
        "receipt.json",
        "git.tar",
    }
    assert lab.refs() == {"refs/heads/main": lab.base}


def test_what_was_not_committed_is_a_commit_on_its_branch(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "changed\n", "new/c.txt": "new\n"})
    (lab.tree / "b.txt").unlink()
    (lab.tree / "link").symlink_to("/etc/passwd")
    (lab.tree / "run.sh").write_text("#!/bin/sh\n")
    (lab.tree / "run.sh").chmod(0o755)
    assert lab.remove().gone
    gone(lab)
    tip = git(lab.repo, "rev-parse", BRANCH)
    assert git(lab.repo, "rev-parse", f"{tip}^") == lab.base
    assert git(lab.repo, "show", f"{tip}:a.txt") == "changed"
    assert git(lab.repo, "show", f"{tip}:new/c.txt") == "new"
    assert git(lab.repo, "show", f"{tip}:link") == "/etc/passwd"
    listed = git(lab.repo, "ls-tree", tip)
    assert "100755" in listed
    assert "120000" in listed
    assert "b.txt" not in listed
    assert lab.refs()[f"refs/forge-actors/kept/{JOB}/checkpoint"] == tip
    assert f"Forge-Actors-Checkpoint: {JOB}" in git(lab.repo, "log", "-1", BRANCH)


def test_what_was_staged_and_is_something_else_by_now_is_kept_too(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "staged\n"})
    git(lab.tree, "add", "a.txt")
    lab.write(lab.tree, {"a.txt": "in the tree\n"})
    assert lab.remove().gone
    gone(lab)
    assert git(lab.repo, "show", f"{BRANCH}:a.txt") == "in the tree"
    assert git(lab.repo, "show", f"{BRANCH}^2:a.txt") == "staged"


def test_the_branch_can_be_deleted_by_hand_and_nothing_is_lost(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "committed\n"})
    lab.commit(lab.tree, "work")
    assert lab.remove().gone
    gone(lab)
    git(lab.repo, "branch", "-D", BRANCH)
    assert "committed\n" in lab.contents()


def test_a_file_that_git_was_told_not_to_look_at_is_saved(lab: Lab) -> None:
    git(lab.tree, "update-index", "--assume-unchanged", "a.txt")
    git(lab.tree, "update-index", "--skip-worktree", "b.txt")
    lab.write(lab.tree, {"a.txt": "hidden\n", "b.txt": "skipped\n"})
    assert lab.remove().gone
    assert {"hidden\n", "skipped\n"} <= lab.contents()


def test_a_sparse_checkout_deletes_nothing(lab: Lab) -> None:
    git(lab.tree, "update-index", "--skip-worktree", "b.txt")
    (lab.tree / "b.txt").unlink()
    lab.write(lab.tree, {"a.txt": "changed\n"})
    assert lab.remove().gone
    assert git(lab.repo, "show", f"{BRANCH}:b.txt") == "b"


def test_ignored_files_are_archived_but_not_what_can_be_made_again(lab: Lab) -> None:
    lab.write(lab.tree, {".gitignore": "*.log\nnode_modules/\n__pycache__/\n"})
    lab.commit(lab.tree, "ignore")
    lab.write(
        lab.tree,
        {"out.log": "valuable\n", "node_modules/x/y.js": "js\n", "__pycache__/m": "m"},
    )
    assert lab.remove().gone
    gone(lab)
    found = lab.contents()
    assert "valuable\n" in found
    assert not {"js\n", "m"} & found


def test_too_many_ignored_files_stay_unless_they_are_given_up(lab: Lab) -> None:
    lab.write(lab.tree, {"big.log": "x" * 5000, "small.log": "small\n", "new": "new\n"})
    limits = Limits(archive_bytes=1000)
    outcome = lab.remove(limits=limits)
    assert not outcome.gone
    assert "worktrees.archive_bytes" in (outcome.reason or "")
    assert lab.worktree.reason == outcome.reason
    assert lab.worktree.state == "ready"
    assert (lab.tree / "big.log").exists()
    assert lab.remove(limits=limits, force=True).gone
    gone(lab)
    assert {"small\n", "new\n"} <= lab.contents()
    assert receipt(lab).given_up == 1


def test_a_detached_head_and_all_that_it_was_are_kept(lab: Lab) -> None:
    git(lab.tree, "checkout", "-q", "--detach")
    lab.write(lab.tree, {"a.txt": "left behind\n"})
    lab.commit(lab.tree, "left behind")
    git(lab.tree, "checkout", "-q", BRANCH)
    git(lab.tree, "checkout", "-q", "--detach")
    lab.write(lab.tree, {"a.txt": "detached\n"})
    lab.commit(lab.tree, "detached")
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    assert lab.remove().gone
    gone(lab)
    assert {"left behind\n", "detached\n", "dirty\n"} <= lab.contents()


def test_a_rebase_in_the_middle_is_kept_with_its_conflict(lab: Lab) -> None:
    lab.write(lab.repo, {"a.txt": "theirs\n"})
    lab.commit(lab.repo, "theirs")
    lab.write(lab.tree, {"a.txt": "ours\n"})
    lab.commit(lab.tree, "ours")
    lab.write(lab.tree, {"b.txt": "second\n"})
    lab.commit(lab.tree, "second")
    git(lab.tree, "rebase", "main", ok=False)
    assert "rebase in progress" in git(lab.tree, "status")
    lab.write(lab.tree, {"a.txt": "half resolved\n", "untracked": "untracked\n"})
    assert lab.remove().gone
    gone(lab)
    assert {"ours\n", "second\n", "half resolved\n", "untracked\n"} <= lab.contents()


def test_a_stash_made_in_it_is_still_there(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "stashed\n"})
    git(lab.tree, "stash")
    assert lab.remove().gone
    gone(lab)
    assert git(lab.repo, "show", "stash@{0}:a.txt") == "stashed"


def test_what_the_user_has_set_up_to_run_does_not_run(lab: Lab, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = lab.repo / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-index-change", "pre-commit"):
        hook = hook.with_name(name)
        hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        hook.chmod(0o755)
    for key, value in (
        ("core.fsmonitor", f"echo fsmonitor >> {ran}; false"),
        ("filter.f.clean", f"echo clean >> {ran}; tr a-z A-Z"),
        ("filter.f.smudge", f"echo smudge >> {ran}; cat"),
        ("commit.gpgSign", "true"),
        ("gpg.program", f"echo gpg >> {ran}"),
    ):
        git(lab.repo, "config", key, value)
    lab.write(lab.tree, {".gitattributes": "*.f filter=f\n", "x.f": "as it is\n"})
    ran.unlink(missing_ok=True)  # what the test itself has set off
    assert lab.remove().gone
    assert not ran.exists()
    gone(lab)
    assert git(lab.repo, "show", f"{BRANCH}:x.f") == "as it is"


def test_a_file_whose_filter_stores_less_of_it_is_archived(lab: Lab) -> None:
    git(lab.repo, "config", "filter.f.clean", "head -c 3")
    lab.write(lab.tree, {".gitattributes": "*.f filter=f\n", "x.f": "all of it\n"})
    lab.commit(lab.tree, "filtered")
    assert git(lab.tree, "status", "--porcelain") == ""
    assert lab.remove().gone
    assert "all of it\n" in lab.contents()


def test_without_a_name_of_the_user_ours_is_on_the_checkpoint(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write(lab.tree, {"a.txt": "changed\n"})
    assert lab.remove().gone
    names = git(lab.repo, "log", "-1", "--format=%an <%ae>", BRANCH)
    assert names == "Forge Actors <forge-actors@localhost>"


def test_a_repository_in_it_is_archived_whole(lab: Lab) -> None:
    inner = lab.tree / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    lab.write(inner, {"x": "inner committed\n"})
    lab.commit(inner, "inner")
    lab.write(inner, {"y": "inner dirty\n"})
    assert lab.remove().gone
    gone(lab)
    assert "inner dirty\n" in lab.contents()
    git(lab.home, "init", "-q", "--bare", "again.git")
    subprocess.run(
        ["tar", "-xf", lab.preserved / "files.tar", "-C", lab.home], check=True
    )
    assert git(lab.home / "tree" / "inner", "show", "HEAD:x") == "inner committed"


def test_a_submodule_with_commits_of_its_own_is_archived(
    lab: Lab, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    lab.write(origin, {"x": "origin\n"})
    lab.commit(origin, "origin")
    add = ("submodule", "--quiet", "add", str(origin), "sub")
    git(lab.tree, "-c", "protocol.file.allow=always", *add)
    lab.commit(lab.tree, "a submodule")
    lab.write(lab.tree / "sub", {"x": "in the submodule\n"})
    inner = lab.commit(lab.tree / "sub", "inside")
    assert lab.remove().gone
    gone(lab)
    subprocess.run(
        ["tar", "-xf", lab.preserved / "files.tar", "-C", lab.home], check=True
    )
    module = lab.home / "git" / "modules" / "sub"
    show = (f"--git-dir={module}", "--work-tree=/", "show", f"{inner}:x")
    assert git(lab.home, *show) == "in the submodule"
    assert git(lab.repo, "rev-parse", f"{BRANCH}:sub") == inner


def test_the_other_kind_of_repository_is_no_different(tmp_path: Path) -> None:
    lab = Lab(tmp_path, object_format="sha256")
    lab.write(lab.tree, {"a.txt": "changed\n", "new": "new\n"})
    assert lab.remove().gone
    gone(lab)
    assert {"changed\n", "new\n"} <= lab.contents()


def test_names_that_are_no_text_are_saved(lab: Lab) -> None:
    name = os.fsdecode(b"n\xff\n'\"\t")
    lab.write(lab.tree, {name: "odd\n", f"{name}.log": "odd and ignored\n"})
    assert lab.remove().gone
    gone(lab)
    assert {"odd\n", "odd and ignored\n"} <= lab.contents()


def test_nothing_goes_while_a_process_stands_in_it(lab: Lab) -> None:
    with subprocess.Popen(["cat"], cwd=lab.tree, stdin=subprocess.PIPE) as child:
        outcome = lab.remove()
        assert not outcome.gone
        assert outcome.reason == f"process {child.pid} (cat) uses it"
        child.communicate()
    assert lab.remove().gone


def test_a_program_that_runs_from_it_does_not_remove_it(lab: Lab) -> None:
    script = lab.tree / "serve.py"
    lab.write(lab.tree, {"serve.py": "import sys; print(1, flush=1); sys.stdin.read()"})
    with subprocess.Popen(
        [sys.executable, script],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert not lab.remove().gone
        child.communicate()
    assert lab.remove().gone


def test_nothing_goes_while_its_job_runs(lab: Lab) -> None:
    lab.facts.job = "running"
    assert lab.remove().reason == "a job in it is running"
    assert lab.tree.exists()


def test_hundreds_of_files_are_all_on_the_branch(lab: Lab) -> None:
    names = [f"d{number % 7}/{number}.txt" for number in range(300)]
    lab.write(lab.tree, {name: f"{name}\n" for name in names})
    (lab.tree / "link").symlink_to("a.txt")
    assert lab.remove().gone
    gone(lab)
    git(lab.repo, "checkout", "-q", BRANCH)
    assert all((lab.repo / name).read_text() == f"{name}\n" for name in names)
    assert (lab.repo / "link").readlink() == Path("a.txt")
