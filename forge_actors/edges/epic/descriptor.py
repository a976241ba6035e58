"""An open descriptor that one object owns."""

from __future__ import annotations

import os

from forge_actors.domain.epic.errors import StateError


class Descriptor:
    """It is closed once: its number may be another file's by the time of a second."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number

    @property
    def number(self) -> int:
        """
        Raises:
            StateError: it is closed.
        """
        if self._number is None:
            raise StateError("the descriptor is closed")
        return self._number

    @property
    def is_open(self) -> bool:
        return self._number is not None

    def close(self) -> None:
        """May be called again."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)
