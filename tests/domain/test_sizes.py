"""Numbers of bytes, as people write and read them."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.sizes import parse_size, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [(0, 0), ("17", 17), ("2K", 2048), (" 1mib", 1 << 20)],
)
def test_sizes_are_read(text: str | int, size: int) -> None:
    assert parse_size(text, field="f") == size


def test_what_is_no_size_is_refused() -> None:
    for text in ("", "-1", "1X", "1.5G"):
        with pytest.raises(InvalidInput, match="is no size; write") as caught:
            parse_size(text, field="f")
        assert caught.value.field == "f"
    with pytest.raises(InvalidInput, match="outside 0M to 1024T") as caught:
        parse_size("1025T", field="f")
    assert caught.value.field == "f"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (99 * 1024 + 512, "99.5 KiB"),
        (100 * 1024 + 600, "101 KiB"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (10 << 30, "10 GiB"),
        (512 << 20, "512 MiB"),
        (3 << 50, "3072 TiB"),
    ],
)
def test_sizes_are_told(size: int, text: str) -> None:
    assert size_text(size) == text
