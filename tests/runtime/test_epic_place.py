"""Every way to a repository leads to the same lock, and no other repository's does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.errors import LockFailed, LockHeld, StateError
from forge_actors.runtime.epic_place import controller_place, locks, opened

if TYPE_CHECKING:
    from pathlib import Path


def git(*arguments: str | Path) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    main = tmp_path / "main"
    git("init", "-q", main)
    git("-C", main, "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", main, "worktree", "add", "-q", "--detach", tmp_path / "linked")
    git("clone", "-q", main, tmp_path / "clone")
    (main / "sub folder").mkdir()
    (tmp_path / "alias").symlink_to(main)
    return main


async def test_a_repository_has_one_lock_whatever_leads_to_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await controller_place(str(checkout))
    assert place.lock_path == str(checkout / ".git/forge-actors/controller.lock")
    assert place.checkout == str(checkout)
    for way in ("main/sub folder", "alias", "alias/sub folder", "linked"):
        other = await controller_place(str(tmp_path / way))
        assert other.lock_path == place.lock_path, way
        assert (other.device, other.inode) == (place.device, place.inode)
    clone = await controller_place(str(tmp_path / "clone"))
    assert clone.lock_path == str(tmp_path / "clone/.git/forge-actors/controller.lock")
    # A run that a hook starts is told of the repository of the hook.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "clone/.git"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(tmp_path / "clone/.git"))
    assert await controller_place(str(checkout)) == place

    with opened(place) as ours, opened(clone) as theirs:
        taken = locks(ours).take_controller()
        with pytest.raises(LockHeld):
            locks(ours).take_controller()
        locks(theirs).take_controller().close()
        taken.close()


async def test_outside_of_a_repository_there_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    git("init", "-q", "--bare", tmp_path / "bare")
    for way in ("folder", "none", "bare", "folder\nother"):
        with pytest.raises(LockFailed, match="no EPIC run can be here"):
            await controller_place(str(tmp_path / way))
    assert list((tmp_path / "folder").iterdir()) == []


async def test_another_folder_in_its_place_is_refused(checkout: Path) -> None:
    place = await controller_place(str(checkout))
    (checkout / ".git").rename(checkout / "old")
    with pytest.raises(StateError), opened(place):
        pass
    (checkout / ".git").mkdir()
    with pytest.raises(StateError, match="is another folder by now"), opened(place):
        pass
