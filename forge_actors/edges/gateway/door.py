"""The socket of a service: it stays where its clients look for it.

Whoever cleans a folder of temporary files, or a home, may remove the socket of a
service that runs. Nobody could reach the service then, not even to stop it, while its
jobs run on and no other one may start. So it notices, and makes the socket again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from typing import TYPE_CHECKING

import trio
from trio_util import wait_any

from forge_actors.domain.errors import ForgeError
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.removal import next_event, watching

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

#: The system has no room for another connection.
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: Seconds until the next try then.
SHORT_SECONDS = 0.2


class Door(trio.abc.Listener[trio.SocketStream]):
    """A listener on the path that `place` makes ready and names."""

    def __init__(self, place: Callable[[], str]) -> None:
        """Open it.

        Raises:
            ForgeError: somebody else listens there, or the place is not fit.
            OSError: it cannot be made.
        """
        self._place = place
        self._closed = False
        self._asked = trio.Event()
        self._open()

    @property
    def path(self) -> str:
        """Where the socket is."""
        return self._path

    async def accept(self) -> trio.SocketStream:
        short = False
        while True:
            listener = self._listener
            try:
                client = await listener.accept()
            except trio.ClosedResourceError:
                if listener is self._listener:
                    raise
            except OSError as error:
                if error.errno not in _SHORT:
                    raise
                if not short:
                    log.error("there is no file for another client: %s", error.strerror)
                short = True
                # Others have to close some first, which nobody tells.
                await trio.sleep(SHORT_SECONDS)
            else:
                if short:
                    log.info("there are files for clients again")
                return client

    async def aclose(self) -> None:
        """Listen no more; the socket stays until it is removed."""
        self._closed = True
        self._asked.set()
        await self._listener.aclose()

    def check(self) -> None:
        """Have `keep` look whether the socket is there."""
        self._asked.set()

    async def keep(self) -> None:
        """Make the socket again whenever it was removed, until the door is closed."""
        while not self._closed:
            self._asked = trio.Event()
            if self._is_there() or await self._reopen():
                await wait_any(self._asked.wait, self._gone)
            else:
                await self._asked.wait()

    def remove(self) -> None:
        """Remove the socket, if it is still the one that was made here."""
        if self._is_there():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)

    def _open(self) -> None:
        self._path = self._place()
        self._listener = unix_listener(self._path)
        self._identity = _identity(self._path)

    async def _reopen(self) -> bool:
        old = self._listener
        try:
            self._open()
        except (OSError, ForgeError) as error:
            log.error(
                "the socket %s is gone and cannot be made again: %s; kill -HUP %d"
                " makes the service try again",
                self._path,
                error,
                os.getpid(),
            )
            return False
        await old.aclose()
        log.warning("the socket %s was removed, and is made again", self._path)
        return True

    def _is_there(self) -> bool:
        return _identity(self._path) == self._identity

    async def _gone(self) -> None:
        """Wait until the socket is gone; for ever, where the system cannot tell."""
        try:
            with watching(self._path) as events:
                while self._is_there():
                    await next_event(events)
        except FileNotFoundError:
            return
        except OSError:
            await trio.sleep_forever()


def _identity(path: str) -> tuple[int, int, int] | None:
    """What tells a file from another one at its path; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # The number of a file that is gone is used again at once.
    return found.st_dev, found.st_ino, found.st_mtime_ns
