"""TOML that somebody wrote, read within bounds and with the place of what is wrong."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from forge_actors.domain.errors import InvalidInput

#: Parts of one dotted key.
MAX_PARTS = 32
#: Strings and comments as a whole, an unfinished one up to the end; what ends a key.
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|"(?:\\.|[^"\\\n])*+"?'''
    r"""|'[^'\n]*+'?|\#[^\n]*+|\.|(?P<sign>[\[\]{}=,\n])""",
    re.DOTALL,
)


def read_table(text: str, path: str) -> dict[str, Any]:
    """All of a file, whose errors begin with `path`.

    Raises:
        InvalidInput: it is no TOML, or nested too deep.
    """
    if _nested(text) > MAX_PARTS:
        raise InvalidInput(path, f"has a key of more than {MAX_PARTS} dotted parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        problem = (
            str(error) if isinstance(error, ValueError) else "it is nested too deep"
        )
        raise InvalidInput(path, f"is no valid TOML: {problem}") from None


def line_of(text: str, key: str, *, table: str = "", index: int = 0) -> int | None:
    """Where a key stands, as it is usually written: in the top table, or in one of
    those that begin with `[[table]]`. Without the key, where that one begins."""
    wanted = re.compile(rf"\s*{re.escape(key)}\s*[=.]")
    header = re.compile(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]")
    inside, met, begin = not table, -1, None
    for number, line in enumerate(_bare(text).split("\n"), 1):
        if line.lstrip().startswith("["):
            found = header.match(line) is not None
            met += found
            inside = found and met == index
            begin = number if inside else begin
        elif inside and wanted.match(line):
            return number
    return begin


def _bare(text: str) -> str:
    """Without what is in strings and comments, on the same lines."""

    def blank(token: re.Match[str]) -> str:
        return token[0] if len(token[0]) == 1 else "\n" * token[0].count("\n")

    return _TOKEN.sub(blank, text)


def _nested(text: str) -> int:
    """The most dots between two other signs, which is how deep a key can lead: what is
    deep is slow to read."""
    most = dots = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ".":
            dots += 1
            most = max(most, dots)
        elif token.lastgroup == "sign":
            dots = 0
    return most
