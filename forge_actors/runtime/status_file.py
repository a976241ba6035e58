"""The status file: how far a service is, for those who cannot ask it.

It is written for every change and never read back, so it is not synced, and a disk
that is full keeps nobody from serving.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from forge_actors.runtime.homes import RUNTIME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STATUS_FILE = "status.json"
LAST_EXIT = "last-exit.json"
#: Bytes of such a file that are looked at.
MAX_BYTES = 256 * 1024


class StatusFile:
    """That of one owner of a home, by its instance and its process."""

    def __init__(self, home: Path, instance: str) -> None:
        self._folder = home / RUNTIME
        self._instance = instance
        self._written = False
        # Of a loop that is blocked another thread tells.
        self._lock = Lock()

    def write(self, snapshot: Mapping[str, object]) -> None:
        """Have it say this, unless another owner has written it since we did."""
        path = self._folder / STATUS_FILE
        with self._lock, suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if not self._written or self._is_ours(path) or not path.exists():
                _replace(path, snapshot)
            self._written = True

    def remove(self) -> None:
        """Remove it, if it is ours."""
        path = self._folder / STATUS_FILE
        with self._lock, suppress(OSError):
            if self._is_ours(path):
                path.unlink()

    def _is_ours(self, path: Path) -> bool:
        found = read_json(path)
        return (found.get("instance"), found.get("pid")) == (
            self._instance,
            os.getpid(),
        )

    def write_exit(self, record: Mapping[str, object]) -> None:
        """How this service ended, for whoever asks why there is none."""
        with self._lock, suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _replace(self._folder / LAST_EXIT, record)


def last_exit(home: Path) -> dict[str, object]:
    """How the last service of a home ended; nothing if none did."""
    return read_json(home / RUNTIME / LAST_EXIT)


def read_json(path: Path) -> dict[str, object]:
    """What is in such a file; nothing if it is not there or not one."""
    try:
        with open(path, "rb", opener=_careful) as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, content: Mapping[str, object]) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with open(fresh, "w", encoding="ascii", opener=_private) as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    fresh.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _careful(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
