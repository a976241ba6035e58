"""The registry: a repository stays itself wherever it goes, and no other becomes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, NotFound, Refused, StoreFailed
from forge_actors.edges.git.ids import MAX_IDS
from tests.runtime.kit import make_repository
from tests.runtime.registry_kit import home, id_file, ids


async def test_an_id_is_written_for_the_owner_only(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        repo = await case.add(folder)
        assert ids(folder) == [repo.id]
        assert id_file(folder).stat().st_mode & 0o777 == 0o600
        assert id_file(folder).parent.stat().st_mode & 0o777 == 0o700
        assert list(id_file(folder).parent.iterdir()) == [id_file(folder)]
        assert await case.note(folder) == "already registered as 'app'"
        assert ids(folder) == [repo.id]


async def test_a_reused_inode_is_another_repository(tmp_path: Path) -> None:
    z1, z2 = make_repository(tmp_path / "z1"), make_repository(tmp_path / "z2")
    async with home(tmp_path) as case:
        first = await case.add(z1)
        shutil.rmtree(z1)
        case.git.inodes[str(z2 / ".git")] = first.inode
        with pytest.raises(NotFound, match="z2 is not registered"):
            await case.found(z2)
        repo, note = await case.registry.add(str(z2), None)
        assert (repo.name, note) == ("z2", None)
        assert repo.id != first.id
        assert (await case.found(z2)).id == repo.id
        # The first one may be on another disk: it keeps its name, and nothing else.
        for registry in (case.registry, case.reopened()):
            assert [known.name for known in registry.all()] == ["z1", "z2"]
            lost = registry.named("z1")
            assert (lost.id, lost.path) == (first.id, str(z1))
            assert lost.inode < 0
            assert (await registry.find(str(z2)))[0].id == repo.id
        # Its id finds it.
        back = make_repository(tmp_path / "back")
        case.git.add_id(str(back / ".git"), first.id)
        assert (await case.found(back)).id == first.id


async def test_two_lost_registrations_do_not_collide(tmp_path: Path) -> None:
    async with home(tmp_path) as case:
        inode = 4242
        for name in ("a", "b", "c"):
            folder = make_repository(tmp_path / name)
            case.git.inodes[str(folder / ".git")] = inode
            assert (await case.add(folder)).name == name
            shutil.rmtree(folder)
        places = [(repo.device, repo.inode) for repo in case.reopened().all()]
        assert places[:2] == [(-1, -1), (-1, -2)]
        assert places[2][1] == inode


@pytest.mark.parametrize("reused", [True, False])
async def test_one_made_anew_in_its_place_takes_its_name(
    reused: bool, tmp_path: Path
) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        first = await case.add(folder)
        shutil.rmtree(folder)
        make_repository(folder)
        case.git.inodes[str(folder / ".git")] = first.inode if reused else 4242
        repo, note = await case.registry.add(str(folder), None)
        assert repo.id != first.id
        assert note == "'app', which was here before, is gone"
        assert case.registry.all() == case.reopened().all() == [repo]
        assert case.events() == [
            "repository_added",
            "repository_removed",
            "repository_added",
        ]


@pytest.mark.parametrize("reused", [True, False])
async def test_one_with_jobs_keeps_its_name_when_its_place_is_taken(
    reused: bool, tmp_path: Path
) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        first = await case.add(folder)
        await case.submit("app")
        shutil.rmtree(folder)
        make_repository(folder)
        case.git.inodes[str(folder / ".git")] = first.inode if reused else 4242
        with pytest.raises(Refused, match="was here before and has 1 jobs"):
            await case.add(folder)
        repo = await case.add(folder, "app-2")
        assert (await case.found(folder)).id == repo.id
        assert case.registry.named("app").id == first.id
        assert [known.name for known in case.reopened().all()] == ["app", "app-2"]


@pytest.mark.parametrize("inode", [None, 4242])
async def test_one_that_moved_is_found_where_it_is(
    inode: int | None, tmp_path: Path
) -> None:
    """On one disk it keeps its inode, on another one it gets a new one."""
    old, new = make_repository(tmp_path / "mv1"), tmp_path / "mv2"
    async with home(tmp_path) as case:
        first = await case.add(old)
        old.rename(new)
        if inode is not None:
            case.git.inodes[str(new / ".git")] = inode
        note = f"already registered as 'mv1'; it was moved here from {old}"
        assert await case.note(new) == note
        assert await case.note(new) == "already registered as 'mv1'"
        for registry in (case.registry, case.reopened()):
            [repo] = registry.all()
            assert (repo.id, repo.name, repo.path) == (first.id, "mv1", str(new))
            assert repo.common_dir == str(new / ".git")
            assert repo.inode == inode or first.inode
        assert case.events() == ["repository_added", "repository_moved"]
        [job] = {await case.submit("mv1")}
        assert case.store.spec(job).cwd == str(new)


async def test_a_job_submitted_by_path_finds_one_that_moved(tmp_path: Path) -> None:
    old, new = make_repository(tmp_path / "mv1"), tmp_path / "mv2"
    async with home(tmp_path) as case:
        await case.add(old)
        old.rename(new)
        job = await case.submit(str(new))
        assert case.store.spec(job).cwd == str(new)
        assert case.registry.named("mv1").path == str(new)


async def test_one_that_moved_onto_the_inode_of_another(tmp_path: Path) -> None:
    gone, old = make_repository(tmp_path / "gone"), make_repository(tmp_path / "old")
    new = tmp_path / "new"
    async with home(tmp_path) as case:
        lost, moved = await case.add(gone), await case.add(old)
        shutil.rmtree(gone)
        old.rename(new)
        case.git.inodes[str(new / ".git")] = lost.inode
        assert (await case.found(new)).id == moved.id
        assert [repo.name for repo in case.reopened().all()] == ["gone", "old"]


async def test_a_copy_is_another_repository(tmp_path: Path) -> None:
    app, copy = make_repository(tmp_path / "app"), tmp_path / "copy"
    async with home(tmp_path) as case:
        original = await case.add(app)
        shutil.copytree(app, copy)
        with pytest.raises(NotFound, match="copy is not registered"):
            await case.found(copy)
        repo, note = await case.registry.add(str(copy), None)
        assert (repo.name, note) == ("copy", None)
        assert repo.id != original.id
        assert ids(copy)[0] == repo.id
        assert ids(app) == [original.id]
        assert (await case.found(app)).id == original.id
        assert (await case.found(copy)).id == repo.id
        # Both on the way to another disk, each is still itself.
        app.rename(tmp_path / "app-2")
        copy.rename(tmp_path / "copy-2")
        case.git.inodes[str(tmp_path / "app-2" / ".git")] = 4242
        case.git.inodes[str(tmp_path / "copy-2" / ".git")] = 4243
        assert (await case.found(tmp_path / "copy-2")).id == repo.id
        assert (await case.found(tmp_path / "app-2")).id == original.id


async def test_a_worktree_and_a_link_are_the_same_repository(tmp_path: Path) -> None:
    app, tree, link = make_repository(tmp_path / "app"), tmp_path / "t", tmp_path / "l"
    command = ["git", "-C", str(app), "worktree", "add", "-q", str(tree)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221
    link.symlink_to(app)
    async with home(tmp_path) as case:
        repo = await case.add(tree, "app")
        assert repo.path == str(tree)
        for folder in (app, link, tree):
            assert await case.found(folder) == repo
            assert await case.note(folder) == "already registered as 'app'"
        # Without the work tree it was registered with, it has its first one.
        shutil.rmtree(tree)
        assert (await case.found(link)).path == str(app)
        assert case.reopened().named("app").path == str(app)


async def test_one_that_moved_and_is_named_by_a_worktree(tmp_path: Path) -> None:
    app, tree, new = make_repository(tmp_path / "app"), tmp_path / "t", tmp_path / "new"
    command = ["git", "-C", str(app), "worktree", "add", "-q", str(tree)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221
    async with home(tmp_path) as case:
        await case.add(app)
        app.rename(new)
        command = ["git", "-C", str(new), "worktree", "repair", str(tree)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221
        repo, checkout = await case.registry.find(str(tree))
        assert repo.path == str(new)
        assert checkout is not None
        assert checkout.root == str(tree)


async def test_homes_share_the_id(tmp_path: Path) -> None:
    """A `run` in its own home does not make the service's repository another one."""
    folder = make_repository(tmp_path / "app")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with home(tmp_path / "one") as one, home(tmp_path / "two") as two:
        first = await one.add(folder)
        assert (await two.add(folder)).id == first.id
        assert ids(folder) == [first.id]
        # Removed and added again it is new to the one home, and known to the other.
        await one.registry.remove(first)
        again = await one.add(folder)
        assert again.id != first.id
        assert ids(folder) == [again.id, first.id]
        assert (await one.found(folder)).id == again.id
        assert (await two.found(folder)).id == first.id


