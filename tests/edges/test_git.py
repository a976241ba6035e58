"""Which repository a folder belongs to: one identity, however it is spelt."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.edges.git.checkout import GitProgram, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.repositories import Checkout


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True
    )


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


async def look(path: Path | str) -> Checkout:
    return await GitProgram().checkout(str(path))


def identity(checkout: Checkout) -> tuple[int, int]:
    return checkout.device, checkout.inode


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "app")


async def test_a_work_tree_is_its_main_checkout(repo: Path) -> None:
    seen = await look(repo)
    assert seen.root == str(repo)
    assert seen.common_dir == str(repo / ".git")
    status = (repo / ".git").stat()
    assert identity(seen) == (status.st_dev, status.st_ino)
    assert seen.main


async def test_a_link_a_sub_folder_and_a_relative_path_are_the_same(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await look(repo)
    (tmp_path / "link").symlink_to(repo)
    (repo / "a" / "b").mkdir(parents=True)
    (tmp_path / "deep").symlink_to(repo / "a" / "b")
    for path in (tmp_path / "link", repo / "a" / "b", tmp_path / "deep"):
        assert await look(path) == expected
    monkeypatch.chdir(repo / "a")
    for relative in (".", "..", "b", "../a/b/../.."):
        assert await look(relative) == expected
    monkeypatch.setenv("HOME", str(tmp_path))
    assert await look("~/app") == expected


async def test_a_linked_worktree_is_another_checkout_of_the_same(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    main, linked = await look(repo), await look(tmp_path / "linked")
    assert identity(linked) == identity(main)
    assert linked.common_dir == main.common_dir
    assert linked.root == str(tmp_path / "linked")
    assert not linked.main


async def test_a_clone_is_another_repository(repo: Path, tmp_path: Path) -> None:
    await GitProgram().clone(str(repo), tmp_path / "clone")
    assert identity(await look(tmp_path / "clone")) != identity(await look(repo))


async def test_a_submodule_is_a_repository_of_its_own(
    repo: Path, tmp_path: Path
) -> None:
    part = make(tmp_path / "part")
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "--quiet", "add", str(part), "sub")
    seen = await look(repo / "sub")
    assert seen.root == str(repo / "sub")
    assert identity(seen) != identity(await look(repo))


async def test_a_repository_that_moved_keeps_its_identity(
    repo: Path, tmp_path: Path
) -> None:
    before = await look(repo)
    repo.rename(tmp_path / "moved")
    after = await look(tmp_path / "moved")
    assert identity(after) == identity(before)
    assert after.root == str(tmp_path / "moved")


async def test_a_bare_repository_is_refused(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    with pytest.raises(InvalidInput, match="bare repository"):
        await look(tmp_path / "bare.git")


async def test_a_work_tree_of_a_bare_repository_is_taken(
    repo: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"))
    seen = await look(tmp_path / "tree")
    assert seen.common_dir == str(tmp_path / "bare.git")


async def test_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no git work tree: not a git repository"):
        await look(tmp_path)


async def test_what_is_not_there_or_no_folder_is_refused(
    repo: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        await look(tmp_path / "nowhere")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="does not exist"):
        await look(tmp_path / "dangling")
    (repo / "file").write_text("x")
    with pytest.raises(InvalidInput, match="is no folder"):
        await look(repo / "file")


async def test_the_environment_of_a_git_hook_changes_nothing(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(tmp_path / "other")
    expected = await look(repo)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo.parent))
    monkeypatch.setenv("GIT_PREFIX", "sub/")
    assert await look(repo) == expected
    assert "GIT_DIR" not in clean_environment()
    assert clean_environment()["GIT_TERMINAL_PROMPT"] == "0"
    assert clean_environment()["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    "name",
    [
        "with spaces",
        "uml\u00e4ut",
        "-dash",
        "quote'\"",
        "line\u2028separator",
        "form\x0cfeed",
        os.fsdecode(b"caf\xe9"),
    ],
)
async def test_a_folder_may_have_a_strange_name(tmp_path: Path, name: str) -> None:
    repo = make(tmp_path / name)
    seen = await look(repo)
    assert seen.root == str(repo)
    assert seen.common_dir == str(repo / ".git")


async def test_a_line_break_in_a_name_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path / "two\nlines")
    with pytest.raises(InvalidInput, match="line break"):
        await look(repo)


async def test_a_machine_without_git_is_told_so(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match="git is not installed"):
        await look(repo)


async def test_what_cannot_be_cloned_says_why(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        await GitProgram().clone(str(tmp_path / "nothing"), tmp_path / "target")
    assert not (tmp_path / "target").exists()
