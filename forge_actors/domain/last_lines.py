"""The last lines of what a job printed as errors, for the error that it ends with."""

from __future__ import annotations

import re

from forge_actors.domain.redaction import REDACTED, redact

#: How much of the end of an attempt's stderr its error tells.
LAST_LINES = 5
LAST_CHARACTERS = 1000

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_BEGIN_OF_KEY = "-----BEGIN "
_END_OF_KEY = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")


def last_lines(text: str) -> str:
    """The last lines of stderr that say something, without secrets, and not long.

    Redacted before it is cut: half a secret could not be recognised any more.
    """
    text = redact(_without_end_of_key(_ESCAPES.sub("", text)))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) <= LAST_CHARACTERS:
        return last
    last = last[-LAST_CHARACTERS:]
    # Not the rest of a path either: a part of one is not recognised when it is shown.
    return f"…{last[_first_space(last) :]}"


def _without_end_of_key(text: str) -> str:
    """The same without the end of a key block whose beginning is not in the tail."""
    # In two steps: one pattern for all of it would take the square of the length.
    end = _END_OF_KEY.search(text)
    if end is None or _BEGIN_OF_KEY in text[: end.start()]:
        return text
    return REDACTED + text[end.end() :]


def _first_space(text: str) -> int:
    found = re.search(r"\s", text)
    return 0 if found is None else found.start()
