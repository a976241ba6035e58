"""The watchdog: measures the progress of each actor, and of the loop that runs them.

It looks while any of them has something to do, a few times in the span after which an
actor counts as stalled, and otherwise only as often as a service manager wants to hear
from it. What stalls is named, with where it is; the manager then hears nothing more.
"""

from __future__ import annotations

import logging
import math
import traceback
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import trio

from forge_actors.actors.pulse import SUPERVISOR
from forge_actors.domain.progress import NEW, stalled
from forge_actors.runtime.loop_watch import LoopWatch
from forge_actors.runtime.loop_watch import place_of as frame_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.pulse import Pulse, Watched
    from forge_actors.domain.progress import Seen
    from forge_actors.runtime.loop_watch import Blocked
    from forge_actors.runtime.readiness import Board

log = logging.getLogger(__name__)

#: Looks in the span after which an actor counts as stalled.
LOOKS = 4
#: Frames of a stack that are shown.
MAX_FRAMES = 64


class Listener(Protocol):
    """Who is told of what stalls."""

    def stalled(self, actor: str, seconds: float, place: str) -> None: ...

    def went_on(self, actor: str, seconds: float) -> None: ...

    def blocked(self, found: Blocked) -> None:
        """The loop does not turn. Called in another thread."""

    def turned(self, seconds: float, found: Blocked) -> None:
        """It turns again, after so long."""


class Watchdog:
    """That of one service. `run` is its task."""

    def __init__(
        self,
        pulse: Pulse,
        board: Board,
        stall_after: Callable[[], float],
        listener: Listener,
        alive: Callable[[], None],
        period: float | None,
    ) -> None:
        """`alive` is called at least once in `period` seconds while all is well."""
        self._pulse = pulse
        self._board = board
        self._stall_after = stall_after
        self._listener = listener
        self._alive = alive
        self._period = math.inf if period is None else period / 2
        self._seen: dict[Watched, Seen] = {}
        #: What is stalled, and since when.
        self._stalled: dict[Watched, float] = {}
        self._loop = LoopWatch(self._loop_is_blocked)
        #: What it found of the loop that nobody was told of yet.
        self._blocked: Blocked | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        self._loop.start()
        try:
            while True:
                limit = self._stall_after()
                seconds = min(limit / LOOKS, self._period)
                if not self._due and self._period == math.inf:
                    await self._sleep()
                self._loop.expect(seconds + limit)
                await trio.sleep(seconds)
                self.look(limit)
        finally:
            self._loop.stop()

    def look(self, limit: float) -> None:
        """See how far everybody is, and tell of what is stalled."""
        self._look_back()
        now = trio.current_time()
        beats = {actor: actor.beat() for actor in self._pulse.actors}
        self._seen = {
            actor: self._seen.get(actor, NEW).after(beat.served, now, idle=beat.idle)
            for actor, beat in beats.items()
        }
        found = stalled(self._seen, now, limit)
        for actor in [each for each in self._stalled if each not in found]:
            seconds = now - self._stalled.pop(actor)
            self._say(actor, None)
            self._listener.went_on(actor.name, seconds)
        for actor, seconds in found.items():
            if actor not in self._stalled and self._board.now.ending is None:
                self._stalled[actor] = now - seconds
                self._tell(actor, seconds)
        if not self._stalled:
            self._alive()

    @property
    def _due(self) -> bool:
        """Whether any actor was busy at the last look."""
        return any(each.since is not None for each in self._seen.values())

    async def _sleep(self) -> None:
        """Wait until somebody has something to do."""
        woken = trio.Event()

        def wake() -> None:
            # Not later: whatever has come may be what blocks the loop.
            limit = self._stall_after()
            self._loop.expect(limit / LOOKS + limit)
            woken.set()

        self._loop.expect(None)
        self._pulse.sleep(wake)
        await woken.wait()

    def _tell(self, actor: Watched, seconds: float) -> None:
        place, stack = place_of(actor.task), "".join(stack_of(actor.task)).rstrip()
        log.error("%s is stalled for %.0f s:\n%s", actor.name, seconds, stack)
        waiting = actor.beat().waiting
        words = f"{actor.name} has been at one message for {seconds:.0f} s"
        self._say(actor, f"{words}, with {waiting} behind it: {place}")
        self._listener.stalled(actor.name, seconds, place)

    def _say(self, actor: Watched, words: str | None) -> None:
        if actor.name == SUPERVISOR:
            if words is not None:
                self._board.give("SCHEDULER_STALLED")
            self._board.observe("scheduler", "pass" if words is None else "fail")
        self._board.complain(f"stalled {actor.name}", words)

    def _loop_is_blocked(self, found: Blocked) -> None:
        self._blocked = found
        self._listener.blocked(found)

    def _look_back(self) -> None:
        """Tell of a loop that was blocked, now that it turns."""
        if self._blocked is not None:
            found, self._blocked = self._blocked, None
            self._listener.turned(monotonic() - found.since, found)


def stack_of(task: trio.lowlevel.Task) -> list[str]:
    """Where a task is, as a traceback shows it: the innermost call last."""
    frames = list(task.iter_await_frames())[-MAX_FRAMES:]
    return traceback.StackSummary.extract(iter(frames)).format()


def place_of(task: trio.lowlevel.Task) -> str:
    """The innermost call of a task that is none of the library's."""
    for frame, line in reversed(list(task.iter_await_frames())):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in ("trio", "trio_util", "outcome"):
            return frame_place(frame, line)
    return "nowhere"
