"""Repositories that moved: found, followed with their jobs, and never mistaken."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import NotFound, Refused
from tests.runtime.kit import make_repository
from tests.runtime.registry_kit import home, ids

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *words: str | Path) -> str:
    command = ["git", "-C", str(folder), *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def test_jobs_that_wait_follow_to_where_it_was_relocated(tmp_path: Path) -> None:
    old, new = make_repository(tmp_path / "a" / "app"), tmp_path / "b" / "deep" / "app"
    (old / "sub").mkdir()
    (old / "input").write_text("x")
    async with home(tmp_path) as case:
        repo = await case.add(old)
        told: list[str] = []
        case.registry.relocated = told.append
        plain = await case.submit("app", claims=["write:path:sub", "read:workspace"])
        below = await case.submit("app", cwd="sub", stdin=str(old / "input"))
        new.parent.mkdir(parents=True)
        old.rename(new)
        moved, note = await case.registry.relocate("app", str(new))
        assert note == f"it was moved here from {old}"
        assert (moved.id, moved.path) == (repo.id, str(new))
        assert moved.common_dir == str(new / ".git")
        assert case.reopened().named("app") == moved
        assert told == [repo.id]
        assert case.store.spec(plain).cwd == str(new)
        spec = case.store.spec(below)
        assert (spec.cwd, spec.stdin) == (str(new / "sub"), str(new / "input"))
        claims = {job.id: job.claims for job in case.store.load_jobs(repo.id)}
        assert claims[plain] == (
            Claim("read", "workspace", "", str(new)),
            Claim("write", "path", "sub", str(new)),
        )
        assert case.registry.gone(repo.id) is None
        again = await case.registry.relocate("app", str(new / "sub"))
        assert again == (moved, f"it is at {new} already")
        assert told == [repo.id]
        assert case.events()[-1] == "repository_moved"


async def test_what_is_relocated_must_be_it(tmp_path: Path) -> None:
    app, copy = make_repository(tmp_path / "app"), tmp_path / "copy"
    other = make_repository(tmp_path / "other")
    async with home(tmp_path) as case:
        repo = await case.add(app)
        await case.add(other)
        shutil.copytree(app, copy)
        with pytest.raises(Refused, match=r"copy is a copy of app, which is still at"):
            await case.registry.relocate("app", str(copy))
        with pytest.raises(Refused, match=r"other is not app: it does not have its id"):
            await case.registry.relocate("app", str(other))
        with pytest.raises(NotFound, match="no repository is called 'apt'"):
            await case.registry.relocate("apt", str(copy))
        second = await case.add(copy)
        shutil.rmtree(app)
        # It has the id of the first one too, but is registered as itself.
        with pytest.raises(Refused, match="copy is registered as 'copy'"):
            await case.registry.relocate("app", str(copy))
        assert [known.path for known in case.registry.all()] == [
            str(app),
            str(copy),
            str(other),
        ]
        await case.registry.remove(second)
        # The only one that is left with its id may be what somebody says it is.
        moved, _ = await case.registry.relocate("app", str(copy))
        assert (moved.id, moved.path) == (repo.id, str(copy))


@pytest.mark.parametrize("renamed", ["app", "in", "in/between"])
async def test_one_that_was_renamed_is_followed_before_anything_starts(
    renamed: str, tmp_path: Path
) -> None:
    """Itself, or a folder around it."""
    old = make_repository(tmp_path / "in" / "between" / "app")
    async with home(tmp_path) as case:
        repo = await case.add(old)
        job = await case.submit("app")
        assert case.registry.gone(repo.id) is None
        was = old if renamed == "app" else tmp_path / renamed
        was.rename(was.with_name("renamed"))
        new = was.with_name("renamed") / old.relative_to(was)
        assert case.registry.gone(repo.id) is None
        assert case.registry.named("app").path == str(new)
        assert case.store.spec(job).cwd == str(new)
        assert case.registry.gone(repo.id) is None
        await case.store.save([]).wait()
        assert case.events().count("repository_moved") == 1


async def test_another_one_in_its_place_is_not_it(tmp_path: Path) -> None:
    old, new = make_repository(tmp_path / "app"), tmp_path / "far" / "app"
    async with home(tmp_path) as case:
        repo = await case.add(old)
        assert case.registry.gone(repo.id) is None
        new.parent.mkdir()
        old.rename(new)
        make_repository(old)
        gone = f"another repository is in the folder of its repository: {old}"
        assert case.registry.gone(repo.id) == gone
        _, note = await case.registry.look("app")
        assert note == (f"{gone}; if you moved it: forge-actors repo relocate app PATH")
        with pytest.raises(NotFound, match="is not registered"):
            await case.found(old)
        assert (await case.found(new)).id == repo.id
        stranger = await case.add(old, "stranger")
        assert stranger.id != repo.id
        assert case.registry.gone(stranger.id) is case.registry.gone(repo.id) is None


async def test_one_that_was_renamed_keeps_its_name_when_its_place_is_taken(
    tmp_path: Path,
) -> None:
    old, new = make_repository(tmp_path / "app"), tmp_path / "renamed"
    async with home(tmp_path) as case:
        repo = await case.add(old)
        old.rename(new)
        make_repository(old)
        with pytest.raises(Refused, match=f"'app' is the name of {new}"):
            await case.add(old)
        assert case.registry.named("app").id == repo.id
        assert case.registry.named("app").path == str(new)


async def test_one_made_anew_on_the_same_inode_is_not_it(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        repo = await case.add(folder)
        assert case.registry.gone(repo.id) is None
        shutil.rmtree(folder)
        assert case.registry.gone(repo.id) == (
            f"the folder of its repository is gone: {folder}"
        )
        make_repository(folder)
        case.git.inodes[str(folder / ".git")] = repo.inode
        assert "another repository" in str(case.registry.gone(repo.id))


async def test_a_copy_beside_one_that_is_gone_is_named_and_not_taken(
    tmp_path: Path,
) -> None:
    app, copy = make_repository(tmp_path / "app"), tmp_path / "backup"
    async with home(tmp_path) as case:
        repo = await case.add(app)
        shutil.copytree(app, copy)
        shutil.rmtree(app)
        assert case.registry.gone(repo.id) is not None
        found, note = await case.registry.look("app")
        assert found.path == str(app)
        assert note == (
            f"the folder of its repository is gone: {app}; its id is in {copy}, which"
            " may be a copy; if you moved it: forge-actors repo relocate app"
            f" {copy}"
        )


async def test_looking_at_one_that_moved_repairs_it_and_says_so(tmp_path: Path) -> None:
    old, new = make_repository(tmp_path / "app"), tmp_path / "renamed"
    async with home(tmp_path) as case:
        await case.add(old)
        old.rename(new)
        repo, note = await case.registry.look("app")
        assert (repo.path, note) == (str(new), f"it was moved here from {old}")
        assert await case.registry.look("app") == (repo, None)
        assert (await case.registry.look(str(new)))[1] is None


async def test_linked_work_trees_find_it_again(tmp_path: Path) -> None:
    old, new = make_repository(tmp_path / "app"), tmp_path / "renamed"
    inside, outside = old / "trees" / "in", tmp_path / "out"
    for number, tree in enumerate((inside, outside)):
        git(old, "worktree", "add", "-q", tree, "-b", f"b{number}")
    async with home(tmp_path) as case:
        repo = await case.add(old)
        job = await case.submit(str(inside), claims=["write:workspace"])
        other = await case.submit(str(outside), claims=["write:workspace"])
        old.rename(new)
        assert case.registry.gone(repo.id) is None
        for tree in (new / "trees" / "in", outside):
            common = git(tree, "rev-parse", "--git-common-dir")
            assert common == str(new / ".git")
        listed = git(new, "worktree", "list", "--porcelain")
        assert str(inside) not in listed
        assert f"worktree {new}/trees/in\n" in listed
        assert "prunable" not in listed
        assert case.store.spec(job).cwd == str(new / "trees" / "in")
        assert case.store.spec(other).cwd == str(outside)
        checkouts = {j.id: j.claims[0].checkout for j in case.store.load_jobs(repo.id)}
        assert checkouts == {job: str(new / "trees" / "in"), other: str(outside)}


async def test_links_that_are_not_as_git_made_them_are_left_alone(
    tmp_path: Path,
) -> None:
    old, new = make_repository(tmp_path / "app"), tmp_path / "renamed"
    tree, precious = tmp_path / "tree", tmp_path / "precious"
    git(old, "worktree", "add", "-q", tree)
    (tree / ".git").unlink()
    precious.write_text(f"gitdir: {old}/.git/worktrees/tree\n")
    (tree / ".git").symlink_to(precious)
    async with home(tmp_path) as case:
        repo = await case.add(old)
        old.rename(new)
        assert case.registry.gone(repo.id) is None
        assert precious.read_text() == f"gitdir: {old}/.git/worktrees/tree\n"
        assert (tree / ".git").is_symlink()


async def test_another_work_tree_of_it_can_take_the_place_of_one_that_is_gone(
    tmp_path: Path,
) -> None:
    make_repository(tmp_path / "app")
    bare, one, two = (tmp_path / name for name in ("bare.git", "one", "two"))
    git(tmp_path, "clone", "-q", "--bare", tmp_path / "app", bare)
    for tree in (one, two):
        git(bare, "worktree", "add", "-q", tree, "-b", tree.name)
    async with home(tmp_path) as case:
        repo = await case.add(one)
        job = await case.submit("one")
        assert case.registry.gone(repo.id) is None
        shutil.rmtree(one)
        gone = f"the work tree of its repository is gone: {one}"
        assert case.registry.gone(repo.id) == gone
        one.mkdir()  # empty: git would take whatever is around it
        assert case.registry.gone(repo.id) == gone
        one.rmdir()
        await case.registry.relocate("one", str(two))
        assert case.registry.gone(repo.id) is None
        assert case.store.spec(job).cwd == str(two)


async def test_one_that_came_back_from_a_backup_is_the_same(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        repo = await case.add(folder)
        shutil.copytree(folder, tmp_path / "backup")
        shutil.rmtree(folder)
        case.git.inodes[str(folder / ".git")] = 4242
        (tmp_path / "backup").rename(folder)
        assert case.registry.gone(repo.id) is None
        assert case.registry.named("app").inode == 4242
        await case.store.save([]).wait()
        assert case.reopened().named("app").inode == 4242
        assert ids(folder) == [repo.id]


async def test_a_place_among_many_folders_is_found_without_end(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        repo = await case.add(folder)
        crowd = tmp_path / "crowd"
        crowd.mkdir()
        for number in range(2000):
            (crowd / str(number)).mkdir()
        (tmp_path / "link").symlink_to(folder)
        os.mkfifo(tmp_path / "pipe")
        folder.rename(crowd / "app")
        assert case.registry.gone(repo.id) is not None
        (crowd / "app").rename(tmp_path / "here")
        assert case.registry.gone(repo.id) is None
