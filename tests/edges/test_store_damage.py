"""A damaged store is set aside, and nothing begins anew behind anybody's back."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.damage import FOLDER, MARKER
from forge_actors.domain.errors import StoreDamaged, StoreFailed
from forge_actors.edges.sqlite import checking
from forge_actors.testing.store_contract import job, repository
from tests.edges.store_kit import opened
from tests.edges.store_kit import path as path  # a fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = 4096


async def made(path: Path) -> None:
    """A store with some jobs in it."""
    async with opened(path) as store:
        await store.save([repository(), *(job(f"job{n}") for n in range(300))]).wait()


async def refusal(path: Path) -> str:
    with pytest.raises(StoreDamaged) as caught:
        async with opened(path):
            pass
    return str(caught.value)


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def no_schema(data: bytes) -> bytes:
    return data[:100] + os.urandom(PAGE - 100) + data[PAGE:]


def no_rows(data: bytes) -> bytes:
    """Everything but the first page is noise."""
    return data[:PAGE] + os.urandom(len(data) - PAGE)


def one_page_lost(data: bytes) -> bytes:
    place = len(data) // PAGE // 2 * PAGE
    return data[:place] + bytes(PAGE) + data[place + PAGE :]


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


DAMAGES = [no_schema, no_rows, one_page_lost, cut_short]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_store_is_set_aside_as_it_is(
    path: Path, damage: Callable[[bytes], bytes]
) -> None:
    await made(path)
    wrong = damage(path.read_bytes())
    path.write_bytes(wrong)
    said = await refusal(path)
    [kept] = [e for e in (path.parent / FOLDER).iterdir() if e.suffix == ".sqlite"]
    assert kept.read_bytes() == wrong
    assert str(kept) in said
    assert "restore" in said
    assert not path.exists()


async def test_every_later_start_is_refused_with_the_same_words(path: Path) -> None:
    await made(path)
    path.write_bytes(cut_short(path.read_bytes()))
    first = await refusal(path)
    assert await refusal(path) == first
    assert await refusal(path) == first
    assert files(path.parent) == [FOLDER, MARKER]
    (path.parent / MARKER).unlink()
    async with opened(path) as store:
        assert store.repositories() == []


async def test_the_log_of_a_crash_is_set_aside_with_its_store(path: Path) -> None:
    await made(path)
    path.write_bytes(cut_short(path.read_bytes()))
    path.with_name(f"{path.name}-wal").write_bytes(b"the last words")
    await refusal(path)
    [kept] = (path.parent / FOLDER).glob("*-wal")
    assert kept.read_bytes() == b"the last words"


async def test_a_move_that_was_cut_off_is_finished_by_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(path)
    path.write_bytes(cut_short(path.read_bytes()))
    monkeypatch.setattr(checking, "move", lambda *_: None)
    said = await refusal(path)
    assert path.exists()
    monkeypatch.undo()
    assert await refusal(path) == said
    assert not path.exists()
    assert len(files(path.parent / FOLDER)) == 1


@pytest.mark.parametrize("left", ["", None])
async def test_an_empty_or_missing_store_of_a_home_with_output_is_no_new_one(
    path: Path, left: str | None
) -> None:
    (path.parent / "logs").mkdir()
    (path.parent / "logs" / "job.1.stdout").touch()
    if left is not None:
        path.write_text(left)
    assert "output of its jobs" in await refusal(path)
    assert "output of its jobs" in await refusal(path)


async def test_an_empty_file_in_a_new_home_becomes_a_store(path: Path) -> None:
    (path.parent / "logs").mkdir()
    path.touch(mode=0o600)
    async with opened(path) as store:
        assert store.repositories() == []


async def test_a_folder_in_the_place_of_the_store_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreFailed, match="it is no file"):
        async with opened(path):
            pass
    assert path.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_store_that_may_not_be_read_is_left_alone(path: Path) -> None:
    code = (
        "import sys, os\n"
        "from pathlib import Path\n"
        "from forge_actors.edges.sqlite.connection import open_connections\n"
        "from forge_actors.domain.errors import StoreFailed\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try:\n    open_connections(Path(sys.argv[1]))\n"
        "except StoreFailed as error:\n    print(type(error).__name__, error)\n"
    )
    path.write_bytes(b"x" * PAGE)
    path.chmod(0o000)
    for folder in (path.parent, *path.parent.parents):
        # Others may enter all that pytest has made, which is only its user's.
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o711)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True
    )
    assert done.stdout.startswith(f"StoreFailed the store {path} cannot be opened: ")
    assert files(path.parent) == [path.name]
