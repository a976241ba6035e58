"""Clients that go away while their request is handled are noticed here.

To see that a client has left, a task has to read its connection. For most requests it
would cost more than all the rest of them, so only those get one that are held, or take
longer than `PATIENCE_SECONDS`.
"""

from __future__ import annotations

from typing import Protocol

import trio

PATIENCE_SECONDS = 0.05


class Watched(Protocol):
    def watch(self, nursery: trio.Nursery) -> None:
        """Start to watch for the end of the client."""


class Lookout:
    """The requests in hand that nobody watches yet, the oldest first."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._since: dict[Watched, float] = {}
        self._held: set[Watched] = set()
        self._some = trio.Event()
        #: Those whose answers go on for as long as their clients listen.
        self.lasting: set[Watched] = set()

    @property
    def held(self) -> int:
        """How many requests are held."""
        return len(self._held)

    def enter(self, connection: Watched, *, held: bool) -> None:
        """Its request is handled from now on."""
        if held:
            self._held.add(connection)
            connection.watch(self._nursery)
        else:
            self._since[connection] = trio.current_time()
            self._some.set()

    def keeps(self, connection: Watched) -> bool:
        """Whether its request waits for something, or its answer goes on."""
        return connection in self._held or connection in self.lasting

    def leave(self, connection: Watched) -> None:
        """Its request was answered, or given up."""
        self._since.pop(connection, None)
        self._held.discard(connection)

    async def run(self) -> None:
        while True:
            await self._some.wait()
            while self._since:
                connection, since = next(iter(self._since.items()))
                due = since + PATIENCE_SECONDS
                if trio.current_time() < due:
                    await trio.sleep_until(due)
                else:
                    del self._since[connection]
                    connection.watch(self._nursery)
            self._some = trio.Event()
