"""Attacks on a clean-up: something is exchanged between any two calls of the system."""

from __future__ import annotations

import ctypes
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from forge_actors.edges.cleanup import folders, visit, walking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100
_EXCHANGE = 2


class Calls:
    """The module `os`, with something done before one of the calls through it."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.count = 0
        self._at = at
        self._act = act

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if not callable(found) or name in ("geteuid", "fsencode", "close"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.count == self._at:
                self._act()
            self.count += 1
            return found(*args, **kwargs)

        return call

    def listen(self, patch: pytest.MonkeyPatch) -> None:
        """Have the calls of the clean-up go through this one."""
        for module in (folders, visit, walking):
            patch.setattr(module, "os", self)


def put_link(place: Path, victim: Path) -> None:
    """Move what is at `place` away, and put a link to the victim there."""
    with suppress(FileNotFoundError):
        place.rename(place.with_name(f"{place.name}.away"))
        place.symlink_to(victim)


def exchange(place: Path, victim: Path) -> None:
    """Exchange `place` and the victim in one step; nothing if one is not there."""
    _libc.renameat2(
        _AT_FDCWD, os.fsencode(place), _AT_FDCWD, os.fsencode(victim), _EXCHANGE
    )


def exchange_folder(place: Path, victim: Path) -> None:
    """The same where `place` is a folder."""
    if place.is_dir():
        exchange(place, victim)


def put_in(place: Path, victim: Path) -> None:
    """Put the victim itself in the way, in place of what is moved away."""
    with suppress(FileNotFoundError):
        place.rename(place.with_name(f"{place.name}.away"))
        victim.rename(place)


class Victim:
    """Content outside of the home, which is known again wherever it is moved to."""

    def __init__(self, place: Path) -> None:
        self.folder = place
        (place / "inner").mkdir(parents=True)
        self.file = place.with_name(f"{place.name}-file")
        content = (self.file, place / "content", place / "inner" / "content")
        for file in content:
            file.write_text("precious")
        self._folder = os.open(place, os.O_RDONLY)
        self._files = [os.open(path, os.O_RDONLY) for path in content]

    def assert_whole(self) -> None:
        """Nothing of it was removed or changed."""
        assert sorted(os.listdir(self._folder)) == ["content", "inner"]  # noqa: PTH208
        inner = os.stat("inner", dir_fd=self._folder)
        assert inner.st_mode & 0o777 == 0o755
        for fd in self._files:
            assert os.fstat(fd).st_nlink == 1
            assert os.pread(fd, 100, 0) == b"precious"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._folder, *self._files):
            os.close(fd)


def fresh_home(place: Path) -> Path:
    """A home with a tree and a file that are to go, in place of the last one."""
    for old in place.parent.glob(f"{place.name}*"):
        if old.is_symlink():
            old.unlink()
        else:
            shutil.rmtree(old)
    make_tree(place / "logs" / "tree")
    (place / "logs" / "file").write_text("x")
    return place


def make_tree(place: Path) -> None:
    (place / "inner" / "deep").mkdir(parents=True)
    (place / "inner" / "file").write_text("x")
    (place / "closed").mkdir(mode=0o555)
    (place / "file").write_text("x")
