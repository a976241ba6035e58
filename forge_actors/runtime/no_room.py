"""A service whose disk is full or read-only when it starts: it waits, and says so.

To end would only have its manager start it again, for as long as that is so. It keeps
the home, answers on the socket what it waits for, where a socket can be made, and goes
on by itself.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from trio_util import wait_any

from forge_actors import __version__
from forge_actors.domain.errors import (
    ForgeError,
    InvalidInput,
    LauncherDown,
    Refused,
    StoreDamaged,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.edges.gateway.door import Door
from forge_actors.edges.gateway.messages import error_response, json_response
from forge_actors.edges.gateway.server import Server
from forge_actors.runtime.homes import STORE_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forge_actors.edges.gateway.messages import Request, Response

log = logging.getLogger(__name__)

#: Bytes that have to be free for a start, and those that make another try worth it.
ENOUGH = 1 << 20
MORE = 64 << 10
#: Seconds between two looks at how much is free, and until a try whatever is.
LOOK_SECONDS = 0.5
TRY_SECONDS = 15.0

_FULL = (errno.ENOSPC, errno.EDQUOT)


def lacks_room(error: BaseException, home: Path) -> bool:
    """Whether a start failed because nothing more can be written to the home."""
    if isinstance(error, StoreDamaged | StoreFromTheFuture):
        return False
    if not isinstance(error, StoreFailed | LauncherDown | InvalidInput | OSError):
        return False
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return True
        if isinstance(cause, OSError) and cause.errno == errno.EROFS:
            # One that holds nothing yet was chosen by mistake.
            return (home / STORE_FILE).exists()
        cause = cause.__cause__ or cause.__context__
    return not isinstance(error, InvalidInput) and _free(home) < ENOUGH


async def wait_for_room(
    home: Path,
    place: Callable[[], str],
    error: BaseException,
    *,
    waiting: Callable[[], None],
    request_stop: Callable[[], None],
    started_at: str,
) -> None:
    """Return when another try is worth it; until then everybody is told why not.

    `waiting` is called as soon as clients are answered.

    Raises:
        Refused: another service has the home.
    """
    wanted = f"for space on the disk of {home}"
    if not _writable(home):
        wanted = f"until {home} is no longer read-only"
    reason = f"the service waits {wanted}: {error}"
    with _kept(home):
        log.warning("%s", reason)
        status = _status(home, reason, started_at)
        stop = trio.Event()
        server = Server(partial(_answer, status, reason, stop.set))
        door = _door(place)
        try:
            async with trio.open_nursery() as nursery:
                if door is not None:
                    await nursery.start(server.serve, [door])
                waiting()
                await wait_any(stop.wait, partial(_more_room, home))
                # Its last answers are sent before this ends.
                server.stop()
        finally:
            if door is not None:
                door.remove()
    if stop.is_set():
        request_stop()
    else:
        log.info("another try to start in %s", home)


def _free(home: Path) -> int:
    """Bytes that can still be written there; a folder that is not there has none."""
    try:
        disk = os.statvfs(home)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize if disk.f_favail or not disk.f_files else 0


def _writable(home: Path) -> bool:
    """Whether its file system takes anything; that holds for root as well."""
    return os.access(home, os.W_OK)


async def _more_room(home: Path) -> None:
    # No system tells when space is freed, so there is nothing to wait for but time.
    before, writable = _free(home), _writable(home)
    with trio.move_on_after(TRY_SECONDS):
        while True:
            await trio.sleep(LOOK_SECONDS)
            if (free := _free(home)) >= before + MORE or _writable(home) > writable:
                return
            before = min(before, free)


@contextmanager
def _kept(home: Path) -> Iterator[None]:
    """Keep other services from the home, without writing anything."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(f"another service runs on {home}; stop it first") from None
    else:
        yield
    finally:
        os.close(folder)


def _door(place: Callable[[], str]) -> Door | None:
    """A socket, if there is room for as much as that."""
    with suppress(OSError, ForgeError):
        return Door(place)
    return None


def _status(home: Path, reason: str, started_at: str) -> dict[str, object]:
    """What can be said of a service that has not read its store yet."""
    return {
        "service": {
            "pid": os.getpid(),
            "agent_pid": None,
            "version": __version__,
            "started_at": started_at,
            "home": str(home),
        },
        "ready": False,
        "readiness": {"database": "fail"},
        "degraded": [reason],
        "capacity": {},
        "providers": {},
        "counts": {},
        "pressure": {},
    }


async def _answer(
    status: dict[str, object],
    reason: str,
    request_stop: Callable[[], None],
    request: Request,
) -> Response:
    await trio.lowlevel.checkpoint()
    asked = request.method, request.path[1:]
    if asked == ("GET", ("status",)) and "wait=" not in request.query:
        return json_response(status)
    if asked == ("POST", ("stop",)):
        request_stop()
        return json_response(
            {"stopping": True, "running": 0, "jobs": False}, status=202
        )
    return error_response(StoreFailed.http_status, StoreFailed.code, reason)
