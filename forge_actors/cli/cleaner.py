"""Output of others made fit for a terminal while it arrives, in pieces of any size."""

from __future__ import annotations

import codecs
import io
import re

from forge_actors.domain.harmless import STRING, clean_lines

#: The beginning of an escape sequence whose end is still to come.
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,256}"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){STRING}\x1b?"
    r"|\x1b[ -/]{0,256})\Z"
)


class Cleaner:
    """`clean_lines` for bytes that come in pieces of any size."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        text = self._held + self._decoder.decode(data, final)
        unfinished = None if final else _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._held = text[end:]
        return clean_lines(text[:end])
