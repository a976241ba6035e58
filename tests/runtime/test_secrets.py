"""The folder of secrets: private, whole or not at all, and told by name alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from forge_actors.domain.errors import InvalidInput, NotFound, StoreFailed
from forge_actors.runtime.secrets import (
    MAX_BYTES,
    SecretFolder,
    check_name,
    checked_value,
)

VALUE = b"s3cret-of-the-house"


@pytest.fixture
def folder(tmp_path: Path) -> SecretFolder:
    return SecretFolder(tmp_path / "home")


def files(folder: SecretFolder) -> list[str]:
    return sorted(path.name for path in Path(folder.path).iterdir())


def mode(path: str | os.PathLike[str]) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("name", ["A", "_a9", "api_token", "x" * 64])
def test_a_variable_may_name_a_secret(name: str) -> None:
    check_name(name, field="name")


@pytest.mark.parametrize(
    "name", ["", "9a", "a-b", "a b", "a.b", "../x", "a\n", "ä", "x" * 65, "A=B"]
)
def test_nothing_else_may(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_name(name, field="name")
    assert caught.value.field == "name"
    assert caught.value.allowed


@pytest.mark.parametrize("name", ["FORGE_TOKEN", "FORGE_JOB_ID", "PATH"])
def test_what_the_service_sets_or_shows_is_no_secret(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        check_name(name, field="name")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"abc\n", b"abc"),
        (b"abc\r\n", b"abc"),
        (b"abc", b"abc"),
        (b"two\nlines\n\n", b"two\nlines\n"),
        (b" x ", b" x "),
        (b"\xff\n", b"\xff"),
        (b"x" * MAX_BYTES + b"\n", b"x" * MAX_BYTES),
    ],
)
def test_the_newline_at_its_end_is_no_part_of_a_value(raw: bytes, value: bytes) -> None:
    assert checked_value(raw) == value


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"\r\n", b"  \t\n", b"a\0b", b"x" * (MAX_BYTES + 1)]
)
def test_a_value_that_cannot_be_one_is_refused_and_not_repeated(raw: bytes) -> None:
    """L-11: the empty one, and nothing but a newline."""
    with pytest.raises(InvalidInput, match=r"^value: ") as caught:
        checked_value(raw)
    assert "xxx" not in str(caught.value)


def test_a_secret_is_a_private_file_in_a_private_folder(folder: SecretFolder) -> None:
    before = os.umask(0)
    try:
        folder.write("TOKEN", VALUE)
    finally:
        os.umask(before)
    path = os.path.join(folder.path, "TOKEN")
    assert (mode(path), mode(folder.path)) == (0o600, 0o700)
    assert mode(os.path.dirname(folder.path)) == 0o700
    assert folder.read("TOKEN") == VALUE
    assert files(folder) == ["TOKEN"]


def test_a_folder_that_others_may_read_is_closed(folder: SecretFolder) -> None:
    os.makedirs(folder.path)
    os.chmod(folder.path, 0o755)
    folder.write("TOKEN", VALUE)
    assert mode(folder.path) == 0o700


def test_names_are_listed_in_order_and_files_of_others_are_not(
    folder: SecretFolder,
) -> None:
    assert folder.names() == []
    for name in ("b", "A", "c"):
        folder.write(name, VALUE)
    for other in (".hidden", "x.1.new", "no-name"):
        with open(os.path.join(folder.path, other), "wb") as file:
            file.write(VALUE)
    assert folder.names() == ["A", "b", "c"]
    assert folder.changed_at("A") > 0


def test_setting_again_replaces_the_value(folder: SecretFolder) -> None:
    folder.write("TOKEN", VALUE)
    folder.write("TOKEN", b"another")
    assert folder.read("TOKEN") == b"another"


def test_what_is_removed_is_gone_and_what_is_not_there_is_named(
    folder: SecretFolder,
) -> None:
    with pytest.raises(NotFound, match="there is no secret 'TOKEN'; none is set"):
        folder.remove("TOKEN")
    folder.write("TOKEN", VALUE)
    folder.write("OTHER", VALUE)
    folder.remove("TOKEN")
    for act in (folder.remove, folder.read, folder.changed_at):
        with pytest.raises(NotFound, match="no secret 'TOKEN'; there are OTHER"):
            act("TOKEN")


def test_a_value_that_cannot_be_saved_leaves_the_one_before(
    folder: SecretFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("TOKEN", VALUE)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFailed) as caught:
        folder.write("TOKEN", b"another-value")
    monkeypatch.undo()
    assert str(caught.value) == (
        f"the secret TOKEN could not be saved: {folder.path}: No space left on device"
    )
    assert folder.read("TOKEN") == VALUE
    assert files(folder) == ["TOKEN"]


def test_what_a_killed_writer_left_goes_with_the_next_one(folder: SecretFolder) -> None:
    folder.write("TOKEN", VALUE)
    left = os.path.join(folder.path, f"TOKEN.{2**22 + 1}.new")
    with open(left, "wb") as file:
        file.write(b"half")
    folder.write("OTHER", VALUE)
    assert files(folder) == ["OTHER", "TOKEN"]


def test_no_link_is_followed(folder: SecretFolder, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    folder.write("TOKEN", VALUE)
    link = os.path.join(folder.path, "LINK")
    Path(link).symlink_to(tmp_path / "precious")
    with pytest.raises(StoreFailed, match="the secret LINK cannot be read"):
        folder.read("LINK")
    folder.write("LINK", VALUE)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert folder.read("LINK") == VALUE


def test_a_file_in_the_place_of_the_folder_is_one_clear_error(
    folder: SecretFolder,
) -> None:
    os.makedirs(os.path.dirname(folder.path))
    with open(folder.path, "wb"):
        pass
    for act in (lambda: folder.write("TOKEN", VALUE), folder.names):
        with pytest.raises(StoreFailed, match="secrets"):
            act()
