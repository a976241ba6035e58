"""One attempt of a fake launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.launch import (
        Ending,
        LaunchOrder,
        ProcessIdentity,
        Receipt,
    )
    from forge_actors.testing.launcher import FakeLauncher, Key


class FakeAttempt:
    """One attempt; see `domain.ports.RunningAttempt`."""

    def __init__(
        self,
        launcher: FakeLauncher,
        order: LaunchOrder,
        identity: ProcessIdentity | None,
        began_at: float,
    ) -> None:
        self.order = order
        self.began_at = began_at
        #: None while there is no room for it.
        self.identity = identity
        self.receipt: Receipt | None = None
        self.output_bytes = 0
        #: How many stops it was asked for.
        self.stops = 0
        #: When the present pause began; None while it runs.
        self.paused_since: float | None = None
        self.paused_seconds = 0.0
        self.changed = trio.Event()
        #: The launcher that has it now, and who ordered it.
        self.launcher = launcher
        self.owner = launcher.owner

    @property
    def key(self) -> Key:
        return self.order.job, self.order.attempt

    async def started(self) -> ProcessIdentity | None:
        await trio.lowlevel.checkpoint()
        while self.identity is None and self.receipt is None:
            await self.changed.wait()
        return self.identity

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False

    async def exited(self) -> Receipt:
        await trio.lowlevel.checkpoint()
        while self.receipt is None:
            await self.changed.wait()
        return self.receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self.launcher.asked_to_stop(self, grace, ending)

    def pause(self) -> None:
        lasts = self.order.lasting
        if self.receipt is None and self.paused_since is None and not lasts:
            self.paused_since = trio.current_time()

    def resume(self) -> None:
        if self.paused_since is not None:
            self.paused_seconds += trio.current_time() - self.paused_since
            self.paused_since = None

    def change(self) -> None:
        """Wake whoever waits for something of this attempt."""
        self.changed.set()
        self.changed = trio.Event()
