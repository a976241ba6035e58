"""One output stream of a job: from its pipe to the files of its log.

A stream is kept whole up to its limit. Past that, `<log>.<name>` holds the first half
and `<log>.<name>.tail` the last half as a ring, so that neither the first error nor the
last words of an endless job are lost. The pipe is read in all cases, a full disk
included: a job must never stand still because of its log.

`<log>.<name>.times` says when which part came, so that a reader can begin at a moment.
A stream that ends within a second of its start has none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
from time import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.masking import Masking

#: Most bytes taken from one pipe in one turn, so that a noisy job delays no other one.
READ_SIZE = 64 * 1024
#: Bytes of the end of a stream that a receipt repeats.
TAIL_SIZE = 16 * 1024
#: Reads of the last turn. A pipe holds at most 1 MiB unless a privileged job grew it.
LAST_READS = 64

MAGIC = b"FORGELG2"
#: Magic, bytes claimed, bytes written (see `Stream._write_ring`), then how many bytes
#: the file and the ring take: the limit may be another one when the log is read.
HEADER = struct.Struct("<8sQQQQ")

#: Seconds of output that one mark stands for; after so many marks, twice as many.
MARK_SECONDS = 1.0
MARKS_OF_A_LENGTH = 4096
#: The bytes from an offset up to the next mark came from one moment to another (UTC).
MARK = struct.Struct("<ddQ")


def split_limit(limit: int) -> tuple[int, int]:
    """How many bytes of a stream stay in its file, and how many in the ring."""
    return limit // 2, limit - limit // 2


class Stream:
    """The reading end of one pipe and where its bytes go.

    `total` counts every byte the job wrote, masked ones as their mark. `error` says,
    once, why the log is incomplete; from then on bytes are only counted. `kept` is
    where a reader finds the stream to end: `total`, until there is an error.
    """

    # What most streams never change they find here: a short job has two of them.
    total = 0
    kept = 0
    tail = b""
    error: str | None = None
    #: Takes secrets out of what is written; offsets are those of the result.
    masking: Masking | None = None
    _file = _ring = _times = -1
    _marks = 0
    _mark_length = MARK_SECONDS

    def __init__(self, fd: int, path: bytes, limit: int, *, keep_tail: bool) -> None:
        self.fd = fd
        #: As `os.read`, which it is for a pipe.
        self.read = os.read
        self._path = path
        self._keep_tail = keep_tail
        self._head, self._ring_size = split_limit(limit)
        now = time()
        self._mark_begin, self._mark_end = now, now + MARK_SECONDS

    def pump(self) -> bool:
        """Move what one read gives. False once no process can write any more."""
        data = self.read(self.fd, READ_SIZE)
        if not data:
            return False
        if self.masking is not None:
            data = self.masking.feed(data)
        if data:
            self.take(data)
        return True

    def drain(self) -> bool:
        """Move what is in the pipe now. True if a process could still write to it."""
        try:
            for _ in range(LAST_READS):
                if not self.pump():
                    return False
        except BlockingIOError:
            pass
        return True

    def take(self, data: bytes) -> None:
        """Count `data`, which is never empty, and write it to the log."""
        if not self._mark_begin <= time() < self._mark_end:
            self._mark()
        start = self.total
        self.total = start + len(data)
        if self._keep_tail:
            self.tail = (self.tail + data)[-TAIL_SIZE:]
        if self.error is not None:
            return
        try:
            room = self._head - start
            if room > 0:
                self._write_head(data[:room])
                data = data[room:]
                start = self._head
            if data and self._ring_size:
                self._write_ring(data, start)
            self.kept = self.total
        except OSError as error:
            self.kept = self._written(start)
            name = self._path.decode(errors="replace")
            self.error = f"the log {name} is incomplete: {error.strerror}"

    def _written(self, ring: int) -> int:
        """Where the log ends after an error; `ring` is what its header says then."""
        if self._ring >= 0:
            return ring
        return os.fstat(self._file).st_size if self._file >= 0 else 0

    def go_on(self, fd: int) -> None:
        """Take what comes from another pipe behind what is there."""
        self.fd = fd
        self.read = os.read

    def flush(self) -> None:
        """Nothing follows: write what was held back."""
        if self.masking is not None and (rest := self.masking.flush()):
            self.take(rest)

    def close(self) -> None:
        if self.fd < 0 and not self.total:
            return  # nothing was ever written, so there are no files
        for fd in (self.fd, self._file, self._ring, self._times):
            if fd >= 0:
                os.close(fd)
        self.fd = self._file = self._ring = self._times = -1

    def _mark(self) -> None:
        """Write down that what comes from here on comes now, or later."""
        self._marks += 1
        if self._marks % MARKS_OF_A_LENGTH == 0:
            self._mark_length *= 2
        self._mark_begin = time()
        self._mark_end = self._mark_begin + self._mark_length
        mark = MARK.pack(self._mark_begin, self._mark_end, self.total)
        try:
            if self._times < 0:
                self._times = _create(self._path + b".times")
            if os.write(self._times, mark) == len(mark):
                return
        except OSError:
            pass
        # A log without the rest of them is whole all the same.
        self._mark_begin, self._mark_end = float("-inf"), float("inf")

    def _write_head(self, data: bytes) -> None:
        if self._file < 0:
            self._file = _create(self._path)
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def _write_ring(self, data: bytes, start: int) -> None:
        """Write bytes that begin at offset `start` of the stream.

        The obvious header holds one number, the bytes written, updated after each
        write. A reader that comes between the two writes takes new bytes for the old
        ones it asked for, and the number it checks afterwards has not moved yet. So
        the header says first what will be overwritten (claimed), then what was.
        """
        if self._ring < 0:
            self._ring = _create(self._path + b".tail")
            # What goes into the first half is complete; few files may be open at once.
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
        sizes = self._head, self._ring_size
        os.pwrite(self._ring, HEADER.pack(MAGIC, self.total, start, *sizes), 0)
        if len(data) > self._ring_size:
            start += len(data) - self._ring_size
            data = data[-self._ring_size :]
        position = (start - self._head) % self._ring_size
        first = self._ring_size - position
        _pwrite_all(self._ring, data[:first], HEADER.size + position)
        _pwrite_all(self._ring, data[first:], HEADER.size)
        header = HEADER.pack(MAGIC, self.total, self.total, *sizes)
        os.pwrite(self._ring, header, 0)


def _pwrite_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written


def _create(path: bytes) -> int:
    """A new private file, or the emptied one of the same attempt.

    Raises:
        OSError: it cannot be made, or what is there is no plain file of ours.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    # A job of this user could have put a link to a precious file here: O_NOFOLLOW
    # stops a symbolic one, the count of names a hard one; only then is it emptied.
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(fd)
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.geteuid()
        or status.st_nlink != 1
    ):
        os.close(fd)
        raise FileExistsError(errno.EEXIST, "something else has its name", path)
    os.ftruncate(fd, 0)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + b".tail")
    return fd
