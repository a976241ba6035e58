"""The vigil over one service: its watchdog, and what it writes down of itself."""

from __future__ import annotations

import logging
import signal
from time import time
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.pulse import CURRENT, Pulse
from forge_actors.runtime.readiness import message_of
from forge_actors.runtime.reports import write_report
from forge_actors.runtime.self_report import memory_report, tasks_report
from forge_actors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from forge_actors.edges.services.notify import Notifier
    from forge_actors.runtime.control import RuntimeControl
    from forge_actors.runtime.herald import Herald
    from forge_actors.runtime.loop_watch import Blocked
    from forge_actors.runtime.readiness import Board

log = logging.getLogger(__name__)

#: The signals that ask a service to write something down of itself.
ASKING = (signal.SIGUSR1, signal.SIGUSR2)


class Vigil:
    """That of one service. Tasks that are made after it belong to the same service."""

    def __init__(
        self, home: Path, board: Board, herald: Herald, notifier: Notifier
    ) -> None:
        self._home = home
        self._board = board
        self._herald = herald
        self._notifier = notifier
        self._control: RuntimeControl | None = None
        self.pulse = Pulse()
        CURRENT.set(self.pulse)

    async def watch(self, control: RuntimeControl) -> None:
        """Watch the progress of its actors until cancelled."""
        self._control = control
        await Watchdog(
            self.pulse,
            self._board,
            control.stall_after,
            self,
            self._notifier.alive,
            self._notifier.watchdog,
        ).run()

    async def watch_store(self, control: RuntimeControl) -> None:
        """Tell when nothing can be saved, and when it can again, until cancelled."""
        while True:
            await control.saving(works=False)
            self._board.give("DATABASE_UNAVAILABLE")
            self._board.observe("database", "fail")
            await control.saving(works=True)
            self._board.observe("database", "pass")

    async def report(self, signals: AsyncIterator[int]) -> None:
        """Write something down for each signal, one after the other."""
        async for number in signals:
            try:
                if number == signal.SIGUSR1:
                    text = tasks_report(self.pulse)
                    path = write_report(self._home, "tasks", text, time())
                else:
                    text = await trio.to_thread.run_sync(memory_report)
                    path = write_report(self._home, "memory", text, time())
            # Nobody is to fail because somebody looked.
            except Exception as error:  # noqa: BLE001
                log.error("nothing was written down: %s", message_of(error))
            else:
                log.info("written down: %s", path)

    # -- what the watchdog tells -----------------------------------------------------

    def stalled(self, actor: str, seconds: float, place: str) -> None:
        self._note("actor_stalled", actor=actor, seconds=round(seconds), at=place)

    def went_on(self, actor: str, seconds: float) -> None:
        log.warning("%s goes on, after %.0f s", actor, seconds)
        self._note("actor_resumed", actor=actor, seconds=round(seconds))

    def blocked(self, found: Blocked) -> None:
        # The file first: whatever blocks the loop may keep the log from being written.
        words = f"the loop of the service does not turn, at {found.place}"
        try:
            path = write_report(self._home, "blocked", found.stack, time())
        except OSError as error:
            where = f"its stack cannot be written: {error}"
        else:
            where = f"its stack is in {path}"
        self._herald.publish_blocked(f"{words}; {where}")
        log.error("%s; %s\n%s", words, where, found.stack)

    def turned(self, seconds: float, found: Blocked) -> None:
        log.warning("the loop of the service turns again, after %.1f s", seconds)
        self._note("loop_blocked", seconds=round(seconds, 1), at=found.place)
        self._herald.publish()

    def _note(self, kind: str, **data: object) -> None:
        if self._control is not None:
            self._control.note(kind, data)
