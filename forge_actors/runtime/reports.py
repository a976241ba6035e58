"""What a service writes down of itself: files in its home, a bounded number of them."""

from __future__ import annotations

import os
from contextlib import suppress
from time import gmtime, strftime
from typing import TYPE_CHECKING, Literal

from forge_actors.runtime.homes import DIAGNOSTICS

if TYPE_CHECKING:
    from pathlib import Path

#: What a report is of: the tasks, the memory, a loop that did not turn.
Kind = Literal["tasks", "memory", "blocked"]
KINDS: tuple[Kind, ...] = ("tasks", "memory", "blocked")
#: Files of each kind that are kept, the newest.
KEPT = 8
#: Characters of one file.
MAX_REPORT = 4 << 20


def write_report(home: Path, kind: Kind, text: str, now: float) -> Path:
    """Write one, for its owner alone; the oldest ones of its kind make room.

    Raises:
        OSError: it cannot be written.
    """
    folder = home / DIAGNOSTICS
    folder.mkdir(mode=0o700, exist_ok=True)
    millis = int(now * 1000) % 1000
    moment = strftime("%Y%m%dT%H%M%S", gmtime(now))
    path = folder / f"{kind}-{moment}.{millis:03}Z.txt"
    fresh = folder / f"{path.name}.new"
    with open(fresh, "w", encoding="utf-8", errors="replace", opener=_private) as file:
        file.write(text[:MAX_REPORT])
    for old in _of_kind(folder, kind)[: 1 - KEPT]:
        with suppress(OSError):
            old.unlink()
    fresh.replace(path)
    return path


def latest_reports(home: Path) -> list[Path]:
    """The newest file of each kind."""
    folder = home / DIAGNOSTICS
    found = (_of_kind(folder, kind) for kind in KINDS)
    return [paths[-1] for paths in found if paths]


def _of_kind(folder: Path, kind: Kind) -> list[Path]:
    # Their names sort as their moments do.
    return sorted(folder.glob(f"{kind}-*.txt"))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
