"""Receipts on disk: what the agent knows before anyone is told.

One file an agent, one JSON line a receipt, written with a plain write: that survives
the death of the agent and of the service. What a power cut takes with it is a job whose
outcome is unknown, which the recovery of the service expects anyway.
"""

from __future__ import annotations

import errno
import os

#: The file is written anew without what is forgotten once it is longer than this.
LIMIT = 1 << 20


class Journal:
    """The receipts that the service has not yet saved as its own."""

    def __init__(self, path: str) -> None:
        """Create the file.

        Raises:
            OSError: it exists, or its folder cannot be written.
        """
        self._path = path
        self._fd = self._open(path)
        self._size = 0
        #: Where each outstanding receipt lies: offset and length, newline included.
        self._places: dict[tuple[str, int], tuple[int, int]] = {}

    @staticmethod
    def _open(path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, 0o600)

    def append(self, key: tuple[str, int], receipt: bytes) -> None:
        """Write one receipt, without its newline.

        Raises:
            OSError: it is not written; the file is as it was.
        """
        line = receipt + b"\n"
        try:
            written = os.pwrite(self._fd, line, self._size)
            if written < len(line):
                raise OSError(errno.ENOSPC, "the disk took only a part of a receipt")
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._places[key] = (self._size, len(line))
        self._size += len(line)
        # Usually the file shrinks when the last receipt is forgotten. A service under
        # load never gets there: some receipt is always on its way.
        if self._size > LIMIT and self._outstanding() < self._size // 4:
            self._rewrite()

    def find(self, key: tuple[str, int]) -> bytes | None:
        """The receipt of an attempt that ended and is not forgotten."""
        place = self._places.get(key)
        return self._read(place).rstrip(b"\n") if place else None

    def forget(self, key: tuple[str, int]) -> None:
        self._places.pop(key, None)
        if not self._places and self._size > LIMIT:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def close(self) -> None:
        """Delete the file if the service has saved everything that is in it."""
        os.close(self._fd)
        if not self._places:
            os.unlink(self._path)

    def _outstanding(self) -> int:
        return sum(length for _, length in self._places.values())

    def _read(self, place: tuple[int, int]) -> bytes:
        return os.pread(self._fd, place[1], place[0])

    def _rewrite(self) -> None:
        """Replace the file by one with only the outstanding receipts.

        Under a name of its own first: dying in the middle must not lose one.
        """
        lines = {key: self._read(place) for key, place in self._places.items()}
        data = b"".join(lines.values())
        draft = self._path + ".new"
        fd = self._open(draft)
        if os.pwrite(fd, data, 0) < len(data):
            os.close(fd)
            os.unlink(draft)
            return
        os.replace(draft, self._path)
        os.close(self._fd)
        self._fd = fd
        self._size = 0
        for key, line in lines.items():
            self._places[key] = (self._size, len(line))
            self._size += len(line)
