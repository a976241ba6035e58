"""Attempts that last: what starts them, and who waits for those that lost their agent.

No agent ends one, and neither does its own end: what it ran goes on. From then on we
watch that process ourselves. It is asked to stop as the agent would have asked it, and
what it leaves is ended once it has ended; how it exited nobody can know.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from forge_actors.edges.node import adoption, wire
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.jobs import MOST_STOPS
from forge_actors.edges.node.descriptors import handing_line
from forge_actors.edges.node.journals import add_stops

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from msgspec import Struct

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.edges.node.adoption import GoingOn
    from forge_actors.edges.node.agent_process import AgentProcess
    from forge_actors.edges.node.attempt import Attempt, Key
    from forge_actors.edges.node.outbox import Outbox


def launch(
    attempt: Attempt,
    order: LaunchOrder,
    descriptors: Descriptors | None,
    agent: AgentProcess,
    outbox: Outbox,
) -> None:
    """Order what not every agent can start: one that lasts, or has descriptors."""
    line = wire.start_line(order)
    attempt.stops = 0 if order.lasting else None
    if not agent.ready.hands_over:
        if descriptors is not None:
            descriptors.close()
        attempt.settle_end(adoption.not_by(attempt, agent.pid))
    elif descriptors is None:
        attempt.goes_with(line)
        outbox.queue(line)
    else:
        handing = handing_line(line, descriptors)
        attempt.goes_with(handing)
        outbox.hand(handing)


class Orphans:
    """Attempts whose agent is gone, and that go on."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._waiting: dict[Key, tuple[Attempt, GoingOn]] = {}

    async def run(self) -> None:
        """Watch them until `close`."""
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                self._begin()
                await trio.sleep_forever()

    def close(self) -> None:
        """Watch them no more: they are the next service's."""
        self._scope.cancel()

    def take(
        self, attempts: Mapping[Key, Attempt], going_on: Mapping[Key, GoingOn]
    ) -> None:
        """Watch these too."""
        for key, known in going_on.items():
            attempt = attempts[key]
            attempt.stops = max(attempt.stops or 0, known.record.stops)
            attempt.orphaned(partial(self._hear, known), known.identity)
            self._waiting[key] = (attempt, known)
        self._begin()

    def _begin(self) -> None:
        if self._nursery is not None and not self._scope.cancel_called:
            for attempt, known in self._waiting.values():
                self._nursery.start_soon(self._watch, attempt, known)
            self._waiting.clear()

    async def _watch(self, attempt: Attempt, known: GoingOn) -> None:
        await _wait_for_end(known)
        attempt.settle_end(await adoption.ended_alone(attempt, known))

    def _hear(self, known: GoingOn, message: Struct) -> None:
        """Do what the agent would have done."""
        if not isinstance(message, wire.Stop) or (message.nth or 0) > MOST_STOPS:
            return
        record = replace(known.record, identity=known.identity, stops=message.nth or 0)
        add_stops(self._home, known.agent, record)
        number = getattr(signal, record.lasting or "", signal.SIGINT)
        pid, start = known.identity.pid, known.identity.start_ticks
        process = tree.Process(pid, 0, pid, pid, start, False, "worker")
        with contextlib.suppress(PermissionError):
            tree.send(process, number)


async def _wait_for_end(known: GoingOn) -> None:
    identity = known.identity
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError:
        return  # it is gone; or no descriptor is left, and nobody can wait for it
    try:
        if tree.lives(identity.pid, identity.start_ticks):
            await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)
