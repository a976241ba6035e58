"""The readers of the benchmark notice an event that is missing or told twice."""

from __future__ import annotations

import socket

import pytest

from benchmarks.listeners import Stream

HELLO = b"retry: 2000\n\n:\n"


def frames(*numbers: int) -> bytes:
    return b"".join(b'id: %d\ndata: {"of": "id: 9"}\n\n' % number for number in numbers)


def read(data: bytes, size: int) -> Stream:
    with socket.socket(socket.AF_UNIX) as line:
        stream = Stream(line, idle=False)
    for begin in range(0, len(data), size):
        stream.feed(data[begin : begin + size])
    return stream


@pytest.mark.parametrize("size", [1, 7, 33, 1000])
def test_all_are_heard_wherever_they_are_cut(size: int) -> None:
    stream = read(HELLO + frames(8, 9, 10, 11), size)
    assert (stream.first, stream.last, stream.ordered) == (8, 11, True)


@pytest.mark.parametrize("size", [1, 7, 33, 1000])
@pytest.mark.parametrize("numbers", [(8, 10, 11), (8, 9, 9, 10), (8, 9, 8), (9, 8)])
def test_one_that_is_missing_or_comes_twice_is_noticed(
    numbers: tuple[int, ...], size: int
) -> None:
    assert not read(HELLO + frames(*numbers), size).ordered
