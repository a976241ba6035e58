"""A target: what is fuzzed, and the ways in which it must not break."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from forge_actors.domain.errors import ForgeError, InvalidInput
from forge_actors.domain.harmless import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

P = ParamSpec("P")
T = TypeVar("T")

#: Characters of a message; one that is longer is an input that is repeated.
MAX_MESSAGE = 8000
#: CPU seconds that one input may take; a fuzzer makes all of it slower by ten times.
MAX_SECONDS = 3.0
#: Of small inputs some are also tried as one of so many bytes that repeats them: what
#: takes the square of its size shows only there.
REPEATED, SMALL, ONE_IN = 32 * 1024, 48, 16

#: Bytes that come one by one where an input is cut as often as it can be.
SINGLY = 300

_UNITS = tuple(bytes([byte]) for byte in b"a 1.:=-'\"\\([\n\t")
_UNITS += (b"a ", b"a\n", b"a=", b"a:", b"a.")


class Broken(Exception):
    """What a target did with an input that it must not do."""


class Target(NamedTuple):
    """One thing that is fuzzed."""

    name: str
    #: What holds for every input.
    says: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    #: What a fuzzer is told to put into inputs.
    words: tuple[bytes, ...] = ()

    def check(self, data: bytes) -> None:
        """Run it on one input, and perhaps on that many times.

        Raises:
            Exception: it broke.
        """
        self._timed(data)
        if 0 < len(data) <= SMALL and not zlib.crc32(data) % ONE_IN:
            self._timed(data * (REPEATED // len(data)))

    def repeated(self) -> Iterator[bytes]:
        """Long inputs of one thing over and over, which a fuzzer hardly makes: each
        word, the beginning of each seed, and what texts are made of."""
        beginnings = [seed[:SMALL] for seed in self.seeds if seed]
        for unit in dict.fromkeys([*self.words, *beginnings, *_UNITS]):
            yield b"\1\x80" + unit * (REPEATED // len(unit))

    def _timed(self, data: bytes) -> None:
        before = time.thread_time()
        self.run(data)
        took = time.thread_time() - before
        if took > MAX_SECONDS:
            raise Broken(f"{len(data)} bytes took {took:.1f} s")


class Refusing:
    """Calls what may refuse its input with one of these errors."""

    def __init__(self, *errors: type[Exception]) -> None:
        self._errors = errors

    def __call__(
        self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """What it comes to; None if it was refused as it may be."""
        try:
            return parse(*args, **kwargs)
        except self._errors as error:
            if isinstance(error, ForgeError):
                check_message(str(error))
            return None


attempt = Refusing(InvalidInput)


def check_message(text: str) -> None:
    """What people are told: one line that is no threat to their terminal."""
    if not text.strip():
        raise Broken("the message of the error says nothing")
    if clean(text) != text:
        raise Broken(f"the message of the error is no plain line: {text!r:.500}")
    if len(text) > MAX_MESSAGE:
        raise Broken(f"the message of the error has {len(text)} characters")


def same(found: object, wanted: object, what: str) -> None:
    """Refuse what is not the same."""
    if found != wanted:
        raise Broken(f"{what}: {found!r:.2000} is not {wanted!r:.2000}")


def text_of(data: bytes) -> str:
    """An input as text, as good as it gets."""
    return data.decode("utf-8", "replace")


def argument_of(data: bytes) -> str:
    """An input as Python has what is written on a command line."""
    return data.decode("utf-8", "surrogateescape")


def pieces_of(data: bytes) -> tuple[list[bytes], bytes]:
    """An input in pieces, and whole: its first byte says how many cuts there are and
    the next ones where. With none of them each of the first bytes is a piece."""
    if not data:
        return [], b""
    count = data[0] % 8
    places, whole = data[1 : 1 + count], data[1 + count :]
    if not count:
        first = [whole[at : at + 1] for at in range(min(SINGLY, len(whole)))]
        return [*first, whole[SINGLY:]], whole
    cuts = sorted(place * len(whole) // 256 for place in places)
    begins, ends = [0, *cuts], [*cuts, len(whole)]
    return [whole[a:b] for a, b in zip(begins, ends, strict=True)], whole


def in_pieces(*seeds: bytes) -> tuple[bytes, ...]:
    """Seeds for what takes an input in pieces."""
    return tuple(front + seed for seed in seeds for front in (b"\0", b"\3\x20\x60\xa0"))


def finished(work: Coroutine[object, object, T]) -> T:
    """The result of what is async and waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise Broken("it waits for something")
