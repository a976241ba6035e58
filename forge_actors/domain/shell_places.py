"""Places for values that a shell would read, which there must not be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.placeholders import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.requests import JobRequest

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "ash"})
_COMMAND_FLAG = re.compile(r"-[a-z]*c[a-z]*")


def check_shells(request: JobRequest, where: str) -> None:
    """Refuse a place that a shell would read: a value could be a command there.

    Raises:
        InvalidInput: naming the field, which begins with `where`.
    """
    why = (
        "would be read by a shell with a value in it: pass the value as an argument of"
        ' its own, and name that as "$1"'
    )
    for field in ("verify", "after_job"):
        if any(names(getattr(request, field) or "")):
            raise InvalidInput(f"{where}.{field}", why)
    words = [part if isinstance(part, str) else "" for part in request.argv]
    for index in _commands(words):
        if any(names(words[index])):
            raise InvalidInput(f"{where}.argv[{index}]", why)


def _commands(words: Sequence[str]) -> list[int]:
    """Which words a shell among them would read as a command."""
    found = []
    shell = False
    for index, word in enumerate(words):
        if word.rpartition("/")[2] in _SHELLS:
            shell = True
        elif shell and _COMMAND_FLAG.fullmatch(word) and index + 1 < len(words):
            found.append(index + 1)
            shell = False
    return found
