"""Receipts that node agents left on disk for a service that was not there."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import Receipt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds an agent whose service died may take to end its jobs. It needs 5 s of grace.
_OLD_AGENT_LIMIT = 30.0

_decode = msgspec.json.Decoder(Receipt).decode


async def previous_receipts(home: Path) -> list[Receipt]:
    """What former agents wrote down, oldest first, once the last of them is gone.

    They may be known already: a receipt is forgotten lazily.

    Raises:
        LauncherDown: the agent of a dead service still ends its jobs after 30 s.
    """
    with trio.move_on_after(_OLD_AGENT_LIMIT) as waiting:
        # There is nothing to wait for but the lock itself. When the wait is cancelled
        # the thread stays behind until it has the lock, and gives it back at once.
        await trio.to_thread.run_sync(
            _wait_for_lock, home / "agent.lock", abandon_on_cancel=True
        )
    if waiting.cancelled_caught:
        raise LauncherDown(
            f"the node agent of an earlier service still ends jobs of {home}; "
            f"its pid and name are in {home / 'agent.lock'}"
        )
    return [receipt for path in _files(home) for receipt in read_receipts(path)]


def remove_receipts(home: Path) -> None:
    """Delete what `previous_receipts` returned; not the file of an agent that lives."""
    living = _living_instance(home / "agent.lock")
    for path in _files(home):
        if path.stem != living:
            path.unlink(missing_ok=True)


def read_receipts(path: Path) -> Iterator[Receipt]:
    """The receipts of one agent. A last line that was cut off is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        if line.startswith(b'{"record":'):  # it has begun
            continue
        try:
            yield _decode(line)
        except msgspec.DecodeError:
            continue


def _files(home: Path) -> list[Path]:
    return sorted((home / "receipts").glob("*.jsonl"))


def _wait_for_lock(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _living_instance(path: Path) -> str | None:
    try:
        with path.open(encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return path.read_text(encoding="ascii").strip()
    return None
