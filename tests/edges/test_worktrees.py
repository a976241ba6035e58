"""Making worktrees: hooks, filters, links, and what others have there."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git import leftovers, program
from forge_actors.testing.worktree_contract import planned, refused
from tests.edges.worktree_ground import GitGround, git, make

if TYPE_CHECKING:
    pass


@pytest.fixture
def ground(tmp_path: Path) -> GitGround:
    return GitGround(tmp_path)


#: A filter that hangs.
HANGS = "sleep 300"


async def test_no_hook_of_the_repository_runs(ground: GitGround) -> None:
    told = ground.home / "told"
    hooks = ground.common_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {told}\n")
        hook.chmod(0o755)
    await make(ground)
    assert not told.exists()


async def test_what_stands_in_its_place_is_moved_aside_and_told(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    Path(wanted.folder).mkdir(parents=True)
    (Path(wanted.folder) / "mine").write_text("somebody's\n")
    made = await ground.worktrees().make(wanted, known)
    assert made.set_aside is not None
    assert (Path(made.set_aside) / "mine").read_text() == "somebody's\n"
    assert ground.files(wanted) == {"file", "folder/inner"}


async def test_work_in_a_folder_that_was_begun_is_moved_aside_not_overwritten(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    await ground.worktrees().make(wanted, known)
    (Path(wanted.folder) / "file").write_text("changed\n")
    made = await ground.worktrees().make(wanted, known)
    assert made.set_aside is not None
    assert (Path(made.set_aside) / "file").read_text() == "changed\n"
    assert (Path(wanted.folder) / "file").read_text() == "file\n"
    (Path(wanted.folder) / "new").write_text("new\n")
    await ground.worktrees().undo(wanted, known)
    assert ground.files(wanted) is None
    kept = list(Path(wanted.folder).parent.glob("job.left-*/new"))
    assert [path.read_text() for path in kept] == ["new\n"]


async def test_what_the_system_refuses_is_told_and_harms_nobody_else(
    ground: GitGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    with monkeypatch.context() as patch:
        patch.setattr(program.trio.lowlevel, "open_process", full)
        assert "Too many open files" in await refused(
            ground.worktrees().make(wanted, known)
        )
    Path(wanted.folder).mkdir(parents=True)
    (Path(wanted.folder) / "mine").touch()
    with monkeypatch.context() as patch:
        patch.setattr(leftovers.os, "rename", full)
        assert "Too many open files" in await refused(
            ground.worktrees().make(wanted, known)
        )
    await ground.worktrees().make(wanted, known)


async def test_a_branch_with_work_outlives_an_undo(ground: GitGround) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    await ground.worktrees().make(wanted, known)
    git(wanted.folder, "commit", "-q", "--allow-empty", "-m", "work")
    await ground.worktrees().undo(wanted, known)
    assert ground.branches()["forge/job"] != known.base_commit


async def test_a_link_in_the_place_of_its_folders_is_not_followed(
    ground: GitGround,
) -> None:
    outside = ground.home / "outside"
    outside.mkdir()
    (ground.home / "worktrees").symlink_to(outside)
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    assert "is a link" in await refused(ground.worktrees().make(wanted, known))
    assert list(outside.iterdir()) == []
    assert ground.branches() == {}


async def test_a_cancelled_one_is_ended_and_can_be_taken_back(
    ground: GitGround,
) -> None:
    """A filter hangs, as one that asks a server does."""
    told = ground.home / "told"
    os.mkfifo(told)
    (ground.repo / ".gitattributes").write_text("file filter=slow\n")
    hangs = f"echo $$ > '{told}'; exec {HANGS}"
    git(ground.repo, "config", "filter.slow.smudge", hangs)
    ground.commit("filtered")
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ground.worktrees().make, wanted, known)
        filtering = os.pidfd_open(int(await trio.Path(told).read_text()))
        nursery.cancel_scope.cancel()
    try:
        # It is no child of ours: it may take a moment to end of its signal.
        await trio.lowlevel.wait_readable(filtering)
    finally:
        os.close(filtering)
    await ground.worktrees().undo(wanted, known)
    assert ground.branches() == {}
    assert ground.files(wanted) is None


async def test_one_that_takes_too_long_fails_with_its_limit(ground: GitGround) -> None:
    (ground.repo / ".gitattributes").write_text("* filter=slow\n")
    git(ground.repo, "config", "filter.slow.smudge", HANGS)
    ground.commit("filtered")
    with pytest.raises(WorktreeFailed, match="was not ready within"):
        await make(ground, seconds=0.5)


async def test_a_filter_that_fails_is_told_in_the_words_of_git(
    ground: GitGround,
) -> None:
    (ground.repo / ".gitattributes").write_text("* filter=lfs\n")
    git(ground.repo, "config", "filter.lfs.clean", "cat")
    git(ground.repo, "config", "filter.lfs.smudge", "echo no server >&2; false")
    git(ground.repo, "config", "filter.lfs.required", "true")
    ground.commit("filtered")
    with pytest.raises(WorktreeFailed, match=r"(?s)lfs failed.*--no-isolate"):
        await make(ground)


async def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    ground = GitGround(tmp_path)
    git(ground.repo, "checkout", "-q", "--orphan", "empty")
    with pytest.raises(WorktreeFailed, match="has no commit yet"):
        await make(ground)


async def test_submodules_are_left_empty_for_the_set_up(
    ground: GitGround, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    inner = GitGround(tmp_path / "inner")
    allow = ("-c", "protocol.file.allow=always")
    git(ground.repo, *allow, "submodule", "add", "-q", str(inner.repo), "sub")
    ground.commit("with a submodule")
    git(ground.repo, "config", "submodule.recurse", "true")
    await make(ground)
    wanted = ground.wanted("job")
    assert list((Path(wanted.folder) / "sub").iterdir()) == []
    git(wanted.folder, *allow, "submodule", "update", "-q", "--init")
    assert (Path(wanted.folder) / "sub" / "file").exists()
    assert git(ground.repo, "status", "--porcelain") == ""


async def test_a_job_from_a_nested_repository_is_of_the_outer_one(
    ground: GitGround,
) -> None:
    nested = ground.repo / "folder" / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    made = await make(ground, cwd=str(nested))
    assert made.cwd == f"{made.place.root}/folder/nested"


async def test_it_begins_at_what_the_checkout_has_from_which_it_was_submitted(
    ground: GitGround, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(ground.repo, "worktree", "add", "-q", "-b", "other", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "of the linked one")
    await make(ground, cwd=str(linked / "folder"))
    branches = ground.branches()
    assert branches["forge/job"] == branches["other"] != ground.head()


async def test_the_base_may_be_a_branch_of_a_remote(
    ground: GitGround, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(ground.repo), str(copy))
    config = (copy / ".git" / "config").read_text()
    ground.repo = copy

    async def based(job: str) -> None:
        await make(ground, job, base="origin/main")

    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(
                lambda n: make(ground, n, base="origin/main"), f"j{number}"
            )
    assert len(ground.branches()) == 12
    assert (copy / ".git" / "config").read_text() == config, "nothing is shared in it"


async def test_the_home_may_be_on_another_file_system(
    ground: GitGround, tmp_path: Path
) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("NOT RUN: there is no other file system here")
    with tempfile.TemporaryDirectory(dir=memory) as other:
        ground.home = Path(other)
        wanted = ground.wanted("job")
        known = await planned(ground.worktrees(), wanted)
        made = await ground.worktrees().make(wanted, known)
        assert made.place.device == memory.stat().st_dev
        git(wanted.folder, "commit", "-q", "--allow-empty", "-m", "work")
        assert ground.branches()["forge/job"] != known.base_commit


async def test_a_repository_with_long_hashes_has_worktrees_too(tmp_path: Path) -> None:
    ground = GitGround(tmp_path, "--object-format=sha256")
    await make(ground)
    assert len(ground.branches()["forge/job"]) == 64
