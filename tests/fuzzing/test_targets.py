"""Each target holds for its seeds and for what broke it once, without a fuzzer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput, Refused
from fuzzing import FOUND, place
from fuzzing.table import BY_NAME, TARGETS
from fuzzing.target import Broken, Refusing, attempt, pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fuzzing.target import Target


@pytest.fixture(scope="module", autouse=True)
def _no_inputs_are_left() -> Iterator[None]:
    yield
    place.leave()  # a worker of xdist ends without what is to be done at its exit


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_target_holds_for_its_seeds_and_for_what_was_found(target: Target) -> None:
    found = sorted((FOUND / target.name).glob("*"))
    for data in (b"", b"\0", b"\xff", *target.seeds, *(f.read_bytes() for f in found)):
        target.check(data)


def test_what_was_found_is_of_a_target() -> None:
    assert {folder.name for folder in FOUND.iterdir()} <= set(BY_NAME)


def test_a_refusal_is_one_line_that_can_be_shown() -> None:
    def refuse(error: Exception) -> None:
        raise error

    assert attempt(refuse, InvalidInput("field", "is \x1b[31mred\nand more")) is None
    with pytest.raises(Refused):
        attempt(refuse, Refused("another error than the documented one"))
    message = InvalidInput("field", "x")
    message.args = ("two\nlines",)
    with pytest.raises(Broken, match="no plain line"):
        attempt(refuse, message)
    message.args = ("y" * 10_000,)
    with pytest.raises(Broken, match="10000 characters"):
        attempt(refuse, message)
    assert Refusing(KeyError)(refuse, KeyError("x")) is None


@pytest.mark.parametrize("front", [b"\0", b"\1\x80", b"\3\x20\x60\xa0", b"\7"])
def test_pieces_are_the_whole(front: bytes) -> None:
    pieces, whole = pieces_of(front + b"some more bytes")
    assert b"".join(pieces) == whole
    assert len(pieces) > 1
