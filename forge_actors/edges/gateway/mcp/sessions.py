"""The sessions of agents: at most so many, and the last used one stays longest.

The SDK ends a session that was idle for long, and refuses new ones when there are too
many; agents vanish without a word, so here the one that was not used for longest makes
room, unless it waits for an answer.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from forge_actors.edges.gateway.mcp.caller import Caller


class SessionLimits(Struct, frozen=True):
    """How many sessions there are at once, and how long one stays that is not used."""

    sessions: int = 64
    #: Seconds.
    idle: float = 900.0
    #: Bytes of one message of a client.
    message_bytes: int = 4 * 1024 * 1024
    #: Seconds in which a client has to take what it is sent.
    write_timeout: float = 15.0


class Session:
    """One agent that is connected, and how to end that."""

    def __init__(self, caller: Caller, close: Callable[[], Awaitable[None]]) -> None:
        self.caller = caller
        self.close = close
        #: Requests that wait for their answer, and streams that are open to tell more.
        self.requests = 0
        self.streams = 0
        #: When one of them was there last.
        self.used_at = trio.current_time()
        #: A connection says itself when its other end is gone.
        self.expires = True


class Sessions:
    """All that there are, the one that was not used for longest first."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._known: dict[str, Session] = {}
        self._opening = 0

    @property
    def count(self) -> int:
        self._forget_expired()
        return len(self._known)

    def find(self, name: str) -> Session | None:
        return self._known.get(name)

    def add(self, name: str, session: Session) -> None:
        self._known[name] = session

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    @contextmanager
    def in_use(
        self, name: str, session: Session, *, stream: bool = False
    ) -> Iterator[None]:
        """A request of it is handled; or a stream is open, which keeps no place."""
        self._touch(name, session)
        session.requests += not stream
        session.streams += stream
        try:
            yield
        finally:
            session.requests -= not stream
            session.streams -= stream
            self._touch(name, session)

    @contextmanager
    def opening(self) -> Iterator[None]:
        """A place is kept for a session that is about to be there."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    async def make_room(self) -> bool:
        """End what was not used for longest until there is room; False: there is none,
        as all of them wait for answers."""
        self._forget_expired()
        while len(self._known) + self._opening >= self._limits.sessions:
            idle = (name for name, each in self._known.items() if not each.requests)
            name = next(idle, None)
            if name is None:
                return False
            await self._end(name)
        return True

    async def close(self) -> None:
        """End all of them."""
        for name in list(self._known):
            await self._end(name)

    async def _end(self, name: str) -> None:
        session = self._known.pop(name, None)
        if session is not None:
            await session.close()

    def _touch(self, name: str, session: Session) -> None:
        session.used_at = trio.current_time()
        if self._known.pop(name, None) is not None:
            self._known[name] = session

    def _forget_expired(self) -> None:
        # The SDK has ended them by then.
        gone = trio.current_time() - self._limits.idle
        expired = [
            name
            for name, each in self._known.items()
            if each.expires
            and not (each.requests or each.streams)
            and each.used_at < gone
        ]
        for name in expired:
            del self._known[name]
