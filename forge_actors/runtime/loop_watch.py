"""A thread that notices when the loop of the service does not turn any more.

Something that waits without awaiting stops every task, so none of them could tell. The
thread sleeps until the loop is due, and for ever while nothing is expected of it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

#: Seconds that it has after it was due: a process that was stopped as a whole, and goes
#: on, is late everywhere at once.
GRACE = 0.5
#: Bytes of a stack that are kept.
MAX_STACK = 64 * 1024


class Blocked(Struct, frozen=True):
    """Where a loop was when it was late, and when it had turned for the last time."""

    since: float
    #: The innermost call.
    place: str
    stack: str


class LoopWatch:
    """That of the thread that makes it. `blocked` is called in another one, once for
    each time that the loop is late."""

    def __init__(self, blocked: Callable[[Blocked], None]) -> None:
        self._blocked = blocked
        self._watched = threading.get_ident()
        self._changed = threading.Condition()
        self._due: float | None = None
        self._since = 0.0
        #: Somebody was told, and the loop has not turned since.
        self._told = False
        self._ended = False
        #: Daemonic: it must not keep a process that ends.
        self._thread = threading.Thread(
            target=self._run, name="loop watch", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def expect(self, seconds: float | None) -> None:
        """The loop turns again within so long; None: nobody knows when."""
        with self._changed:
            before, self._since = self._due, monotonic()
            self._due = None if seconds is None else self._since + seconds
            # It sleeps up to a moment that was put off meanwhile, and looks again then.
            if before is None or self._told:
                self._changed.notify()

    def stop(self) -> None:
        """Watch no more; the thread is gone when this returns."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._ended:
                due = self._due
                if due is None:
                    self._changed.wait()
                elif (left := due - monotonic()) > 0:
                    self._changed.wait(left)
                elif not self._late(due, GRACE):
                    continue
                else:
                    found = _found(self._watched, self._since)
                    self._changed.release()
                    try:
                        self._blocked(found)
                    finally:
                        self._changed.acquire()
                    self._told = True
                    self._late(due, None)
                    self._told = False

    def _late(self, due: float, seconds: float | None) -> bool:
        """Whether it is still late after so many seconds."""
        end = None if seconds is None else monotonic() + seconds
        while self._due == due and not self._ended:
            left = None if end is None else end - monotonic()
            if left is not None and left <= 0:
                return True
            self._changed.wait(left)
        return False


def _found(thread: int, since: float) -> Blocked:
    frame = sys._current_frames().get(thread)
    if frame is None:
        return Blocked(since, "nowhere", "")
    stack = "".join(traceback.format_stack(frame))[-MAX_STACK:]
    return Blocked(since, place_of(frame, frame.f_lineno), stack)


def place_of(frame: FrameType, line: int) -> str:
    """A place in a program in one word: its module, line and function."""
    return f"{frame.f_globals.get('__name__')}:{line} {frame.f_code.co_name}"
