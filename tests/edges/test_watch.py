"""Watching real files: what counts, what is noise, and what the system allows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.edges import watch as watch_module
from forge_actors.edges.watch import FolderWatch, watch_folders
from tests.edges.looking_kit import git, make, record

if TYPE_CHECKING:
    from collections.abc import Generator

#: Seconds within which a change is told, and in which nothing is that should not be.
SOON, NEVER = 30.0, 0.2


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "app")


@pytest.fixture
def watch() -> Generator[FolderWatch, None, None]:
    with closing(FolderWatch()) as made:
        yield made


async def told(watch: FolderWatch) -> bool:
    with trio.move_on_after(SOON):
        assert await watch.changed() == {"repo"}
        return True
    return False


async def silent(watch: FolderWatch) -> bool:
    with trio.move_on_after(NEVER):
        await watch.changed()
        return False
    return True


async def test_every_way_to_change_a_file_is_told(
    repo: Path, watch: FolderWatch
) -> None:
    (repo / "sub" / "deep").mkdir(parents=True)
    assert await watch.watch(record(repo)) is None
    path = repo / "sub" / "deep" / "Cargo.lock"
    path.write_text("written")
    assert await told(watch)
    path.chmod(0o755)
    assert await told(watch)
    path.rename(repo / "moved")
    assert await told(watch)
    (repo / "moved").unlink()
    assert await told(watch)
    assert await silent(watch)


async def test_folders_that_come_later_are_watched_with_what_is_in_them(
    repo: Path, tmp_path: Path, watch: FolderWatch
) -> None:
    assert await watch.watch(record(repo)) is None
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    made.rename(repo / "new")
    assert await told(watch)
    assert await silent(watch)
    (repo / "new" / "inner" / "file").write_text("")
    assert await told(watch)
    shutil.rmtree(repo / "new")
    assert await told(watch)
    (repo / "file").write_text("others go on")
    assert await told(watch)


async def test_what_git_does_is_told_when_it_changes_a_status(
    repo: Path, watch: FolderWatch
) -> None:
    assert await watch.watch(record(repo)) is None
    for arguments in (
        ("commit", "-q", "--allow-empty", "-m", "second"),
        ("checkout", "-q", "-b", "other"),
        ("branch", "deep/er/branch"),
        ("pack-refs", "--all"),
    ):
        git(repo, *arguments)
        assert await told(watch), arguments
        while not await silent(watch):
            pass


async def test_locks_and_objects_and_what_is_ignored_are_noise(
    repo: Path, watch: FolderWatch
) -> None:
    (repo / "node_modules" / "deep").mkdir(parents=True)
    (repo / ".ai" / "harness").mkdir(parents=True)
    assert await watch.watch(record(repo)) is None
    (repo / ".git" / "index.lock").write_text("")
    (repo / ".git" / "index.lock").unlink()
    (repo / ".git" / "refs" / "heads" / "main.lock").write_text("")
    (repo / ".git" / "COMMIT_EDITMSG").write_text("")
    (repo / ".git" / "objects" / "new").mkdir()
    (repo / ".git" / "forge-actors").mkdir()
    (repo / "node_modules" / "deep" / "file").write_text("")
    (repo / ".ai" / "harness" / "state").write_text("")
    assert await silent(watch)


async def test_another_repository_inside_is_not_watched(
    repo: Path, watch: FolderWatch
) -> None:
    inner = make(repo / "inner")
    assert await watch.watch(record(repo)) is None
    (inner / "file").write_text("changed")
    assert await silent(watch)


async def test_a_linked_worktree_is_watched_where_its_git_files_are(
    repo: Path, tmp_path: Path, watch: FolderWatch
) -> None:
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", "-b", "other", str(linked))
    assert await watch.watch(record(linked)) is None
    git(linked, "checkout", "-q", "--detach")
    assert await told(watch)


async def test_a_checkout_with_too_many_folders_is_left_to_others(
    repo: Path, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "MAX_FOLDERS", 20)
    for number in range(20):
        (repo / f"{number}").mkdir()
    refused = await watch.watch(record(repo))
    assert refused is not None
    assert refused.reason == "it has more than 20 folders"
    assert not refused.everywhere


async def test_a_folder_that_is_gone_can_be_watched_later(
    repo: Path, tmp_path: Path, watch: FolderWatch
) -> None:
    known = record(repo)
    repo.rename(tmp_path / "elsewhere")
    refused = await watch.watch(known)
    assert refused is not None
    assert refused.reason == "its folder is gone"
    (tmp_path / "elsewhere").rename(repo)
    assert await watch.watch(known) is None
    (repo / "file").write_text("changed")
    assert await told(watch)


async def test_more_events_than_the_system_keeps_are_told_as_a_change(
    repo: Path, watch: FolderWatch
) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    assert await watch.watch(record(repo)) is None
    one, two = repo / "one", repo / "two"
    for _ in range(most // 2 + 10):
        one.touch()
        two.touch()
    while not await silent(watch):
        pass
    one.write_text("goes on")
    assert await told(watch)


_WATCH = """
import sys, trio
from pathlib import Path
from forge_actors.edges.watch import FolderWatch, watch_folders
from tests.edges.looking_kit import record
async def main():
    watch = FolderWatch()
    paths = [Path(path) for path in sys.argv[1:]]
    answers = [await watch.watch(record(path, path.name)) for path in paths]
    for answer in answers:
        print(answer)
    if answers[0] is None:
        (paths[0] / "file").write_text("changed")
        with trio.move_on_after(30):
            print(sorted(await watch.changed()))
trio.run(main)
"""


def run_limited(limit: str, *paths: Path) -> list[str]:
    """What the program says whose system allows so little."""
    script = f"{limit} && exec {sys.executable} -c '{_WATCH}' \"$@\""
    command = ["unshare", "-Ur", "sh", "-c", script, "sh", *map(str, paths)]
    allowed = (
        shutil.which("unshare")
        and not subprocess.run(["unshare", "-Ur", "true"], check=False).returncode
    )
    if not allowed:
        pytest.skip("needs user namespaces to lower a limit for a test alone")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_watches_that_are_used_up_end_none_that_stands(
    repo: Path, tmp_path: Path
) -> None:
    large = make(tmp_path / "large")
    for number in range(100):
        (large / f"{number}").mkdir()
    limit = "echo 60 > /proc/sys/user/max_inotify_watches"
    small, refused, changed = run_limited(limit, repo, large)
    assert small == "None"
    assert "max_user_watches" in refused
    assert "everywhere=True" in refused
    assert changed == "['app']"


def test_watchers_that_are_used_up_are_a_refusal(repo: Path) -> None:
    limit = "echo 0 > /proc/sys/user/max_inotify_instances"
    [refused] = run_limited(limit, repo)
    assert "max_user_instances" in refused
    assert os.path.exists(repo)


async def test_some_folders_tell_of_their_first_change_and_of_their_end(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    send, receive = trio.open_memory_channel[None](100)
    watched = partial(watch_folders, [str(each) for each in folders])
    with trio.fail_after(SOON):
        async with trio.open_nursery() as nursery:
            await nursery.start(watched, lambda: send.send_nowait(None))
            (folders[1] / "file").touch()
            await receive.receive()
            folders[2].rmdir()
            await receive.receive()
            nursery.cancel_scope.cancel()
