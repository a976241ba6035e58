"""One attempt, as the service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node import wire
from forge_actors.edges.node.descriptors import HandingLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from forge_actors.domain.launch import Ending, ProcessIdentity, Receipt

Key = tuple[str, int]


class Attempt:
    """One attempt that was given to the launcher; see `domain.ports.RunningAttempt`."""

    __slots__ = (
        "_ended",
        "_line",
        "_notify",
        "_paused",
        "_send",
        "_settled",
        "_stop",
        "_waiting",
        "fence",
        "identity",
        "key",
        "orphan",
        "receipt",
        "stops",
        "unwanted",
    )

    def __init__(
        self,
        send: Callable[[Struct], None],
        key: Key,
        fence: int,
        line: bytes = b"",
    ) -> None:
        self._send = send
        self.key = key
        self.fence = fence
        self.identity: ProcessIdentity | None = None
        self.receipt: Receipt | None = None
        #: Of one that lasts, how many stops it was asked for.
        self.stops: int | None = None
        #: It goes on although its agent is gone.
        self.orphan = False
        #: Nobody adopts it, so its receipt is of no use.
        self.unwanted = False
        #: The order, for another agent if this one may not have heard it.
        self._line = line
        self._paused: wire.Pause | wire.Resume | None = None
        self._stop: wire.Stop | None = None
        #: It is known whether the process began.
        self._settled = False
        self._notify: Callable[[], object] | None = None
        #: Set then, and when it ended, if somebody waits for it.
        self._waiting: trio.Event | None = None
        self._ended: trio.Event | None = None

    async def started(self) -> ProcessIdentity | None:
        if self._settled:
            # A checkpoint would cost a turn of the loop, for every job. Without it a
            # caller cannot starve the others: this happens once an attempt.
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            if self._waiting is None:
                self._waiting = trio.Event()
            await self._waiting.wait()
        return self.identity

    def once_settled(self, notify: Callable[[], object]) -> bool:
        if self._settled:
            return False
        self._notify = notify
        return True

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
            if self.stops is not None:
                self.stops += 1
            self._stop = wire.Stop(*self.key, grace, ending, self.stops)
            self._send(self._stop)

    def pause(self) -> None:
        if self.receipt is None:
            self._paused = wire.Pause(*self.key)
            self._send(self._paused)

    def resume(self) -> None:
        if self.receipt is None:
            self._paused = wire.Resume(*self.key)
            self._send(self._paused)

    def goes_with(self, line: bytes) -> None:
        """This is its order; descriptors of it are closed when that is settled."""
        self._line = line

    def orphaned(
        self, send: Callable[[Struct], None], identity: ProcessIdentity
    ) -> None:
        """It runs on without an agent, and hears what is said of it by `send`."""
        self.orphan = True
        self._send = send
        if not self._settled:
            self.settle_start(identity)

    def let_go(self) -> None:
        """Keep nothing open for it."""
        line, self._line = self._line, b""
        if isinstance(line, HandingLine):
            line.descriptors.close()

    @property
    def is_of_agent(self) -> bool:
        """Whether there is an agent to tell what becomes of it."""
        return self.receipt is None and not self.orphan

    @property
    def may_begin(self) -> bool:
        """One that never began: whether it can be given to another agent."""
        return bool(self._line) and self._stop is None

    def said(self) -> list[bytes]:
        """What was said of it, for an agent that may not have heard it."""
        lines = [] if self._settled else [self._line]
        lines += [wire.encode(each) for each in (self._paused, self._stop) if each]
        return [line for line in lines if line]

    def settle_start(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
        if type(self._line) is not bytes:
            self.let_go()
        self._line = b""
        self._settled = True
        if self._waiting is not None:
            self._waiting.set()
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def settle_end(self, receipt: Receipt) -> None:
        """Keep the first receipt: there is only one."""
        if self.receipt is None:
            self.receipt = receipt
            if not self._settled:
                self.settle_start(receipt.identity)
            if self._ended is not None:
                self._ended.set()
