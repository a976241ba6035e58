"""The files that a repository brings along are read as those of a stranger."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain import forge_files as limits
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.edges.git import forge_files
from forge_actors.edges.git.forge_files import read_forge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_files_are_read_by_name_and_others_are_none_of_ours(tmp_path: Path) -> None:
    assert read_forge(str(tmp_path)) == ()
    folder = tmp_path / ".forge"
    (folder / "deeper.d").mkdir(parents=True)
    (folder / "deeper.d" / "x.toml").write_text("x = 1")
    (folder / "README.md").symlink_to("/etc/passwd")
    (folder / "b.toml").write_text("b = 'ü'")
    (folder / "a.toml").write_text("a = 1")
    told = [(file.name, file.text) for file in read_forge(str(tmp_path))]
    assert told == [("a.toml", "a = 1"), ("b.toml", "b = 'ü'")]
    with pytest.raises(NotFound, match="no folder"):
        read_forge(str(tmp_path / "gone"))


def _folder_link(at: Path) -> None:
    (at / "real").mkdir()
    (at / "real" / "x.toml").write_text("")
    (at / ".forge").symlink_to("real")


def _file_link(at: Path) -> None:
    (at / "secret").write_text("")
    (at / ".forge" / "x.toml").symlink_to(at / "secret")


def _socket(at: Path) -> None:
    here = os.getcwd()
    os.chdir(at / ".forge")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("x.toml")
    os.chdir(here)


def _many(at: Path) -> None:
    for number in range(limits.MAX_FILES + 1):
        (at / ".forge" / f"{number}.toml").write_text("")


def _entries(at: Path) -> None:
    for number in range(forge_files.MAX_ENTRIES + 1):
        (at / ".forge" / f"{number}.txt").write_text("")


def _total(at: Path) -> None:
    for number in range(5):
        (at / ".forge" / f"{number}.toml").write_text("#" * limits.MAX_FILE_BYTES)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_folder_link, r"\.forge: is a link"),
        (lambda at: (at / ".forge").write_text("x"), r"\.forge: cannot be read"),
        (_file_link, r"\.forge/x\.toml: is a link"),
        (lambda at: (at / ".forge/x.toml").mkdir(), "x.toml: is no plain file"),
        (lambda at: os.mkfifo(at / ".forge/x.toml"), "x.toml: is no plain file"),
        (_socket, "x.toml: is no plain file"),
        (lambda at: (at / ".forge/a\nb.toml").write_text(""), r"has a file 'a\\nb"),
        (lambda at: (at / ".forge/.x.toml").write_text(""), r"has a file '\.x\.toml'"),
        (lambda at: (at / ".forge/x.toml").write_bytes(b"\xff"), "is no UTF-8 text"),
        (
            lambda at: (at / ".forge/x.toml").write_text(
                "#" * (limits.MAX_FILE_BYTES + 1)
            ),
            "x.toml: has more than 262144 bytes",
        ),
        (_many, "more than 32 files"),
        (_entries, "more than 1000 entries"),
        (_total, "more than 1048576 bytes in all"),
    ],
)
def test_what_is_odd_is_refused_by_name(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    if "forge: " not in said:
        (tmp_path / ".forge").mkdir()
    make(tmp_path)
    with pytest.raises(InvalidInput, match=said) as caught:
        read_forge(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_swapped_for_a_link_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("token")
    (tmp_path / ".forge").mkdir()
    file = tmp_path / ".forge" / "x.toml"
    file.write_text("")
    look = os.lstat

    def swap(path: str, **rest: int) -> os.stat_result:
        seen = look(path, **rest)
        if path == "x.toml":
            file.unlink()
            file.symlink_to(tmp_path / "secret")
        return seen

    monkeypatch.setattr(os, "lstat", swap)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_forge(str(tmp_path))
