"""Programs of agents that jobs wait for: seen as soon as somebody installs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.edges.agents import finding
from forge_actors.edges.agents.arrivals import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.edges.agents.arrivals import Arrivals
    from forge_actors.runtime.agents import Agents


class AgentArrivals:
    """What a ledger asks of programs; `run` is the task that waits for them."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._lacking: set[str] = set()
        self._more = trio.Event()

    def problem(self, name: str) -> str | None:
        """Why the program of an agent cannot be started; None if it is there."""
        why = self._agents.problem(name)
        if why is not None and name not in self._lacking:
            self._lacking.add(name)
            self._more.set()
        return why

    async def run(self, arrived: Callable[[], None]) -> None:
        """Tell whenever one of them is there by now that was not."""
        while True:
            if not self._lacking:
                await self._more.wait()
            self._more = trio.Event()
            with watching(self._paths()) as arrivals:
                # Looked for when the watch stands: it may have come before.
                here = {n for n in self._lacking if self._agents.problem(n) is None}
                if here:
                    self._lacking -= here
                    arrived()
                else:
                    await self._until_news(arrivals)

    async def _until_news(self, arrivals: Arrivals) -> None:
        """Wait for files, or for more to be waited for."""
        async with trio.open_nursery() as nursery:

            async def more() -> None:
                await self._more.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(more)
            await arrivals.wait()
            nursery.cancel_scope.cancel()

    def _paths(self) -> Iterator[str]:
        for name in self._lacking:
            try:
                of = finding.adapter(name)
            except (InvalidInput, Refused):
                continue  # no file will change that
            yield from finding.places(of, self._agents.environment(of))
