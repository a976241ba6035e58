"""What the agent writes down: an attempt before it begins, a receipt before it is told.

One file an agent, one JSON line a record, written with a plain write: that survives
the death of the agent and of the service. What a power cut takes with it is a job whose
outcome is unknown, which the recovery of the service expects anyway. With no service
connected there is nobody to be slow for, and the file is synced.

Of an attempt only the last line counts: `starting`, then `started` with its identity,
then its receipt, until the service has saved that.
"""

from __future__ import annotations

import contextlib
import errno
import os

#: The file is written anew without what is forgotten once it is longer than this.
LIMIT = 1 << 20


# Not every system has the cheaper one.
_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """The lines that are needed still."""

    def __init__(self, path: str) -> None:
        """Create the file.

        Raises:
            OSError: it exists, or its folder cannot be written.
        """
        self._path = path
        self._fd = self._open(path)
        self._size = 0
        #: Lines that are needed still were synced: a file in its place must be as well.
        self._promised = False
        #: The folder is known to hold this file after a power cut.
        self._linked = False
        #: Where the line of each attempt lies: offset and length, newline included.
        self._places: dict[tuple[str, int], tuple[int, int]] = {}

    @staticmethod
    def _open(path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, 0o600)

    def append(self, key: tuple[str, int], line: bytes) -> None:
        """Write one line in place of the last of this attempt, without its newline.

        Raises:
            OSError: it is not written; the file is as it was.
        """
        line += b"\n"
        begin, length = self._size, len(line)
        try:
            if os.pwrite(self._fd, line, begin) < length:
                raise OSError(errno.ENOSPC, "the disk took only a part of a line")
        except OSError:
            os.ftruncate(self._fd, begin)
            raise
        self._places[key] = (begin, length)
        self._size = begin + length
        # Usually the file shrinks when the last attempt is forgotten. A service under
        # load never gets there: something always runs.
        if self._size > LIMIT and self._outstanding() < self._size // 4:
            self._rewrite()

    def forget(self, key: tuple[str, int]) -> None:
        self._places.pop(key, None)
        if self._places:
            return
        self._promised = False
        if self._size > LIMIT:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def sync(self) -> None:
        """Make what is written survive a power cut.

        Raises:
            OSError: the disk did not take it.
        """
        _sync(self._fd)
        if not self._linked:
            self._sync_folder()
        self._promised = True

    def _sync_folder(self) -> None:
        folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._linked = True

    def close(self) -> None:
        """Delete the file if nothing in it is needed."""
        os.close(self._fd)
        if not self._places:
            os.unlink(self._path)

    def _outstanding(self) -> int:
        return sum(length for _, length in self._places.values())

    def _read(self, place: tuple[int, int]) -> bytes:
        return os.pread(self._fd, place[1], place[0])

    def _rewrite(self) -> None:
        """Replace the file by one with only the lines that are needed still.

        Under a name of its own first: dying in the middle must not lose one.
        """
        lines = {key: self._read(place) for key, place in self._places.items()}
        draft = self._path + ".new"
        try:
            fd = self._write_anew(draft, b"".join(lines.values()))
        except OSError:
            # It only stays long: the disk is full, and what is to be written fits.
            with contextlib.suppress(OSError):
                os.unlink(draft)
            return
        os.close(self._fd)
        self._fd = fd
        self._linked = False
        self._size = 0
        for key, line in lines.items():
            self._places[key] = (self._size, len(line))
            self._size += len(line)
        if self._promised:
            # What is synced next must not be in a file that a power cut takes away.
            with contextlib.suppress(OSError):  # the next sync tries again
                self._sync_folder()

    def _write_anew(self, draft: str, data: bytes) -> int:
        fd = self._open(draft)
        try:
            if os.pwrite(fd, data, 0) < len(data):
                raise OSError(errno.ENOSPC, "the disk took only a part of the lines")
            if self._promised:
                _sync(fd)
            os.replace(draft, self._path)
        except OSError:
            os.close(fd)
            raise
        return fd
