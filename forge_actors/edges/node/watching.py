"""Who waits for output of jobs, as the service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

    from forge_actors.edges.node.attempt import Attempt, Key


class Watches:
    """Those of one launcher. Equal ones are told to the agent once."""

    def __init__(self, send: Callable[[Struct], None]) -> None:
        self._send = send
        self._watches: dict[tuple[str, int, int], trio.Event] = {}

    async def wait(self, job: str, attempt: int, known: int) -> None:
        """Until there is more output than `known`, or no more will come."""
        watch = (job, attempt, known)
        event = self._watches.get(watch)
        if event is None:
            event = self._watches[watch] = trio.Event()
            self._send(wire.Watch(job, attempt, known))
        await event.wait()

    def said(self) -> list[bytes]:
        """What was said of them, for an agent that may not have heard it."""
        return [wire.encode(wire.Watch(*watch)) for watch in self._watches]

    def hear(self, output: wire.Output) -> None:
        watch = self._watches.pop((output.job, output.attempt, output.known), None)
        if watch is not None:
            watch.set()

    def end(self, attempts: Mapping[Key, Attempt]) -> None:
        """Wake those who wait for what has ended, or is not there."""
        for job, number, known in list(self._watches):
            watched = attempts.get((job, number))
            if watched is None or watched.receipt is not None:
                self._watches.pop((job, number, known)).set()
