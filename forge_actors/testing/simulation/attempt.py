"""One attempt, as the service in the simulation sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.launch import Receipt
from forge_actors.edges.node import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity
    from forge_actors.testing.simulation.launcher import SimulatedLauncher
    from forge_actors.testing.simulation.machine import Key


class Attempt:
    """One attempt; see `domain.ports.RunningAttempt`."""

    def __init__(self, launcher: SimulatedLauncher, key: Key, fence: int) -> None:
        self.key = key
        self.fence = fence
        self.order: LaunchOrder | None = None
        self.identity: ProcessIdentity | None = None
        self.receipt: Receipt | None = None
        #: What was asked of it, to be said again on the next connection.
        self.stop_asked: wire.Stop | None = None
        self.pause_asked: bool | None = None
        self._launcher = launcher
        self._settled = trio.Event()
        self._ended = trio.Event()
        self._notify: Callable[[], object] | None = None

    async def started(self) -> ProcessIdentity | None:
        await self._settled.wait()
        return self.identity

    def once_settled(self, notify: Callable[[], object]) -> bool:
        if self._settled.is_set():
            return False
        self._notify = notify
        return True

    async def exited(self) -> Receipt:
        if self.receipt is None and not self._launcher.dead:
            await self._ended.wait()
        if self.receipt is None:
            # Its service crashed: nobody will ever look at this.
            return Receipt(*self.key, self.fence, "lost", 0.0)
        return self.receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        if self.receipt is None:
            self.stop_asked = wire.Stop(*self.key, grace, ending)
            self._launcher.send(self.stop_asked)

    def pause(self) -> None:
        if self.receipt is None:
            self.pause_asked = True
            self._launcher.send(wire.Pause(*self.key))

    def resume(self) -> None:
        if self.receipt is None:
            self.pause_asked = False
            self._launcher.send(wire.Resume(*self.key))

    def settle_start(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
        self._settled.set()
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def settle_end(self, receipt: Receipt) -> None:
        if self.receipt is None:
            self.receipt = self._launcher.machine.reported(receipt)
            if not self._settled.is_set():
                self.settle_start(receipt.identity)
            self._ended.set()

    def abandon(self) -> None:
        """Its service is gone: let its waiters go."""
        self._settled.set()
        self._ended.set()
