"""The code on the pages: every block of it, and what the line before it says of it.

A comment right before a block, which no reader sees, may say

    <!-- not run: REASON -->        it is only looked at, for this reason
    <!-- example: CLAUSE, ... -->   what is there when it runs; see `stage.py`
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from docs.making.sources import OTHERS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"^( *)```+(\S*)\s*$")
_MARK = re.compile(r"^<!-- (not run|example): (.+) -->$")
#: Languages of blocks that are no code of ours: drawings, help and parts of pages.
NO_CODE = frozenset({"", "text", "ini", "{toctree}"})


class Block(NamedTuple):
    """A block of code on a page."""

    page: str
    line: int
    language: str
    text: str
    #: Why it is not run; empty if it is.
    not_run: str = ""
    clauses: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page that a user is shown."""
    folders = (ROOT / "docs", ROOT / "design")
    found = [path for folder in folders for path in sorted(folder.rglob("*.md"))]
    return [*OTHERS, *(path.relative_to(ROOT).as_posix() for path in found)]


def blocks_of(page: str) -> list[Block]:
    return list(_blocks(page, (ROOT / page).read_text("utf-8").splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    number = 0
    while number < len(lines):
        begin, fence = number, _FENCE.match(lines[number])
        number += 1
        if fence:
            indent, language = fence.groups()
            body = []
            while lines[number].strip() != "```":
                body.append(lines[number].removeprefix(indent))
                number += 1
            number += 1
            yield _block(page, lines, begin, language, body)
        elif lines[begin].startswith("    ") and not lines[begin - 1].strip():
            body = [lines[begin][4:]]
            while number < len(lines) and lines[number].startswith("    "):
                body.append(lines[number][4:])
                number += 1
            if body[0].startswith(("forge-actors ", "python ", "$ ")):
                yield _block(page, lines, begin, "sh", body)


def _block(
    page: str, lines: list[str], begin: int, language: str, body: list[str]
) -> Block:
    before = lines[begin - 1] if begin and lines[begin - 1].strip() else ""
    if not before and begin > 1:
        before = lines[begin - 2]  # what is indented has an empty line above it
    mark = _MARK.match(before)
    block = Block(page, begin + 1, language, "\n".join(body) + "\n")
    if mark is None:
        return block
    if mark[1] == "not run":
        return block._replace(not_run=mark[2])
    return block._replace(clauses=tuple(mark[2].split(", ")))


class Command(NamedTuple):
    """One line that is typed, and what the page shows as its answer."""

    text: str
    shown: tuple[str, ...] = ()


def commands_of(block: Block) -> list[Command]:
    """The commands of a block, without the prompts."""
    if block.language == "sh":
        lines = block.text.replace("\\\n", " ").splitlines()
        return [Command(line) for line in lines if line and not line.startswith("#")]
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif line.startswith("    ") and found and found[-1].text.endswith("\\"):
            found[-1] = Command(f"{found[-1].text[:-1]} {line.strip()}")
        elif line.strip():
            assert found, f"{block}: an answer without a command"
            found[-1] = found[-1]._replace(shown=(*found[-1].shown, line))
    return found
