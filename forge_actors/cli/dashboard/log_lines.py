"""The output of a job as lines: made harmless, bounded, and searched."""

from __future__ import annotations

from forge_actors.cli.cleaner import Cleaner

#: Lines that are kept, the last ones; and characters of one of them.
MAX_LINES, MAX_LINE = 20_000, 4096
TAB = 8


class LogLines:
    """The last lines of what was fed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: How many were there before these.
        self.dropped = 0
        self._cleaner = Cleaner()
        #: The last line, as long as its end has not come.
        self._open = False

    def feed(self, data: bytes, *, final: bool = False) -> None:
        text = self._cleaner.feed(data, final=final)
        if not text:
            return
        first, *others = text.split("\n")
        if self._open:
            self.lines[-1] = _cut(self.lines[-1] + first)
        elif first or others:
            self.lines.append(_cut(first))
        self.lines += map(_cut, others)
        self._open = True
        if others and not others[-1]:
            # It ended with a newline: the next line begins when something comes.
            self.lines.pop()
            self._open = False
        too_many = len(self.lines) - MAX_LINES
        if too_many > 0:
            del self.lines[:too_many]
            self.dropped += too_many

    def find(self, word: str, start: int, step: int) -> int | None:
        """The next line that way with the word in it, beginning at `start`; it goes on
        at the other end."""
        if not word or not self.lines:
            return None
        word, count = word.casefold(), len(self.lines)
        for distance in range(count):
            place = (start + step * distance) % count
            if word in self.lines[place].casefold():
                return place
        return None


def _cut(line: str) -> str:
    line = line.expandtabs(TAB)
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
