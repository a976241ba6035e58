"""The output of several jobs: frames from the service, lines with a prefix each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.job_text import TAIL, Json
from forge_actors.cli.text import clean, fit, width

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Columns of a prefix.
MAX_PREFIX = 24
#: Bytes of a line that are held back; a longer one is broken.
MAX_LINE = 64 * 1024


def frames(pieces: Iterator[bytes]) -> Iterator[tuple[Json, bytes]]:
    """Each frame of a `POST /v1/logs`: what its line says, and its bytes."""
    buffer = bytearray()
    head: Json | None = None
    for piece in pieces:
        buffer += piece
        while True:
            if head is None:
                end = buffer.find(b"\n")
                if end < 0:
                    break
                head = json.loads(buffer[:end])
                del buffer[: end + 1]
            size = head["bytes"]
            if len(buffer) < size:
                break
            yield head, bytes(buffer[:size])
            del buffer[:size]
            head = None


class Prefixer:
    """Puts the name of its job in front of each line.

    A line comes out when it is complete, so that the lines of two jobs never mix.
    """

    def __init__(self, *, clean: bool) -> None:
        self._clean = clean
        self._jobs: dict[str, str | None] = {}
        self._prefixes: dict[str, bytes] = {}
        self._cleaners: dict[tuple[str, str], Cleaner] = {}
        self._partial: dict[tuple[str, str], bytes] = {}

    def feed(self, frame: Json, data: bytes) -> bytes:
        """The lines that a frame completes."""
        job = frame["job"]
        if frame["ended"]:
            return b"".join(self._rest(job, name) for name in ("stdout", "stderr"))
        if frame["stream"] is None:
            self._jobs[job] = frame["name"]
            return b""
        if not self._prefixes:
            self._prefixes = _prefixes(self._jobs)
        key = (job, frame["stream"])
        whole = self._partial.get(key, b"") + self._shown(key, data)
        *lines, rest = whole.split(b"\n")
        while len(rest) > MAX_LINE:
            lines.append(rest[:MAX_LINE])
            rest = rest[MAX_LINE:]
        self._partial[key] = rest
        return b"".join(self._prefixes[job] + line + b"\n" for line in lines)

    def _rest(self, job: str, stream: str) -> bytes:
        """The last line of a stream, if no newline ended it.

        More than one, where a sequence that does not end had hidden them.
        """
        rest = self._partial.pop((job, stream), b"")
        cleaner = self._cleaners.pop((job, stream), None)
        if cleaner is not None:
            rest += cleaner.feed(b"", final=True).encode()
        lines = rest.removesuffix(b"\n").split(b"\n") if rest else []
        return b"".join(self._prefixes[job] + line + b"\n" for line in lines)

    def _shown(self, key: tuple[str, str], data: bytes) -> bytes:
        if not self._clean:
            return data
        cleaner = self._cleaners.setdefault(key, Cleaner())
        return cleaner.feed(data).encode()


def _prefixes(jobs: dict[str, str | None]) -> dict[str, bytes]:
    """`name | `, or the tail of the id where the name is missing or not its own."""
    names = list(jobs.values())
    words = {
        job: fit(clean(name), MAX_PREFIX)
        if name and names.count(name) == 1
        else job[-TAIL:]
        for job, name in jobs.items()
    }
    size = max(map(width, words.values()))
    return {
        job: f"{word}{' ' * (size - width(word))} | ".encode()
        for job, word in words.items()
    }
