"""Making worktrees: locks, hooks, settings of a repository, what others have there."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git import leftovers
from forge_actors.edges.git.repository_settings import read_settings
from forge_actors.testing.worktree_contract import planned, refused
from tests.edges.worktree_ground import GitGround, git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.worktrees import MadeWorktree


@pytest.fixture
def ground(tmp_path: Path) -> GitGround:
    return GitGround(tmp_path)


async def make(ground: GitGround, job: str = "job", **changes: object) -> MadeWorktree:
    worktrees, wanted = ground.worktrees(), ground.wanted(job, **changes)
    return await worktrees.make(wanted, await planned(worktrees, wanted))


@contextmanager
def sleeping(**options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], **options) as process:
        yield process
        process.kill()


def sleepers() -> bool:
    found = subprocess.run(["pgrep", "-f", "^sleep 300.25$"], check=False)
    return found.returncode == 0


# -- locks ---------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["index.lock", "config.lock", "HEAD.lock"])
async def test_locks_of_the_users_checkout_are_in_nobodys_way(
    lock: str, ground: GitGround
) -> None:
    """An editor holds its index, or a git of somebody the configuration."""
    held = ground.common_dir / lock
    held.touch()
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(make, ground, f"job{number}")
    assert held.exists()
    assert len(ground.branches()) == 12


async def test_a_foreign_lock_is_waited_for(
    ground: GitGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = ground.common_dir / "refs" / "heads" / "mine.lock"
    lock.touch()
    seen: list[float] = []
    sleep = trio.sleep

    async def release(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            lock.unlink()
        await sleep(0)

    monkeypatch.setattr(leftovers.trio, "sleep", release)
    await make(ground, pattern="mine")
    assert len(seen) == 3


async def test_a_foreign_lock_that_stays_is_named_and_never_removed(
    ground: GitGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "LOCK_SECONDS", 0.1)
    lock = ground.common_dir / "refs" / "heads" / "mine.lock"
    lock.touch()
    with pytest.raises(WorktreeFailed, match="another git program holds") as failed:
        await make(ground, pattern="mine")
    assert str(lock) in str(failed.value)
    assert lock.exists()


async def test_a_lock_that_a_dead_git_left_for_this_job_is_removed_and_told(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    ref = ground.common_dir / "refs" / "heads" / "forge" / "job.lock"
    ref.parent.mkdir()
    ref.touch()
    made = await ground.worktrees().make(wanted, known)
    assert made.unlocked == (str(ref),)
    index = Path(made.place.git_dir) / "index.lock"
    index.touch()
    entered = await ground.worktrees().enter(wanted, known)
    assert entered.unlocked == (str(index),)
    assert not index.exists()


async def test_a_lock_is_left_to_a_git_that_lives(ground: GitGround) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    made = await ground.worktrees().make(wanted, known)
    lock = Path(made.place.git_dir) / "index.lock"
    lock.touch()
    with sleeping(cwd=wanted.folder):
        entered = await ground.worktrees().enter(wanted, known)
        assert entered.unlocked == ()
        assert lock.exists()


async def test_a_git_that_an_earlier_runtime_started_is_waited_for(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    environment = os.environ | {"FORGE_WORKTREE": wanted.folder}
    with sleeping(env=environment) as left:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ground.worktrees().make, wanted, known)
            with trio.move_on_after(0.3):
                await trio.sleep_forever()
            assert ground.branches() == {}, "it has begun beside the other one"
            left.send_signal(signal.SIGKILL)
    assert ground.files(wanted) is not None


# -- what is there -------------------------------------------------------------------


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
    (ground.repo / ".gitattributes").write_text("* filter=slow\n")
    git(ground.repo, "config", "filter.slow.smudge", "sleep 300.25")
    ground.commit("filtered")
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    with trio.move_on_after(1.0):
        await ground.worktrees().make(wanted, known)
    assert not sleepers(), "what git had started goes on"
    await ground.worktrees().undo(wanted, known)
    assert ground.branches() == {}
    assert ground.files(wanted) is None


async def test_one_that_takes_too_long_fails_with_its_limit(ground: GitGround) -> None:
    (ground.repo / ".gitattributes").write_text("* filter=slow\n")
    git(ground.repo, "config", "filter.slow.smudge", "sleep 300.25")
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
    with pytest.raises(WorktreeFailed, match="smudge filter lfs failed"):
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


# -- settings of the repository ------------------------------------------------------


def test_without_a_file_there_are_no_commands(ground: GitGround) -> None:
    assert read_settings(str(ground.common_dir)).setup == ()


def test_the_commands_and_their_time_are_read(ground: GitGround) -> None:
    ground.settings(
        "[worktree]\n"
        'setup = ["npm ci", "make"]\nsetup_timeout = "5m"\nbranch = "x/{job}"'
    )
    found = read_settings(str(ground.common_dir))
    assert (found.setup, found.setup_seconds) == (("npm ci", "make"), 300.0)
    assert found.worktree.branch == "x/{job}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[worktree]\nsetup = 3", "worktree.setup"),
        ('[worktree]\nsetup = [""]', "worktree.setup[0]: is no command"),
        ('[worktree]\nsteup = ["x"]', "did you mean 'setup'"),
        ("[worktre]\n", "worktre"),
        ('[worktree]\nsetup_timeout = "0s"', "setup_timeout"),
        ('[worktree]\nbranch = "a b"', "worktree.branch"),
        ("[worktree\n", "at line 1"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(
    text: str, words: str, ground: GitGround
) -> None:
    path = ground.settings(text)
    with pytest.raises(WorktreeFailed) as failed:
        read_settings(str(ground.common_dir))
    assert str(path) in str(failed.value)
    assert words in str(failed.value)


def test_a_file_of_others_runs_nothing(ground: GitGround, tmp_path: Path) -> None:
    path = ground.settings("")
    path.chmod(0o666)
    with pytest.raises(WorktreeFailed, match="written by everybody"):
        read_settings(str(ground.common_dir))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorktreeFailed, match="is a link"):
        read_settings(str(ground.common_dir))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(WorktreeFailed, match="is no file"):
        read_settings(str(ground.common_dir))
    path.unlink()
    if os.geteuid() == 0:
        path.touch()
        os.chown(path, 65534, 65534)
        with pytest.raises(WorktreeFailed, match="belongs to another user"):
            read_settings(str(ground.common_dir))


async def test_the_pattern_of_the_job_beats_that_of_the_repository(
    ground: GitGround,
) -> None:
    ground.settings('[worktree]\nbranch = "theirs/{job}"')
    await make(ground, "one")
    await make(ground, "two", pattern="mine/{job}")
    assert set(ground.branches()) == {"theirs/one", "mine/two"}


async def test_an_entered_one_has_its_set_up_until_that_was_done(
    ground: GitGround,
) -> None:
    ground.settings('[worktree]\nsetup = ["true"]')
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    made = await ground.worktrees().make(wanted, known)
    ready = structs.replace(known, state="ready")
    assert made.place.setup == ("true",)
    entered = await ground.worktrees().enter(wanted, ready)
    assert entered.place.setup == ("true",)
    Path(made.place.setup_state).write_text('{"done": true}')
    entered = await ground.worktrees().enter(wanted, ready)
    assert entered.place.setup == ()
