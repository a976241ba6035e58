"""Agents that take the place of one that has died: not too many, and not too fast."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import LauncherDown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.edges.node.agent_process import AgentProcess

#: With more new agents than this in the period, seconds, no other one is started.
RESTARTS, RESTART_PERIOD = 5, 60.0
#: Seconds before each next try while none can be started: the system has no room.
PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class Successors:
    """Starts one agent after the other."""

    def __init__(self, start: Callable[[], Awaitable[AgentProcess]]) -> None:
        self._start = start
        self._starts: deque[float] = deque(maxlen=RESTARTS)

    async def next(self) -> AgentProcess:
        """The agent that follows one that has died just now.

        Raises:
            LauncherDown: too many have died lately, or none can be started.
        """
        now = trio.current_time()
        self._starts.append(now)
        if len(self._starts) == RESTARTS and now - self._starts[0] < RESTART_PERIOD:
            raise LauncherDown(f"the node agent ended {RESTARTS} times within a minute")
        for pause in PAUSES:
            try:
                return await self._start()
            except LauncherDown:
                await trio.sleep(pause)
        return await self._start()
