"""Receipts: what became of the content of each worktree, one folder a worktree.

A receipt is replaced as a whole after each step, and is on the disk before the next one
begins. One that cannot be read is put aside and counts as none.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.removal import Receipt
from forge_actors.edges.cleanup.worktrees.packing import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.cleanup.folders import Folder

#: The folder of a home in which that lies which was saved of worktrees.
PRESERVED = "preserved"
RECEIPT = "receipt.json"
#: Bytes of a receipt; one that is larger is none of ours.
MAX_BYTES = 4 << 20


@contextmanager
def preserved(home: Folder, worktree: str) -> Iterator[Folder]:
    """The folder of what is saved of a worktree, which is made if it is not there.

    Raises:
        Unsafe: something else is in its place.
    """
    with (
        home.make_folder(PRESERVED) as around,
        around.make_folder(worktree) as folder,
    ):
        os.fsync(around.fd)
        os.fsync(home.fd)
        yield folder


@contextmanager
def found(home: Folder, worktree: str) -> Iterator[Folder | None]:
    """The same folder if it is there.

    Raises:
        Unsafe: something else is in its place.
    """
    with ExitStack() as opened:
        folder: Folder | None = home
        for name in (PRESERVED, worktree):
            folder = None if folder is None else folder.folder(name)
            if folder is not None:
                opened.enter_context(folder)
        yield folder


def read(folder: Folder) -> Receipt | None:
    """The receipt in a folder; None if there is none that can be read."""
    try:
        with open(open_plain(folder, RECEIPT), "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    try:
        if len(content) > MAX_BYTES:
            raise msgspec.ValidationError("it is too large")
        return msgspec.json.decode(content, type=Receipt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        with suppress(OSError):
            os.rename(
                RECEIPT,
                f"{RECEIPT}.damaged",
                src_dir_fd=folder.fd,
                dst_dir_fd=folder.fd,
            )
        return None


def write(folder: Folder, receipt: Receipt) -> None:
    """Replace the receipt; it is on the disk when this returns.

    Raises:
        OSError: it is what it was.
    """
    draft = f".{RECEIPT}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600, dir_fd=folder.fd)
    with open(fd, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(receipt)))
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, RECEIPT, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    os.fsync(folder.fd)
