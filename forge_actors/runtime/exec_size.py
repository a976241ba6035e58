"""How large a command and its environment may be: a start must not fail for it.

The system takes each argument, and each variable with its name, up to a fixed size
(MAX_ARG_STRLEN), and all of them together up to another one (ARG_MAX).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import MAX_ARGUMENT_BYTES
from forge_actors.runtime.orders import allowed_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: However large the stack may be, the kernel takes no more than this.
MOST = 6 * 1024 * 1024
#: Of all that, what is ours: the variables of the job, the path of its program.
OURS = 16 * 1024
#: Of commands that have so few characters, and no variables, all fit.
SURELY_FITS = 16 * 1024
#: Each string has a pointer to it, and a byte behind its end.
EXTRA = 8 + 1


def check_exec_size(argv: Sequence[str], env: Mapping[str, str], prefix: str) -> None:
    """Raise InvalidInput if the system would not start this."""
    if not env and sum(map(len, argv)) < SURELY_FITS:
        return
    for name, value in env.items():
        size = _bytes(name) + 1 + _bytes(value)
        if size > MAX_ARGUMENT_BYTES:
            raise InvalidInput(
                f"{prefix}env",
                f"{name!r} is too long: name and value have {size} bytes,"
                f" the system takes {MAX_ARGUMENT_BYTES} (MAX_ARG_STRLEN)",
            )
    inherited = _size(allowed_environment())
    size, most = _size(env), exec_limit() - inherited
    total = size + sum(_bytes(part) + EXTRA for part in argv)
    if total > most:
        raise InvalidInput(
            f"{prefix}env" if 2 * size > total else f"{prefix}argv",
            f"arguments and variables have {total} bytes together,"
            f" the system takes {most} (ARG_MAX)",
        )


def exec_limit() -> int:
    """Bytes of arguments and environment that a job may have in all."""
    return min(os.sysconf("SC_ARG_MAX"), MOST) - OURS


def _size(env: Mapping[str, str]) -> int:
    return sum(_bytes(name) + 1 + _bytes(value) + EXTRA for name, value in env.items())


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
