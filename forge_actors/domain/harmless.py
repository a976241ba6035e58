"""Text that others wrote, made harmless wherever it is shown."""

from __future__ import annotations

import re

#: An escape sequence longer than this is no sequence but an attempt to make us wait.
MAX_SEQUENCE = 4096

STRING = rf"[^\x07\x1b\x9c]{{0,{MAX_SEQUENCE}}}"
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){STRING}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS …
    r"|\x1b[ -/]*[0-~]"
)
# C0 but tab and newline, DEL and C1; marks and overrides of direction, line and
# paragraph separators; tags, which nobody sees but a program may read.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\U000e0000-\U000e007f]"
)
# They stand for bytes that are no text.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r"[\t\n\r]+")


def clean(text: str) -> str:
    """One line without anything that could move a cursor or turn the text around."""
    return clean_lines(_SPACES.sub(" ", text))


def clean_lines(text: str) -> str:
    """The same, newlines and tabs kept."""
    text = _CONTROL.sub("", _SEQUENCE.sub("", text))
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
