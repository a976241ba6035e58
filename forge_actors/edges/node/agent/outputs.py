"""The outputs of a job: small values that it writes into a file of its own.

The file is there when the job starts, and is read when nothing of the job is left. What
is in it means nothing here.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from forge_actors.edges.node.agent.held_starts import NO_ROOM
from forge_actors.edges.node.agent.masking import Masking

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.order import Order

#: The variable that tells a job where its file is, and how the name of that ends.
VARIABLE = b"FORGE_OUTPUT"
SUFFIX = b".outputs"
#: Bytes that a job may write there.
MOST = 16 * 1024


def make(path: bytes) -> None:
    """An empty file, in place of whatever was there.

    Raises:
        SpawnFailed: it cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(os.open(path, flags, 0o600))
    except OSError as error:
        failure = NoRoom if error.errno in NO_ROOM else SpawnFailed
        why = f"the file for its outputs cannot be made: {error.strerror}"
        raise failure(why) from None


def told(order: Order, *, ended: bool) -> dict[str, Any]:
    """What the job wrote, as a receipt has it; once it has `ended` the file goes.

    It may hold secrets, which are masked in what is told.
    """
    assert order.outputs is not None, "it has a file for them"
    try:
        data = _read(order.outputs)
    except OSError as error:
        return {"error": f"their file cannot be read: {error.strerror}"}
    finally:
        if ended:
            with contextlib.suppress(OSError):
                os.unlink(order.outputs)
    if data is None:
        return {"error": "their file is no plain file any more"}
    if len(data) > MOST:
        return {"error": f"their file has more than {MOST} bytes"}
    if order.masked:
        masking = Masking(order.masked)
        data = masking.feed(data) + masking.flush()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"error": "their file is not UTF-8"}
    return {"text": text} if text else {}


def _read(path: bytes) -> bytes | None:
    """As much as says whether it is too much; None if it is no plain file."""
    # A job may have put anything there: no link is followed, and nothing waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = b""
        while len(data) <= MOST and (more := os.read(fd, MOST + 1 - len(data))):
            data += more
        return data
    finally:
        os.close(fd)
