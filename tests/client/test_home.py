"""Which home is meant, and where its sockets are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.client.home import (
    MAX_SOCKET_PATH,
    prepare_socket_path,
    resolve_home,
    socket_path,
)
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_the_option_beats_the_environment_beats_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert resolve_home() == "/users/me/.local/state/forge-actors"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert resolve_home() == "/users/me/.local/state/forge-actors"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert resolve_home() == "/state/forge-actors"
    monkeypatch.setenv("FORGE_CONTROLLER_HOME", "/given/by/variable")
    assert resolve_home() == "/given/by/variable"
    assert resolve_home("~/x") == "/users/me/x"
    monkeypatch.chdir("/")
    assert resolve_home("tmp/../x") == "/x"


def test_a_short_home_holds_its_socket(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert prepare_socket_path(home) == socket_path(home) == f"{home}/control.sock"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="run") as folder:  # a short path
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield folder


@pytest.fixture
def long_home(tmp_path: Path, runtime_dir: str) -> str:
    home = tmp_path / ("h" * MAX_SOCKET_PATH)
    home.mkdir()
    return str(home)


def test_a_long_home_names_the_place_of_its_socket(
    long_home: str, runtime_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = socket_path(long_home)
    place = prepare_socket_path(long_home)
    assert place == before
    assert place.startswith(f"{runtime_dir}/forge-actors/")
    assert len(os.fsencode(place)) <= MAX_SOCKET_PATH
    assert os.stat(os.path.dirname(place)).st_mode & 0o777 == 0o700
    # A caller with another environment finds it all the same.
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert socket_path(long_home) == place
    # And a second preparation changes nothing.
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime_dir)
    assert prepare_socket_path(long_home) == place


def test_two_long_homes_do_not_share_a_place(long_home: str) -> None:
    assert socket_path(long_home) != socket_path(f"{long_home}x")
    assert socket_path(long_home, "agent.sock") != socket_path(long_home)


def test_a_place_that_others_could_have_made_is_refused(long_home: str) -> None:
    folder = os.path.dirname(prepare_socket_path(long_home))
    os.chmod(folder, 0o755)
    with pytest.raises(Refused, match="0700"):
        socket_path(long_home)
    with pytest.raises(Refused, match="0700"):
        prepare_socket_path(long_home)
    os.rmdir(folder)
    Path(folder).symlink_to("/tmp")
    with pytest.raises(Refused, match="0700"):
        socket_path(long_home)
