"""How a service finds the agent of its home: a socket, and a file that names it.

The file tells whom to expect behind the socket and the secret that opens it. Both are
for this user alone. What connects has a few seconds to say hello; of those that do not,
there are never many.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct

# As `hmac` does where it cannot have OpenSSL's, which takes 5 ms to load.
from _operator import _compare_digest as same
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent.lines import line_of
from forge_actors.edges.node.agent.loop import NEVER, READ, Channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.node.agent.loop import Loop, Signals

    OnHello = Callable[[Channel, bytes], None]

#: What a service must know to talk to an agent that it did not start.
PROTOCOL = 1
#: The file in the home.
NAME = "agent.json"
#: Connections that did not say hello yet, and the seconds they have for it.
MAX_PENDING, HELLO_LIMIT = 8, 10.0
#: Seconds until it listens again when there was no descriptor left for a connection.
_DEAF = 1.0

_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_CREDENTIALS = struct.Struct("3i")


class Listener:
    """The socket of an agent that outlives its service."""

    def __init__(
        self, loop: Loop, home: str, path: str, about: dict[str, Any], hello: OnHello
    ) -> None:
        """Listen at `path`; each first line of a connection is given to `hello`.

        Raises:
            OSError: that is not possible.
        """
        self._loop = loop
        self._file = os.path.join(home, NAME)
        self._path = path
        self._hello = hello
        self._secret = os.urandom(32).hex()
        self._about = {
            "protocol": PROTOCOL,
            **about,
            "socket": path,
            "secret": self._secret,
        }
        self._announced = False
        #: When each of these has had its time, in monotonic seconds.
        self._pending: dict[Channel, float] = {}
        #: Given back for a connection when jobs have taken all others.
        self._spare = -1
        self._deaf_until = NEVER
        #: When `look` is to be called.
        self.due = NEVER
        self._socket = self._listen()
        self.keep_spare()

    def _listen(self) -> socket.socket:
        folder = os.stat(os.path.dirname(self._path) or ".")
        if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
            raise PermissionError(
                errno.EPERM, "its folder must be for its owner alone", self._path
            )
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(self._path).st_mode):
                raise FileExistsError(
                    errno.EEXIST, "something else stands there", self._path
                )
            os.unlink(self._path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            mask = os.umask(0o177)
            try:
                sock.bind(self._path)
            finally:
                os.umask(mask)
            sock.listen(MAX_PENDING)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        self._loop.register(sock.fileno(), READ, self._accept)
        return sock

    def turn(self, now: float, signals: Signals) -> str | None:
        """Do what is due, and listen anew if that was asked for; why it cannot."""
        if now >= self.due:
            self.look(now)
        if signals.renew:
            signals.renew = False
            try:
                self.renew()
            except OSError as error:
                return str(error)
        return None

    def renew(self) -> None:
        """Listen anew: somebody may have removed the socket, or the file.

        Raises:
            OSError: that is not possible; it listens no more, until the next call.
        """
        self._stop_listening()
        self._socket = self._listen()
        if self._announced:
            self._write()

    def announce(self, release: str) -> None:
        """Write the file, at the first hello; it names the release of that service.

        Raises:
            OSError: it is not written.
        """
        if not self._announced:
            self._about["release"] = release
            self._write()
            self._announced = True

    def _write(self) -> None:
        # Whole or not at all, whenever it is read.
        draft = self._file + ".new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(draft, flags, 0o600)
        try:
            data = line_of(self._about)
            if os.write(fd, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), draft)
        finally:
            os.close(fd)
        os.replace(draft, self._file)

    def knows(self, secret: object) -> bool:
        """Whether this is our secret; the answer takes as long for any other."""
        return isinstance(secret, str) and same(secret.encode(), self._secret.encode())

    def _accept(self) -> None:
        try:
            connected, _ = self._socket.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTOR:
                self._make_room()
            return
        if not _is_ours(connected):
            connected.close()
            return
        if len(self._pending) >= MAX_PENDING:
            self._close(next(iter(self._pending)))
        channel = Channel(self._loop, connected, _ignore)
        channel.on_line = partial(self._first_line, channel)
        channel.on_end = partial(self._close, channel)
        self._pending[channel] = monotonic() + HELLO_LIMIT
        self._set_due()

    def _make_room(self) -> None:
        """Have a descriptor for who waits, or else look away: poll would not rest."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        elif self._pending:
            self._close(next(iter(self._pending)))
        else:
            self._loop.unregister(self._socket.fileno())
            self._deaf_until = monotonic() + _DEAF
            self._set_due()

    def keep_spare(self) -> None:
        """Hold one descriptor for the next connection again, if there is one."""
        if self._spare < 0:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _first_line(self, channel: Channel, line: bytes) -> None:
        del self._pending[channel]
        channel.on_end = None
        self._set_due()
        self._hello(channel, line)

    def _close(self, channel: Channel) -> None:
        del self._pending[channel]
        channel.close()
        self.keep_spare()
        self._set_due()

    def look(self, now: float) -> None:
        """Do what is due."""
        for channel, until in list(self._pending.items()):
            if until <= now:
                self._close(channel)
        if self._deaf_until <= now:
            self._deaf_until = NEVER
            self._loop.register(self._socket.fileno(), READ, self._accept)
            self._set_due()

    def _set_due(self) -> None:
        self.due = min([self._deaf_until, *self._pending.values()])

    def close(self) -> None:
        """Be found no more. Nobody else can have made the files: we hold the lock."""
        self._stop_listening()
        for path in (self._file, self._path):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _stop_listening(self) -> None:
        if self._socket.fileno() < 0:
            return
        if self._deaf_until == NEVER:
            self._loop.unregister(self._socket.fileno())
        self._deaf_until = NEVER
        self._set_due()
        self._socket.close()


def _is_ours(connected: socket.socket) -> bool:
    """Whether a process of this user is at the other end, as far as one can tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    data = connected.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    _, user, _ = _CREDENTIALS.unpack(data)
    return user in (0, os.geteuid())


def _ignore(_line: bytes) -> None:
    pass
