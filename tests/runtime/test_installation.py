"""The id of a home: made once, and the same for as long as the home is there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.runtime.homes import INSTALLATION_FILE
from forge_actors.runtime.installation import (
    PINNED_BY,
    InstallationMismatch,
    installation_id,
    known_installation,
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path


def test_a_home_is_given_an_id_that_stays(tmp_path: Path) -> None:
    assert known_installation(tmp_path) is None
    given = installation_id(tmp_path)
    assert re.fullmatch(r"forge_[0-9a-f]{32}", given)
    assert installation_id(tmp_path) == known_installation(tmp_path) == given
    assert (tmp_path / INSTALLATION_FILE).stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [INSTALLATION_FILE]
    assert installation_id(tmp_path, given) == given


def test_it_is_on_the_disk_before_anybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File first, then its name, then the folder that holds the name."""
    synced: list[str] = []
    sync = os.fsync

    def watched(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        sync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    installation_id(tmp_path)
    path = tmp_path / INSTALLATION_FILE
    assert synced == [f"{path}.new", str(tmp_path)]
    installation_id(tmp_path)
    assert len(synced) == 2


def test_a_pinned_id_is_taken_once_and_then_expected(tmp_path: Path) -> None:
    assert installation_id(tmp_path, "site-7:a.b_c") == "site-7:a.b_c"
    assert installation_id(tmp_path) == "site-7:a.b_c"
    with pytest.raises(
        InstallationMismatch, match=r"is site-7:a\.b_c.*says other"
    ) as caught:
        installation_id(tmp_path, "other")
    assert str(caught.value).startswith("FORGE_INSTANCE_ID_MISMATCH: ")
    assert (caught.value.code, caught.value.exit_code) == (
        "FORGE_INSTANCE_ID_MISMATCH",
        Refused.exit_code,
    )
    assert installation_id(tmp_path) == "site-7:a.b_c"


@pytest.mark.parametrize("pinned", ["", " ", "-a", "a b", "a\nb", "x" * 129, "ä"])
def test_what_is_no_id_is_not_taken(tmp_path: Path, pinned: str) -> None:
    with pytest.raises(InvalidInput, match=PINNED_BY):
        installation_id(tmp_path, pinned)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "\n", "a b\n", "x" * 200, "a\nb\n", "\xff\n"])
def test_a_damaged_id_is_not_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / INSTALLATION_FILE
    path.write_text(text, "latin-1")
    with pytest.raises(InvalidInput, match="holds no id"):
        installation_id(tmp_path)
    assert path.read_text("latin-1") == text
    assert known_installation(tmp_path) is None


def test_a_home_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    (tmp_path / INSTALLATION_FILE).mkdir()
    with pytest.raises(InvalidInput, match="Is a directory"):
        installation_id(tmp_path)


async def test_each_start_is_another_instance_of_the_same_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for _ in range(2):
        async with running(tmp_path / "home") as runtime:
            service = (await runtime.status())["service"]
            assert isinstance(service, dict)
            seen.append(
                (service["installation"], service["instance"], service["epoch"])
            )
    (first, one, epoch), (second, two, later) = seen
    assert first == second == known_installation(tmp_path / "home")
    assert one != two
    assert re.fullmatch(r"runtime_[0-9a-f]{32}", two)
    assert (epoch, later) == (1, 2)
    monkeypatch.setenv(PINNED_BY, "elsewhere")
    with pytest.raises(InstallationMismatch):
        async with running(tmp_path / "home"):
            pass
