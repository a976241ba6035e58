"""One attempt, as the service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from forge_actors.domain.launch import Ending, ProcessIdentity, Receipt

Key = tuple[str, int]


class Attempt:
    """One attempt that was given to the launcher; see `domain.ports.RunningAttempt`."""

    __slots__ = (
        "_ended",
        "_send",
        "_settled",
        "fence",
        "identity",
        "key",
        "receipt",
    )

    def __init__(self, send: Callable[[Struct], None], key: Key, fence: int) -> None:
        self._send = send
        self.key = key
        self.fence = fence
        self.identity: ProcessIdentity | None = None
        self.receipt: Receipt | None = None
        #: Set when it is known whether the process began, and when it ended.
        self._settled = trio.Event()
        self._ended: trio.Event | None = None

    async def started(self) -> ProcessIdentity | None:
        if self._settled.is_set():
            # A checkpoint would cost a turn of the loop, for every job. Without it a
            # caller cannot starve the others: this happens once an attempt.
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await self._settled.wait()
        return self.identity

    async def exited(self) -> Receipt:
        if self.receipt is None:
            if self._ended is None:
                self._ended = trio.Event()
            await self._ended.wait()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        assert self.receipt is not None
        return self.receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        if self.receipt is None:
            self._send(wire.Stop(*self.key, grace=grace, ending=ending))

    def pause(self) -> None:
        if self.receipt is None:
            self._send(wire.Pause(*self.key))

    def resume(self) -> None:
        if self.receipt is None:
            self._send(wire.Resume(*self.key))

    def settle_start(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
        self._settled.set()

    def settle_end(self, receipt: Receipt) -> None:
        """Keep the first receipt: there is only one."""
        if self.receipt is None:
            self.receipt = receipt
            if not self._settled.is_set():
                self.settle_start(receipt.identity)
            if self._ended is not None:
                self._ended.set()
