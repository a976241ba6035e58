"""What is held open for callers; the end of the runtime ends all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Held:
    """The waits of one runtime, a cancel scope each: a nursery would cost more."""

    def __init__(self) -> None:
        self._scopes: set[trio.CancelScope] = set()
        self._closed = False

    async def wait(self, happens: Callable[[], Awaitable[object]]) -> bool:
        """Wait until it happens; False if the runtime ends first."""
        if self._closed:
            return False
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                await happens()
            finally:
                self._scopes.discard(scope)
        return not self._closed

    def close(self) -> None:
        """Nothing happens any more."""
        self._closed = True
        for scope in self._scopes:
            scope.cancel()