async def test_many_callers_add_one_repository_once(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    async with home(tmp_path) as case:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(case.add, folder)
        [repo] = case.registry.all()
        assert ids(folder) == [repo.id]


async def test_what_was_not_saved_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lost:
        async def wait(self) -> None:
            raise StoreFailed("the disk is full")

    old, new = make_repository(tmp_path / "mv1"), tmp_path / "mv2"
    async with home(tmp_path) as case:
        repo = await case.add(old)
        old.rename(new)
        with monkeypatch.context() as patch:
            patch.setattr(case.store, "save", lambda *_, **__: Lost())
            for act in (case.found(new), case.registry.remove(repo)):
                with pytest.raises(StoreFailed):
                    await act
                assert case.registry.all() == [repo]
        assert (await case.found(new)).path == str(new)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
async def test_a_repository_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    (folder / ".git").chmod(0o500)
    async with home(tmp_path) as case:
        with pytest.raises(InvalidInput, match=f"{id_file(folder)} cannot be written"):
            await case.add(folder)
        assert case.registry.all() == []


async def test_links_in_the_place_of_ours_are_not_followed(tmp_path: Path) -> None:
    folder, other = make_repository(tmp_path / "app"), tmp_path / "other"
    other.mkdir()
    ours = id_file(folder).parent
    ours.symlink_to(other)
    async with home(tmp_path) as case:
        with pytest.raises(InvalidInput, match=f"{id_file(folder)} cannot be written"):
            await case.add(folder)
        assert list(other.iterdir()) == []
        ours.unlink()
        ours.mkdir(0o755)
        (other / "precious").write_text("a" * 19)
        id_file(folder).symlink_to(other / "precious")
        with pytest.raises(InvalidInput, match="cannot be written"):
            await case.add(folder)
        id_file(folder).unlink()
        os.mkfifo(id_file(folder))
        repo = await case.add(folder)
        assert ids(folder) == [repo.id]
        assert ours.stat().st_mode & 0o777 == 0o700
        assert (other / "precious").read_text() == "a" * 19


async def test_an_id_file_of_rubbish_has_no_ids(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    id_file(folder).parent.mkdir()
    id_file(folder).write_bytes(b"\xff\n../../etc\n" + b"x" * 100_000)
    async with home(tmp_path) as case:
        repo = await case.add(folder)
        assert ids(folder) == [repo.id]
        for _ in range(MAX_IDS + 5):
            case.git.add_id(str(folder / ".git"), case.ids.make(1.0))
        assert len(ids(folder)) == MAX_IDS
