"""Reading a job's output back, also while it is written.

A log is what `agent/output.py` leaves: `<log>.<stream>` with the first half of the
limit, and past that `<log>.<stream>.tail`, a ring with the last half. Offsets are those
of the stream as the job wrote it. Reading takes the memory of one chunk, whatever the
size of the log.
"""

from __future__ import annotations

import os
from typing import Literal

from forge_actors.domain.requests import LogChunk
from forge_actors.edges.node.agent.output import HEADER, MAGIC, split_limit

Stream = Literal["stdout", "stderr"]

#: Most bytes one call returns.
MAX_CHUNK = 1 << 20
#: Tries to read from a ring whose writer laps us, before we return without data.
_TRIES = 4


def size(log: str, stream: Stream) -> int:
    """Bytes of the stream so far, those not kept included."""
    ring = _open(f"{log}.{stream}.tail")
    if ring >= 0:
        try:
            return _header(ring)[1]
        finally:
            os.close(ring)
    try:
        return os.stat(f"{log}.{stream}").st_size
    except FileNotFoundError:
        return 0


def read(
    log: str,
    stream: Stream,
    offset: int,
    limit: int,
    output_limit: int,
    *,
    ended: bool = False,
) -> LogChunk:
    """At most `limit` bytes from `offset`; a negative offset counts from the end.

    A chunk may be shorter than what there is: go on at its `next_offset` until one is
    empty. `output_limit` is that of the job's order. Say `ended` once the attempt has
    its receipt, so that the last chunk can say that nothing follows.
    """
    total = size(log, stream)
    offset = max(0, total + offset) if offset < 0 else min(offset, total)
    limit = min(limit, MAX_CHUNK)
    head, ring_size = split_limit(output_limit)
    if offset < head:
        data = _read_file(f"{log}.{stream}", offset, min(limit, head - offset))
        chunk = LogChunk(offset=offset, data=data, missing=0, ended=False)
    else:
        ring = _open(f"{log}.{stream}.tail")
        try:
            chunk = _read_ring(ring, offset, limit, head, ring_size)
        finally:
            if ring >= 0:
                os.close(ring)
    chunk.ended = ended and chunk.next_offset >= total
    return chunk


def _read_ring(
    ring: int, offset: int, limit: int, head: int, ring_size: int
) -> LogChunk:
    """Read around the ring what it holds from `offset` on.

    The writer may lap us between the header and the data, and we would take its new
    bytes for the old ones. It claims first what it will overwrite; so we look at the
    claim after reading, and what lies before it counts as missing.
    """
    start = offset
    data = b""
    for _ in range(_TRIES):
        claimed, total = _header(ring)
        start = max(start, claimed - ring_size)
        length = min(limit, total - start)
        if length <= 0:
            break
        data = _read_around(ring, start - head, length, ring_size)
        oldest = _header(ring)[0] - ring_size
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


def _header(ring: int) -> tuple[int, int]:
    """Bytes claimed and bytes written; both 0 while there is no ring."""
    data = os.pread(ring, HEADER.size, 0) if ring >= 0 else b""
    if len(data) < HEADER.size:
        return 0, 0
    magic, claimed, total = HEADER.unpack(data)
    return (claimed, total) if magic == MAGIC else (0, 0)


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
