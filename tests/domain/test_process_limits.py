"""Sizes and numbers that limit a job's processes, as people write them."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.process_limits import parse_memory, parse_nice, parse_pids


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1 << 20, 1 << 20),
        ("1048576", 1 << 20),
        ("1024K", 1 << 20),
        ("2G", 2 << 30),
        (" 512m ", 512 << 20),
        ("1GiB", 1 << 30),
        ("3gb", 3 << 30),
        ("1T", 1 << 40),
        ("1024T", 1 << 50),
    ],
)
def test_a_size_is_a_number_with_a_unit(value: str | int, size: int) -> None:
    assert parse_memory(value, field="memory") == size


@pytest.mark.parametrize(
    "value", ["", "G", "2X", "1.5G", "-1G", "2G extra", "1e9", 0, "1023K", "1025T"]
)
def test_anything_else_is_no_size(value: str | int) -> None:
    with pytest.raises(InvalidInput, match=r"write for example 512M|outside 1M to"):
        parse_memory(value, field="memory")


def test_numbers_have_bounds() -> None:
    assert [parse_nice(value, field="nice") for value in (0, 19)] == [0, 19]
    assert [parse_pids(value, field="pids") for value in (1, 1 << 22)] == [1, 1 << 22]
    for parse, value in ((parse_nice, 20), (parse_nice, -1), (parse_pids, 0)):
        with pytest.raises(InvalidInput, match="is outside"):
            parse(value, field="it")
