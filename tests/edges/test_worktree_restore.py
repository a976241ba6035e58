"""Making a worktree again: what was in it is in it, and uncommitted what was that."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.worktree_views import WorktreeRestored
from forge_actors.edges.cleanup.worktrees.restoring import restore
from tests.edges.removal_kit import BRANCH, Lab, git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def restored(lab: Lab, to: Path | None = None) -> WorktreeRestored:
    home = os.path.realpath(lab.home)
    return restore(home, lab.subject(), str(to or lab.tree))


def picture(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file below a folder, with its mode and what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = (0, os.readlink(path))
        elif path.is_file() and name != ".git":
            mode = stat.S_IMODE(path.stat().st_mode) & 0o100
            found[name] = (mode, path.read_text(errors="surrogateescape"))
    return found


def test_everything_is_as_it_was(lab: Lab) -> None:
    lab.write(lab.tree, {"c.txt": "committed\n", "d/e": "a file in a folder\n"})
    lab.commit(lab.tree, "work")
    lab.write(lab.tree, {"a.txt": "staged\n", "n.log": "ignored\n", "x/y": "new\n"})
    git(lab.tree, "add", "a.txt")
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    (lab.tree / "b.txt").unlink()
    (lab.tree / "run.sh").write_text("#!/bin/sh\n")
    (lab.tree / "run.sh").chmod(0o755)
    (lab.tree / "link").symlink_to("/nowhere")
    shutil.rmtree(lab.tree / "d")
    lab.write(lab.tree, {"d": "now a file\n"})
    before = picture(lab.tree), git(lab.tree, "status", "--porcelain")
    tip = git(lab.tree, "rev-parse", "HEAD")
    assert lab.remove().gone
    done = restored(lab)
    assert done.branch == BRANCH
    assert (picture(lab.tree), git(lab.tree, "status", "--porcelain")) == before
    assert git(lab.tree, "rev-parse", "HEAD") == tip
    assert git(lab.tree, "diff", "--cached", "--name-only") == "a.txt"
    lab.check_store()


def test_it_can_be_removed_and_restored_time_and_again(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n", "x.log": "ignored\n"})
    before = picture(lab.tree)
    for _ in range(3):
        assert lab.remove().gone
        restored(lab)
        lab.worktree = structs.replace(lab.worktree, state="ready", removed_at=None)
        assert picture(lab.tree) == before


def test_it_can_be_made_somewhere_else(lab: Lab, tmp_path: Path) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    assert lab.remove().gone
    done = restored(lab, tmp_path / "here")
    assert done.path == str(tmp_path / "here")
    assert (tmp_path / "here" / "a.txt").read_text() == "dirty\n"
    assert str(tmp_path / "here") in git(lab.repo, "worktree", "list")


def test_a_branch_that_has_gone_on_is_not_moved_back(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    assert lab.remove().gone
    git(lab.repo, "checkout", "-q", BRANCH)
    lab.write(lab.repo, {"b.txt": "gone on\n"})
    tip = lab.commit(lab.repo, "gone on")
    git(lab.repo, "checkout", "-q", "main")
    done = restored(lab)
    assert done.branch is None
    assert "has gone on" in " ".join(done.notes)
    assert git(lab.repo, "rev-parse", BRANCH) == tip
    assert (lab.tree / "a.txt").read_text() == "dirty\n"


def test_a_branch_that_was_deleted_is_there_again(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "committed\n"})
    tip = lab.commit(lab.tree, "work")
    assert lab.remove().gone
    git(lab.repo, "branch", "-D", BRANCH)
    git(lab.repo, "gc", "-q", "--prune=now")
    assert restored(lab).branch == BRANCH
    assert git(lab.tree, "rev-parse", "HEAD") == tip


def test_a_conflict_is_a_conflict_again(lab: Lab) -> None:
    lab.write(lab.repo, {"a.txt": "theirs\n"})
    lab.commit(lab.repo, "theirs")
    lab.write(lab.tree, {"a.txt": "ours\n"})
    lab.commit(lab.tree, "ours")
    git(lab.tree, "merge", "main", ok=False)
    before = git(lab.tree, "ls-files", "--stage"), (lab.tree / "a.txt").read_text()
    assert lab.remove().gone
    restored(lab)
    after = git(lab.tree, "ls-files", "--stage"), (lab.tree / "a.txt").read_text()
    assert after == before


def test_without_its_repository_its_files_are_there_again(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n", "new": "new\n"})
    before = picture(lab.tree)
    shutil.rmtree(lab.repo)
    assert lab.remove().gone
    done = restored(lab)
    assert done.branch is None
    assert picture(lab.tree) == before


def test_nothing_is_put_over_something(lab: Lab) -> None:
    with pytest.raises(Refused, match="is there already"):
        restored(lab)
    assert lab.remove().gone
    lab.tree.write_text("mine")
    with pytest.raises(Refused, match="is there already"):
        restored(lab)
    assert lab.tree.read_text() == "mine"


def test_what_was_never_removed_cannot_be_restored(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing was saved"):
        restored(lab, tmp_path / "here")
    assert not (lab.home / "preserved").exists()


def test_an_archive_that_is_damaged_restores_nothing(lab: Lab) -> None:
    lab.write(lab.tree, {"x.log": "ignored\n"})
    assert lab.remove().gone
    (lab.preserved / "ignored.tar").write_bytes(b"")
    with pytest.raises(Refused, match=r"ignored\.tar is not what was written"):
        restored(lab)
    assert not lab.tree.exists()
