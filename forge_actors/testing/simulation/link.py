"""The link between a launcher and a node agent: one connection, as a stream socket is.

It keeps the order of messages, and so what is late makes what follows late. A message
is lost only with all that comes after it: the connection breaks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from typing import Any

    from forge_actors.testing.simulation.world import World

#: Seconds a message takes, at most.
LATENCY = 0.002


class Side(Protocol):
    """One end. When it dies, all of its links hang up."""

    links: list[Link]

    @property
    def dead(self) -> bool: ...

    def take(self, link: Link, message: Any) -> None: ...

    def disconnected(self, link: Link) -> None: ...


class _Way:
    """The messages in one direction."""

    def __init__(self, link: Link, sender: Side, receiver: Side) -> None:
        self._link = link
        self._sender = sender
        self._receiver = receiver
        self._free_at = 0.0
        self.broken = False

    def send(self, name: str, message: Any) -> None:
        link, world = self._link, self._link.world
        if self.broken or self._sender.dead:
            return
        point = f"send {name}"
        fault = world.faults.before(point)
        if self._sender.dead:
            return
        delay = LATENCY * world.random.random()
        again: float | None = None
        if fault is not None:
            world.note(fault.kind, point)
            match fault.kind:
                case "lose":
                    self.broken = True
                    world.timers.after(fault.amount, link.cut)
                    return
                case "late":
                    delay += fault.amount
                case "repeat":
                    # The launcher repeats an order only while it does not know what
                    # became of it; the agent's answer to that may come much later.
                    again = fault.amount if self is link.reports else 0.0
                case _:
                    pass
        self._free_at = max(self._free_at, trio.current_time() + delay)
        world.timers.at(self._free_at, lambda: self._deliver(name, message))
        if again is not None:
            due = self._free_at + again
            world.timers.at(due, lambda: self._deliver(name, message))
        world.faults.after(point)

    def _deliver(self, name: str, message: Any) -> None:
        if self.broken or self._receiver.dead:
            return
        faults, point = self._link.world.faults, f"take {name}"
        faults.before(point)
        if self._receiver.dead:
            return
        self._link.world.note(point, message)
        self._receiver.take(self._link, message)
        faults.after(point)


class Link:
    """One connection. What was sent before one end died still arrives at the other."""

    def __init__(self, world: World, service: Side, agent: Side) -> None:
        self.world = world
        self._ends = (service, agent)
        self._orders = _Way(self, service, agent)
        self.reports = _Way(self, agent, service)
        self._cut = False
        service.links.append(self)
        agent.links.append(self)

    def order(self, message: dict[str, Any]) -> None:
        """To the agent: a message as the agent reads it."""
        self._orders.send(message["op"], message)

    def report(self, line: bytes) -> None:
        """To the service: a line, `{"event":"...` as the agent writes it."""
        self.reports.send(line[10 : line.index(b'"', 10)].decode(), line)

    def cut(self) -> None:
        """It breaks: what is on its way is lost, and both ends see that."""
        self._orders.broken = self.reports.broken = True
        self.hang_up()

    def hang_up(self) -> None:
        """One end is gone; the other sees it after what was sent before."""
        if self._cut:
            return
        self._cut = True
        for end in self._ends:
            if not end.dead:
                self.world.timers.after(2 * LATENCY, partial(self._tell, end))

    def _tell(self, end: Side) -> None:
        if not end.dead:
            end.disconnected(self)
