"""A home has one owner, and what others can know of it."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from forge_actors.client.home import LOCK, serving_pid
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput, Refused, Unavailable
from forge_actors.runtime import ownership
from forge_actors.runtime.ownership import LOCK_FILE, own_home, tell_serving


def refused(home: Path, pid: str) -> None:
    with pytest.raises(Refused) as caught, own_home(home):
        pass
    assert str(caught.value).startswith(f"another service (pid {pid}) runs on {home};")


def test_a_home_has_one_owner(tmp_path: Path) -> None:
    with own_home(tmp_path):
        refused(tmp_path, str(os.getpid()))
        tell_serving(tmp_path, serving=True)
        refused(tmp_path, str(os.getpid()))
    with own_home(tmp_path):
        pass


def test_a_lock_file_that_is_removed_lets_nobody_in(tmp_path: Path) -> None:
    with own_home(tmp_path):
        (tmp_path / LOCK_FILE).unlink()
        tell_serving(tmp_path, serving=True)
        assert not (tmp_path / LOCK_FILE).exists()
        refused(tmp_path, "unknown")
    with own_home(tmp_path):
        pass


def test_folders_that_cannot_be_locked_are_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def only_files(fd: int, how: int) -> None:
        if not Path(f"/proc/self/fd/{fd}").is_file():
            raise OSError(errno.EBADF, "no")
        lock(fd, how)

    monkeypatch.setattr(ownership.fcntl, "flock", only_files)
    with own_home(tmp_path), pytest.raises(Refused), own_home(tmp_path):
        pass

    def nothing(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(ownership.fcntl, "flock", nothing)
    with pytest.raises(InvalidInput, match="No locks available"), own_home(tmp_path):
        pass


def test_who_serves_is_known_while_it_does(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert LOCK == LOCK_FILE
    assert serving_pid(home) is None
    with own_home(tmp_path):
        assert serving_pid(home) is None  # it starts, or has no socket
        tell_serving(tmp_path, serving=True)
        assert serving_pid(home) == os.getpid()
        with pytest.raises(Unavailable, match=f"kill -HUP {os.getpid()}") as caught:
            Service(home).get("status")
        assert caught.value.exit_code == 4
        tell_serving(tmp_path, serving=False)
        assert serving_pid(home) is None
        tell_serving(tmp_path, serving=True)
    # As after a crash: the words are there, and nobody holds the lock.
    assert serving_pid(home) is None
    with pytest.raises(Unavailable, match="no service runs on"):
        Service(home).get("status")


@pytest.mark.parametrize("text", ["", "x serving\n", "1 serving\n", "\xff\n", "1 2 3"])
def test_a_lock_file_with_other_words_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text, "latin-1")
    assert serving_pid(str(tmp_path)) is None
