"""Interrupts of a worker: the first one ends its step, the second one ends it."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130


class Interrupts:
    """Counts them from the moment that it is made, before anything else begins."""

    def __init__(self) -> None:
        self.count = 0
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        # Also where whoever started us ignores it.
        signal.signal(signal.SIGINT, self._came)

    @contextmanager
    def ending(self) -> Iterator[trio.CancelScope]:
        """What is in here is cancelled by the first one."""
        self._token = trio.lowlevel.current_trio_token()
        with self._scope:
            if self.count:
                self._scope.cancel()
            yield self._scope

    def _came(self, _number: int, _frame: object) -> None:
        self.count += 1
        if self.count > 1:
            # What we have started is bound to us, and what is saved is whole.
            os._exit(INTERRUPTED)
        if self._token is not None:
            self._token.run_sync_soon(self._scope.cancel)
