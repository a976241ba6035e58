"""How much a folder takes: as the disk counts it, each file once, mounts not at all."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.edges.cleanup import measuring
from forge_actors.edges.cleanup.folders import opened_home
from forge_actors.edges.cleanup.measuring import Measure, Measured
from tests.small_disk import needs_root

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "home"
    (place / "folder" / "deep").mkdir(parents=True)
    return place


def contents(home: Path) -> Measured:
    with opened_home(str(home)) as folder:
        return Measure().contents(folder)


def test_files_count_with_the_blocks_they_have(home: Path) -> None:
    (home / "folder" / "deep" / "large").write_bytes(bytes(MIB))
    with (home / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    found = contents(home)
    assert MIB <= found.bytes < 2 * MIB
    assert (found.entries, found.whole) == (4, True)


def test_a_file_with_several_names_counts_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "one").write_bytes(bytes(MIB))
    for number in range(3):
        os.link(home / "one", home / "folder" / f"again{number}")
    before = contents(home).bytes
    assert MIB <= before < MIB + 64 * 1024
    # Where there are too many to remember, each name counts for its share.
    monkeypatch.setattr(measuring, "MAX_LINKED", 0)
    assert contents(home).bytes == before


def test_a_link_counts_as_itself(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(bytes(MIB))
    (home / "link").symlink_to(tmp_path / "elsewhere")
    (home / "around").symlink_to(tmp_path)
    assert contents(home).bytes < 64 * 1024


def test_it_stops_when_there_is_no_time(home: Path) -> None:
    for number in range(1000):
        (home / "folder" / str(number)).touch()
    looks = iter([True, True])
    with opened_home(str(home)) as folder:
        found = Measure(lambda: next(looks, False)).contents(folder)
    assert not found.whole
    assert found.entries < 1000


def test_what_is_too_deep_is_not_looked_into(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MAX_DEPTH", 1)
    (home / "folder" / "deep" / "large").write_bytes(bytes(MIB))
    found = contents(home)
    assert (found.whole, found.bytes < MIB) == (False, True)


@needs_root
def test_what_is_mounted_there_is_not_its_own(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "large").write_bytes(bytes(MIB))
    place = home / "folder" / "deep"
    subprocess.run(["mount", "--bind", str(other), str(place)], check=True)
    try:
        assert contents(home).bytes < 64 * 1024
    finally:
        subprocess.run(["umount", str(place)], check=True)
