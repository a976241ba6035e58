"""The programs of agents as a runtime sees them: where they are, and whether they run.

Where one is costs nothing to see. Its version and its login are asked for when somebody
looks and the last answers are old: that starts the program, and nobody waits for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.agents import AgentProgram
from forge_actors.domain.errors import Refused
from forge_actors.edges.agents import finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.agents import AgentAdapter
    from forge_actors.runtime.agents import Agents

#: Seconds for which an answer holds.
ASK_AGAIN = 600.0
#: Of a program whose first answer is still to come.
UNKNOWN = "it was not asked yet"


class AgentPrograms:
    """What is known of them. `run` is the task that asks."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._known: dict[str, AgentProgram] = {}
        self._asked_at: float | None = None
        self._wanted = trio.Event()

    def look(self) -> list[AgentProgram]:
        """What is known now; more is found out if that is old."""
        found = []
        unknown = False
        for of, env in _adapters(self._agents):
            try:
                path = finding.find(of, env)
            except Refused as error:
                found.append(AgentProgram(of.name, of.provider, detail=str(error)))
                continue
            known = self._known.get(of.name)
            if known is None or known.path != path:
                unknown = True
                known = AgentProgram(of.name, of.provider, path, detail=UNKNOWN)
            found.append(known)
        if unknown or (self._known and self._is_old()):
            self._wanted.set()
        return found

    def _is_old(self) -> bool:
        asked = self._asked_at
        return asked is None or trio.current_time() >= asked + ASK_AGAIN

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            async with trio.open_nursery() as nursery:
                for of, env in _adapters(self._agents):
                    nursery.start_soon(self._ask, of, env)
            self._asked_at = trio.current_time()
            self._wanted = trio.Event()

    async def _ask(self, of: AgentAdapter, env: Mapping[str, str]) -> None:
        ask = partial(probed, of, env)
        # A stop does not wait for it: it ends by itself, in seconds.
        self._known[of.name] = await trio.to_thread.run_sync(
            ask, abandon_on_cancel=True
        )


def probe_all(agents: Agents) -> list[AgentProgram]:
    """What there is of each program; asks them, one after the other."""
    return [probed(of, env) for of, env in _adapters(agents)]


def probed(of: AgentAdapter, env: Mapping[str, str]) -> AgentProgram:
    """What there is of one, whatever its adapter makes of the question."""
    try:
        return finding.probe(of, env)
    except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code
        return AgentProgram(of.name, None, detail=f"its adapter failed: {error!r}")


def _adapters(agents: Agents) -> list[tuple[AgentAdapter, Mapping[str, str]]]:
    """Those with a program of their own that can be loaded."""
    found: list[tuple[AgentAdapter, Mapping[str, str]]] = []
    for name in finding.adapter_names():
        try:
            of = finding.adapter(name)
        except Refused:
            continue
        if of.program is not None:
            found.append((of, agents.environment(of)))
    return found
