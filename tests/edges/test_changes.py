"""What a job changed, read from real repositories with odd content and settings."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import NotFound, WorktreeFailed
from forge_actors.domain.results import MAX_DIFF, MAX_FILES
from forge_actors.edges.git import changes
from forge_actors.edges.git.changes import Place

if TYPE_CHECKING:
    from pathlib import Path

#: A name with a line break, one that is no UTF-8, and what could be taken for a count.
ODD = (b"a\nb", b"\xff\xfe", b"3\t4\tx", b":100644 100644 a b M")


class Ground:
    """A repository, and a worktree of a job beside it."""

    def __init__(self, root: Path) -> None:
        self.app, self.tree = root / "app", root / "tree"
        self.git(root, "init", "-q", "-b", "main", str(self.app))
        self.git(self.app, "config", "user.name", "A. U. Thor")
        self.git(self.app, "config", "user.email", "author@example.org")
        (self.app / "file").write_text("one\ntwo\n")
        (self.app / "moved").write_text("".join(f"{n}\n" for n in range(30)))
        self.git(self.app, "add", "--all")
        self.git(self.app, "commit", "-q", "-m", "base")
        self.base = self.git(self.app, "rev-parse", "HEAD")
        self.git(self.app, "worktree", "add", "-q", "-b", "forge/j", str(self.tree))

    def git(self, folder: Path, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], check=True, capture_output=True
        )
        return os.fsdecode(done.stdout.strip())

    def place(self, *, gone: bool = False) -> Place:
        common = str(self.app / ".git")
        folder = None if gone else changes.folder_of(str(self.tree), common)
        return Place("the-job", common, "forge/j", self.base, folder)

    def write(self, name: bytes, content: bytes) -> None:
        path = os.path.join(os.fsencode(self.tree), name)
        with open(path, "wb") as file:
            file.write(content)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


async def test_odd_names_are_counted_once_and_told(ground: Ground) -> None:
    for name in ODD:
        ground.write(name, b"line\n")
    ground.write(b"picture", bytes(range(256)))
    ground.git(ground.tree, "mv", "moved", "3\t4\t")
    ground.git(ground.tree, "commit", "-q", "-m", "moved")
    found = await changes.result(ground.place())
    assert (found.file_count, found.added, found.deleted) == (6, 4, 0)
    assert (found.commit_count, found.uncommitted, found.note) == (1, 5, None)
    files = {each.path: each for each in found.files}
    assert {"a\nb", "\\xff\\xfe", "3\t4\tx", ":100644 100644 a b M"} < set(files)
    assert files["3\t4\t"].renamed_from == "moved"
    assert (files["picture"].status, files["picture"].added) == ("A", None)
    assert files["a\nb"].added == 1


async def test_a_look_leaves_the_index_the_objects_and_the_refs_alone(
    ground: Ground,
) -> None:
    ground.write(b"loose", b"a text that nobody has seen before\n")
    ground.git(ground.tree, "rm", "-q", "--cached", "file")
    before = _files_of(ground.app / ".git")
    assert (await changes.result(ground.place())).uncommitted == 1
    assert b"nobody has seen" in await changes.diff(ground.place(), "patch")
    assert _files_of(ground.app / ".git") == before


def _files_of(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


async def test_what_the_user_has_set_for_diffs_changes_nothing(ground: Ground) -> None:
    ground.write(b"file", b"one\nthree\n")
    plain = await changes.diff(ground.place(), "patch")
    for name, value in {
        "color.ui": "always",
        "diff.external": "false",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.renames": "false",
        "diff.relative": "true",
        "diff.d.textconv": "false",
    }.items():
        ground.git(ground.app, "config", name, value)
    (ground.app / ".git" / "info" / "attributes").write_text("* diff=d\n")
    assert await changes.diff(ground.place(), "patch") == plain
    assert plain.startswith(b"diff --git a/file b/file\n")


async def test_a_file_that_cannot_be_read_is_told_and_never_left_out(
    ground: Ground,
) -> None:
    os.mkfifo(ground.tree / "pipe")  # git has no form for it, and ignores it
    inner = ground.tree / "inner"
    ground.git(ground.tree, "init", "-q", str(inner))  # a repository without a commit
    (inner / "x").write_text("x")
    with pytest.raises(WorktreeFailed, match="git add"):
        await changes.diff(ground.place(), "patch")
    found = await changes.result(ground.place())
    assert "what is not committed was not looked at" in str(found.note)
    assert (found.file_count, found.uncommitted) == (0, None)


async def test_lists_and_patches_are_bounded(ground: Ground) -> None:
    for number in range(MAX_FILES + 5):
        ground.write(b"n%d" % number, b"x\n")
    ground.write(b"big", b"".join(b"%d\n" % n for n in range(3_000_000)))
    found = await changes.result(ground.place())
    assert (len(found.files), found.file_count) == (MAX_FILES, MAX_FILES + 6)
    assert len(await changes.diff(ground.place(), "patch")) == MAX_DIFF + 1
    names = await changes.diff(ground.place(), "names")
    assert names.count(b"\n") == MAX_FILES + 6


async def test_what_is_gone_is_found_by_its_branch_a_kept_ref_or_a_receipt(
    ground: Ground,
) -> None:
    ground.write(b"file", b"other\n")
    ground.git(ground.tree, "commit", "-q", "-a", "-m", "other")
    tip = ground.git(ground.tree, "rev-parse", "HEAD")
    ground.git(ground.app, "worktree", "remove", "--force", str(ground.tree))
    assert await changes.tip_of(ground.place(gone=True)) == tip
    kept = "refs/forge-actors/kept/the-job/head"
    ground.git(ground.app, "update-ref", kept, tip)
    ground.git(ground.app, "branch", "-q", "-D", "forge/j")
    assert await changes.tip_of(ground.place(gone=True)) == tip
    ground.git(ground.app, "update-ref", "-d", kept)
    known = Place(
        "the-job", str(ground.app / ".git"), "forge/j", ground.base, None, tip
    )
    assert await changes.tip_of(known) == tip
    with pytest.raises(NotFound, match="the branch forge/j of job the-job is gone"):
        await changes.tip_of(ground.place(gone=True))
    found = await changes.result(ground.place(gone=True))
    assert (found.head, found.file_count) == (None, None)
    assert "is gone" in str(found.note)
