"""The locks of the kernel that belong to an open file description.

A lock lasts until it is given back, or the last descriptor of its description is closed
in whatever process. So an unlock takes it from all that have inherited it.
"""

from __future__ import annotations

import fcntl


def lock(file: int) -> bool:
    """Lock it, unless somebody else has; what its description has locked stays so."""
    return _try(file, fcntl.LOCK_EX)


def look(file: int) -> bool:
    """Whether nobody has it; those who only look do not hinder each other."""
    return _try(file, fcntl.LOCK_SH)


def unlock(file: int) -> None:
    """Give it back, for every process that has the description."""
    fcntl.flock(file, fcntl.LOCK_UN)


def _try(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
