"""The last lines of what a job printed as errors, for the error that it ends with."""

from __future__ import annotations

import re

from forge_actors.domain.redaction import REDACTED, redact

#: How much of the end of an attempt's stderr its error tells.
LAST_LINES = 5
LAST_CHARACTERS = 1000

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# The end of a key block whose beginning is not in the tail.
_END_OF_KEY = re.compile(
    r"\A(?:(?!-----BEGIN )[\s\S])*?(?:[A-Za-z0-9+/=]+\s+)*"
    r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
)


def last_lines(text: str) -> str:
    """The last lines of stderr that say something, without secrets, and not long.

    Redacted before it is cut: half a secret could not be recognised any more.
    """
    text = redact(_END_OF_KEY.sub(REDACTED, _ESCAPES.sub("", text)))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) <= LAST_CHARACTERS:
        return last
    last = last[-LAST_CHARACTERS:]
    # Not the rest of a path either: a part of one is not recognised when it is shown.
    return f"…{last[_first_space(last) :]}"


def _first_space(text: str) -> int:
    found = re.search(r"\s", text)
    return 0 if found is None else found.start()
