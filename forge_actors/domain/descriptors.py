"""Open descriptors that the process of a job begins with."""

from __future__ import annotations

from typing import Protocol

#: The number of the first one in the process; the others follow it.
FIRST = 3
#: Most that one process can be given.
MAX_DESCRIPTORS = 16


class Descriptors(Protocol):
    """Those for one process, open here until that has them or never will."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """What they are here, in their order; none once they are closed."""

    def close(self) -> None:
        """Close them here. Doing so again does nothing."""
