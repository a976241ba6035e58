"""The Unix socket of a service: how it is opened, and who may speak to it."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct

import trio

from forge_actors.domain.errors import Refused

BACKLOG = 128
_PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid


def unix_listener(path: str | os.PathLike[str]) -> trio.SocketListener:
    """Listen on `path`, for our own user only.

    A socket file nobody listens on any more is replaced. Two callers must not race
    for one path: whoever owns the home calls this while holding the home's lock.

    Raises:
        Refused: somebody listens there, or the path is no socket.
    """
    place = os.fspath(path)
    _remove_stale(place)
    # The umask closes the moment between bind and chmod in which others could connect.
    before = os.umask(0o177)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(place)
        os.chmod(place, 0o600)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    finally:
        os.umask(before)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


def _remove_stale(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Refused(f"{path} exists and is no socket; it was not touched")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A blocking connect would wait for a listener whose queue is full.
        probe.setblocking(False)
        problem = probe.connect_ex(path)
    if problem == errno.ENOENT:
        return
    if problem != errno.ECONNREFUSED:
        raise Refused(f"another process listens on {path}")
    os.unlink(path)


def peer_uid(stream: trio.SocketStream) -> int | None:
    """The user at the other end; None where the platform or the family cannot tell.

    Without an answer the mode of the socket file is what keeps others out.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or stream.socket.family != socket.AF_UNIX:
        return None
    raw = stream.socket.getsockopt(socket.SOL_SOCKET, option, _PEER.size)
    uid: int = _PEER.unpack(raw)[1]
    return uid


def peer_is_ours(stream: trio.SocketStream) -> bool:
    """Whether the other end may be of our own user; where nobody can tell, it is."""
    return peer_uid(stream) in (None, os.geteuid())
