"""A home has one owner, and what others can know of it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from pathlib import Path

import psutil
import pytest

from forge_actors.client.home import LOCK, serving_pid
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput, Refused, Unavailable
from forge_actors.runtime import ownership
from forge_actors.runtime.ownership import LOCK_FILE, own_home, tell_serving


def refused(home: Path, owner: str) -> None:
    with pytest.raises(Refused) as caught, own_home(home):
        pass
    assert str(caught.value).startswith(f"another service ({owner}) runs on {home};")


def test_a_home_has_one_owner_who_is_named(tmp_path: Path) -> None:
    with own_home(tmp_path) as me:
        owner = f"pid {os.getpid()}, {me.instance}"
        refused(tmp_path, owner)
        tell_serving(tmp_path, serving=True)
        refused(tmp_path, owner)
    with own_home(tmp_path):
        pass


def test_a_lock_file_that_is_removed_lets_nobody_in(tmp_path: Path) -> None:
    with own_home(tmp_path):
        (tmp_path / LOCK_FILE).unlink()
        tell_serving(tmp_path, serving=True)
        assert not (tmp_path / LOCK_FILE).exists()
        refused(tmp_path, "pid unknown")
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


def test_the_lock_file_tells_who_holds_it(tmp_path: Path) -> None:
    with own_home(tmp_path, "1.2-abc") as me:
        tell_serving(tmp_path, serving=True)
        tell_serving(tmp_path, serving=False)
        told = json.loads((tmp_path / LOCK_FILE).read_text())
        process = psutil.Process()
    assert (tmp_path / LOCK_FILE).stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"runtime_[0-9a-f]{32}", me.instance)
    assert told == {
        "pid": process.pid,
        "serving": False,
        "instance": me.instance,
        "start_ticks": me.process.start_ticks,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "namespace": os.stat("/proc/self/ns/pid").st_ino,
        "release": "1.2-abc",
    }
    began = psutil.boot_time() + me.process.start_ticks / os.sysconf("SC_CLK_TCK")
    assert began == pytest.approx(process.create_time(), abs=2)
    with own_home(tmp_path) as again:
        assert again.instance != me.instance


#: What a lock file may hold that nobody has locked.
LEFT = {
    "a dead process": {"pid": 999_999_999, "instance": "runtime_x"},
    "a process that has the number by now": {"pid": 1, "instance": "runtime_x"},
    "this process": {"pid": os.getpid(), "instance": "runtime_x"},
    "another boot": {"pid": 1, "boot_id": "0-0", "start_ticks": 1},
    "an older release": "4711 serving\n",
    "nothing": "",
    "no record": "[1]",
    "half a record": '{"pid": 1',
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT.keys())
def test_a_lock_file_that_was_left_keeps_nobody_out(
    tmp_path: Path, left: object
) -> None:
    text = left if isinstance(left, str) else json.dumps(left)
    (tmp_path / LOCK_FILE).write_text(text)
    assert serving_pid(str(tmp_path)) is None
    with own_home(tmp_path) as me:
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
        refused(tmp_path, f"pid {os.getpid()}, {me.instance}")


def test_a_record_that_somebody_wrote_over_is_no_matter(tmp_path: Path) -> None:
    with own_home(tmp_path):
        (tmp_path / LOCK_FILE).write_text("who knows")
        refused(tmp_path, "pid unknown")
        tell_serving(tmp_path, serving=True)
        assert serving_pid(str(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "x serving\n", "1 serving\n", "\xff\n", "1 2 3"])
def test_a_lock_file_with_other_words_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text, "latin-1")
    assert serving_pid(str(tmp_path)) is None
