"""Places for values that a shell would read, which there must not be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.placeholders import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.requests import JobRequest

_SHELLS = frozenset(
    {
        *("sh", "bash", "dash", "zsh", "ksh", "fish", "ash"),
        *("csh", "tcsh", "mksh", "rbash", "rksh", "yash"),
    }
)
_OPTION = re.compile(r"[-+].+", re.DOTALL)
_COMMAND_FLAG = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")
#: An option, such as `-o`, behind which its value stands.
_TAKES_VALUE = re.compile(r"[-+][A-Za-z]*[oO]")
_READS_INPUT = re.compile(r"-[A-Za-z]*s[A-Za-z]*")


def check_shells(request: JobRequest, where: str) -> None:
    """Refuse a place that a shell would read: a value could be a command there.

    Raises:
        InvalidInput: naming the field, which begins with `where`.
    """
    why = (
        "would be read by a shell with a value in it: pass the value as an argument of"
        ' its own, and name that as "$1"'
    )
    words = [part if isinstance(part, str) else "" for part in request.argv]
    commands, reads_input = _read(words)
    fields = ["verify", "after_job", *(["stdin"] if reads_input else [])]
    for field in fields:
        if any(names(getattr(request, field) or "")):
            raise InvalidInput(f"{where}.{field}", why)
    for index in commands:
        if any(names(words[index])):
            raise InvalidInput(f"{where}.argv[{index}]", why)


def _read(words: Sequence[str]) -> tuple[list[int], bool]:
    """Which words a shell among them would read as a command, and whether one reads
    its commands from its input."""
    commands = []
    shell = flagged = operand = of_option = reads_input = False
    for index, word in enumerate(words):
        if word.rpartition("/")[2] in _SHELLS:
            shell, flagged, operand, of_option = True, False, False, False
        elif not shell:
            continue
        elif of_option:
            of_option = False
        elif _OPTION.fullmatch(word):
            flagged = flagged or bool(_COMMAND_FLAG.fullmatch(word))
            if not operand and _READS_INPUT.fullmatch(word):
                reads_input = True
            of_option = bool(_TAKES_VALUE.fullmatch(word))
            if word.startswith("--command="):
                commands.append(index)
        elif flagged:
            commands.append(index)
            shell = False
        else:
            operand = True
    return commands, reads_input or (shell and not (flagged or operand))
