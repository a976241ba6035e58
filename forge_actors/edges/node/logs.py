"""Reading a job's output back, also while it is written.

A log is what `agent/output.py` leaves: `<log>.<stream>` with the first half of the
limit, and past that `<log>.<stream>.tail`, a ring with the last half. Offsets are those
of the stream as the job wrote it. Reading takes the memory of one chunk, whatever the
size of the log.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import suppress
from typing import Literal, NamedTuple

from forge_actors.domain.requests import LogChunk
from forge_actors.edges.node.agent.output import HEADER, MAGIC, MARK, MARK_SECONDS

Stream = Literal["stdout", "stderr"]

#: Most bytes one call returns.
MAX_CHUNK = 1 << 20
#: Tries to read from a ring whose writer laps us, before we return without data.
_TRIES = 4


class _Ring(NamedTuple):
    """The header of a ring; all 0 while there is none."""

    claimed: int = 0
    written: int = 0
    #: Bytes of the stream that stay in its file, and how many the ring holds.
    head: int = 0
    size: int = 0


def size(log: str, stream: Stream) -> int:
    """Bytes of the stream so far, those not kept included."""
    ring = _open(f"{log}.{stream}.tail")
    if ring >= 0:
        try:
            header = _header(ring)
        finally:
            os.close(ring)
        if header.size:
            return header.written
    try:
        return os.stat(f"{log}.{stream}").st_size
    except FileNotFoundError:
        return 0


def read(
    log: str, stream: Stream, offset: int, limit: int, *, ended: bool = False
) -> LogChunk:
    """At most `limit` bytes from `offset`; a negative offset counts from the end.

    A chunk may be shorter than what there is: go on at its `next_offset` until one is
    empty. Say `ended` once the attempt has its receipt, so that the last chunk can say
    that nothing follows.
    """
    total = size(log, stream)
    offset = max(0, total + offset) if offset < 0 else min(offset, total)
    limit = min(limit, MAX_CHUNK)
    ring = _open(f"{log}.{stream}.tail")
    try:
        header = _header(ring)
        if header.size == 0 or offset < header.head:
            room = limit if header.size == 0 else min(limit, header.head - offset)
            data = _read_file(f"{log}.{stream}", offset, room)
            chunk = LogChunk(offset=offset, data=data, missing=0, ended=False)
        else:
            chunk = _read_ring(ring, offset, limit)
    finally:
        if ring >= 0:
            os.close(ring)
    chunk.ended = ended and chunk.next_offset >= total
    return chunk


def since(log: str, stream: Stream, moment: float, began: float) -> int:
    """The offset from which on the bytes came at `moment` or later.

    Exact to the length of a mark, and never too large: what is shown may begin a little
    too early. Times are seconds of the wall clock; `began` is the start of the job.
    """
    marks = [(began, began + MARK_SECONDS, 0), *_marks(f"{log}.{stream}.times")]
    place = bisect_right(marks, moment, key=lambda mark: mark[0]) - 1
    if place < 0:
        return 0
    _, end, offset = marks[place]
    if moment < end:
        return offset
    if place + 1 < len(marks):
        return marks[place + 1][2]
    # Nothing was marked since, so nothing came, unless there was no room for marks.
    return offset if _last_write(log, stream) >= moment else size(log, stream)


def _marks(path: str) -> list[tuple[float, float, int]]:
    fd = _open(path)
    if fd < 0:
        return []
    with open(fd, "rb") as file:
        data = file.read()
    return list(MARK.iter_unpack(data[: len(data) // MARK.size * MARK.size]))


def _last_write(log: str, stream: Stream) -> float:
    """When the stream was written to, or 0 if it never was."""
    moments = [0.0]
    for suffix in ("", ".tail"):
        with suppress(FileNotFoundError):
            moments.append(os.stat(f"{log}.{stream}{suffix}").st_mtime)
    return max(moments)


def _read_ring(ring: int, offset: int, limit: int) -> LogChunk:
    """Read around the ring what it holds from `offset` on.

    The writer may lap us between the header and the data, and we would take its new
    bytes for the old ones. It claims first what it will overwrite; so we look at the
    claim after reading, and what lies before it counts as missing.
    """
    start = offset
    data = b""
    for _ in range(_TRIES):
        header = _header(ring)
        start = max(start, header.claimed - header.size)
        length = min(limit, header.written - start)
        if length <= 0:
            break
        data = _read_around(ring, start - header.head, length, header.size)
        oldest = _header(ring).claimed - header.size
        if oldest > start:
            data = data[oldest - start :]
            start = oldest
        if data:
            break
    return LogChunk(offset=start, data=data, missing=start - offset, ended=False)


def _read_around(ring: int, position: int, length: int, ring_size: int) -> bytes:
    position %= ring_size
    first = min(length, ring_size - position)
    data = os.pread(ring, first, HEADER.size + position)
    if first < length:
        data += os.pread(ring, length - first, HEADER.size)
    return data


def _header(ring: int) -> _Ring:
    data = os.pread(ring, HEADER.size, 0) if ring >= 0 else b""
    if len(data) < HEADER.size:
        return _Ring()
    magic, *numbers = HEADER.unpack(data)
    return _Ring(*numbers) if magic == MAGIC else _Ring()


def _read_file(path: str, offset: int, length: int) -> bytes:
    fd = _open(path)
    if fd < 0:
        return b""
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)


def _open(path: str) -> int:
    """A descriptor, or -1 while there is no such file."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
