"""What a run of an EPIC is given: its ports, its limits, and who is to hear of it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic.telling import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from forge_actors.domain.epic.graph import Graph
    from forge_actors.domain.epic.ports import Locks
    from forge_actors.domain.epic.record_ports import Namespaces
    from forge_actors.domain.epic.records import ConfigSummary, EpicRef
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.domain.epic.workers import Slots, Workers
    from forge_actors.domain.ports import Clock


class Bell:
    """Wakes the loop. Rung before anybody listens, it is still heard."""

    def __init__(self) -> None:
        self._rung = trio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, deadline: float = math.inf) -> None:
        """Return once it has been rung, or at that moment of trio's clock."""
        with trio.CancelScope(deadline=deadline):
            await self._rung.wait()
        self._rung = trio.Event()


@dataclass
class Context:
    """The surroundings of one run."""

    graph: Graph
    locks: Locks
    namespaces: Namespaces
    workers: Workers
    slots: Slots
    clock: Clock
    config: ConfigSummary
    satisfied_by: tuple[str, ...]
    #: Where an issue's worktree is.
    worktree: Callable[[int], str]
    #: A random text of lower-case letters and digits.
    token: Callable[[], str]
    #: Prints one line; that it fails is no matter.
    out: Callable[[str], None]
    #: Has signals counted by what it is given; None where nobody sends any.
    signals: Callable[[Callable[[], None]], AbstractContextManager[None]]
    #: Watches the request to stop until it is cancelled, and calls what it is given
    #: when that may have changed.
    watch: Callable[..., Awaitable[None]]
    #: Once the EPIC is known, before anything of it is read or written.
    before_start: Callable[[EpicRef], None] = lambda _epic: None
    #: After each pass of the loop, with what makes a view of it.
    passed: Callable[[Callable[[], EpicView | None]], None] = lambda _view: None
    #: What happens, for programs: a kind and what belongs to it.
    tell: Callable[[str, dict[str, object]], None] = lambda _kind, _data: None
    bell: Bell = field(default_factory=Bell)

    def say(self, text: str) -> None:
        """Print a line. A terminal that is gone stops nothing."""
        with suppress(OSError, ValueError):
            self.out(line(text))
