"""Removing worktrees of which something is odd: nothing in them is lost either."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from forge_actors.domain.removal import Receipt
from forge_actors.edges.cleanup.worktrees.removal import Removal, Stays
from tests.edges.removal_kit import BRANCH, JOB, Lab, git
from tests.other_user import as_user, place_of_a_user


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


@pytest.mark.parametrize("closed", ["objects", "refs"])
def test_a_repository_that_cannot_be_written_loses_nothing(closed: str) -> None:
    with place_of_a_user() as place:

        def act() -> list[str]:
            os.environ["HOME"] = str(place)
            lab = Lab(place)
            lab.write(lab.tree, {"a.txt": "committed\n"})
            lab.commit(lab.tree, "work")
            git(lab.tree, "checkout", "-q", "--detach")
            lab.write(lab.tree, {"a.txt": "detached\n"})
            lab.commit(lab.tree, "detached")
            lab.write(lab.tree, {"a.txt": "staged\n"})
            git(lab.tree, "add", "a.txt")
            lab.write(lab.tree, {"a.txt": "dirty\n", "new": "untracked\n"})
            folders = [lab.repo / ".git" / closed]
            folders += [each for each in folders[0].rglob("*") if each.is_dir()]
            for folder in folders:
                folder.chmod(0o500)
            outcome = lab.remove()
            for folder in folders:
                folder.chmod(0o700)
            lab.check_store()
            assert outcome.gone, outcome
            return sorted(lab.contents())

        wanted = {"committed\n", "detached\n", "staged\n", "dirty\n", "untracked\n"}
        assert wanted <= set(as_user(act))


def test_work_that_was_merged_as_one_commit_does_not_keep_its_branch(lab: Lab) -> None:
    for number in (1, 2):
        lab.write(lab.tree, {f"{number}.txt": f"{number}\n"})
        lab.commit(lab.tree, f"part {number}")
    tip = git(lab.tree, "rev-parse", "HEAD")
    git(lab.repo, "merge", "-q", "--squash", BRANCH)
    git(lab.repo, "commit", "-q", "-m", "all of it")
    lab.write(lab.repo, {"1.txt": "gone on\n"})
    lab.commit(lab.repo, "gone on")
    assert lab.remove().gone
    gone(lab)
    assert f"refs/heads/{BRANCH}" not in lab.refs()
    assert lab.refs()[f"refs/forge-actors/kept/{JOB}/head"] == tip


def test_work_that_was_not_merged_keeps_its_branch(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "work\n"})
    tip = lab.commit(lab.tree, "work")
    lab.write(lab.repo, {"a.txt": "something else\n"})
    lab.commit(lab.repo, "something else")
    assert lab.remove().gone
    gone(lab)
    assert lab.refs()[f"refs/heads/{BRANCH}"] == tip


def test_a_branch_that_somebody_works_on_elsewhere_is_left_alone(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    other = lab.home.parent / "other"
    git(lab.repo, "worktree", "add", "-q", "--force", str(other), BRANCH)
    assert lab.remove().gone
    gone(lab)
    assert lab.refs()[f"refs/heads/{BRANCH}"] == lab.base
    assert git(other, "status", "--porcelain") == ""
    assert "dirty\n" in lab.contents()


def test_a_folder_that_a_person_deleted_is_noticed(lab: Lab) -> None:
    git(lab.tree, "checkout", "-q", "--detach")
    lab.write(lab.tree, {"a.txt": "committed\n"})
    lab.commit(lab.tree, "work")
    lab.write(lab.tree, {"a.txt": "staged\n"})
    git(lab.tree, "add", "a.txt")
    shutil.rmtree(lab.tree)
    assert lab.remove().gone
    gone(lab)
    assert {"committed\n", "staged\n"} <= lab.contents()


def test_without_its_repository_its_own_files_are_archived(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n", "new": "new\n"})
    shutil.rmtree(lab.repo)
    assert lab.remove().gone
    assert not lab.tree.exists()
    assert {"dirty\n", "new\n", "b\n"} <= lab.contents()


def test_another_repository_in_its_place_is_not_touched(lab: Lab) -> None:
    subject = lab.subject()
    shutil.rmtree(lab.repo)
    lab.repo.mkdir()
    git(lab.repo, "init", "-q")
    before = sorted(lab.repo.rglob("*"))
    lab.subject = lambda: subject._replace(inode=subject.inode + 1)  # type: ignore[method-assign]
    assert lab.remove().gone
    assert sorted(lab.repo.rglob("*")) == before
    assert "a\n" in lab.contents()


def test_a_file_that_changes_while_it_is_saved_is_saved_anew(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "first\n"})

    class Changing(Removal):
        def _kept(self) -> str:
            if (lab.tree / "a.txt").read_text() == "first\n":
                lab.write(lab.tree, {"a.txt": "second\n"})
            return super()._kept()

    assert lab.remove(kind=Changing).gone
    gone(lab)
    assert git(lab.repo, "show", f"{BRANCH}:a.txt") == "second"


def test_a_file_that_never_stands_still_keeps_its_worktree(lab: Lab) -> None:
    count = iter(range(100))

    class Changing(Removal):
        def _aside(self) -> str:
            lab.write(lab.tree, {"a.txt": f"{next(count)}\n"})
            return super()._aside()

    assert lab.remove(kind=Changing).reason == "it changes while it is saved"
    assert (lab.tree / "a.txt").read_text() == "2\n"
    assert lab.worktree.state == "ready"


def test_the_same_content_is_not_saved_twice(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})

    class Stopped(Removal):
        def _proven(self) -> str:
            super()._proven()
            raise Stays("not yet")

    for _ in range(2):
        assert lab.remove(kind=Stopped).reason == "not yet"
    [kept] = [oid for ref, oid in lab.refs().items() if "kept" in ref]
    assert lab.remove().gone
    assert git(lab.repo, "rev-parse", BRANCH) == kept


def test_what_a_person_has_locked_in_git_goes_only_by_force(lab: Lab) -> None:
    git(lab.repo, "worktree", "lock", str(lab.tree))
    assert lab.remove().reason == f"it is locked: git worktree unlock {lab.tree}"
    assert lab.tree.exists()
    assert lab.remove(force=True).gone
    gone(lab)


def test_a_repository_made_in_place_of_its_own_is_archived(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    (lab.tree / ".git").unlink()
    git(lab.tree, "init", "-q")
    lab.write(lab.tree, {"x": "committed elsewhere\n"})
    lab.commit(lab.tree, "elsewhere")
    (lab.tree / "x").unlink()
    assert lab.remove().gone
    gone(lab)
    assert "dirty\n" in lab.contents()
    subprocess.run(
        ["tar", "-xf", lab.preserved / "files.tar", "-C", lab.home], check=True
    )
    assert git(lab.home / "tree", "show", "HEAD:x") == "committed elsewhere"


def test_a_worktree_made_in_it_loses_no_commit(lab: Lab) -> None:
    inner = lab.tree / "inner"
    git(lab.tree, "worktree", "add", "-q", "--detach", str(inner))
    lab.write(inner, {"a.txt": "detached\n"})
    lab.commit(inner, "detached")
    lab.write(inner, {"a.txt": "dirty\n"})
    assert lab.remove().gone
    assert not lab.tree.exists()
    git(lab.repo, "worktree", "prune", "--expire=now")
    git(lab.repo, "gc", "-q", "--prune=now")
    assert {"detached\n", "dirty\n"} <= lab.contents()


def test_a_lock_that_a_killed_git_has_left_is_in_nobodys_way(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "not committed because of it\n"})
    entry = Path(git(lab.tree, "rev-parse", "--absolute-git-dir"))
    (entry / "index.lock").touch()
    (lab.repo / ".git" / "index.lock").touch()
    assert lab.remove().gone
    gone(lab)
    assert "not committed because of it\n" in lab.contents()
    assert (lab.repo / ".git" / "index.lock").exists()


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"\0" * 200])
def test_an_index_that_is_damaged_loses_nothing(lab: Lab, damage: bytes) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n", "new": "new\n", "x.log": "ignored\n"})
    entry = Path(git(lab.tree, "rev-parse", "--absolute-git-dir"))
    (entry / "index").write_bytes(damage)
    assert lab.remove().gone
    gone(lab)
    assert {"dirty\n", "new\n", "ignored\n"} <= lab.contents()


def test_a_head_that_is_damaged_loses_nothing(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "committed\n"})
    lab.commit(lab.tree, "work")
    lab.write(lab.tree, {"a.txt": "dirty\n", "new": "new\n"})
    entry = Path(git(lab.tree, "rev-parse", "--absolute-git-dir"))
    (entry / "HEAD").write_bytes(b"\0\0")
    assert lab.remove().gone
    gone(lab)
    assert {"committed\n", "dirty\n", "new\n"} <= lab.contents()
