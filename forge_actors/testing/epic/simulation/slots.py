"""Slots that others have a say in, as in a service: granted later, or never."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.testing.epic.simulation.world import World

#: How often an issue is lost: its job is cancelled by a person.
LOST = 0.05


class SharedSlots:
    """The port `Slots`: each grant takes up to so many seconds."""

    def __init__(
        self, world: World, pid: int, seconds: float, ring: Callable[[], None]
    ) -> None:
        self._world = world
        self._chance = Random(f"{world.plan.seed} {pid}")  # noqa: S311 - chance
        self._seconds = seconds
        self._ring = ring
        #: By issue: whether it was granted.
        self._wanted: dict[int, bool] = {}
        self._order: Sequence[int] = ()
        self._lost: list[tuple[int, str]] = []
        #: All that were lost, for the referee.
        self.lost_ones: set[int] = set()

    def want(self, issues: Sequence[int]) -> None:
        """See the port."""
        self._order = issues
        before = self._wanted
        self._wanted = {each: before.get(each, False) for each in issues}
        for issue in issues:
            if issue not in before:
                self._queue(issue)

    def granted(self) -> Sequence[int]:
        """See the port."""
        return [each for each in self._order if self._wanted.get(each)]

    def refuse(self, issue: int, reason: str) -> None:
        """See the port."""
        self._wanted.pop(issue, None)

    def lost(self) -> Sequence[tuple[int, str]]:
        """See the port."""
        lost, self._lost = self._lost, []
        return lost

    def began(self, issue: int) -> None:
        """What was granted is used."""
        self._wanted.pop(issue, None)

    def has_granted(self, issue: int) -> bool:
        return self._wanted.get(issue, False)

    def _queue(self, issue: int) -> None:
        is_lost = self._chance.random() < LOST and not self._world.calm

        def answer() -> None:
            if issue not in self._wanted:
                return
            self._world.did("a grant" if not is_lost else "no grant ever")
            if is_lost:
                del self._wanted[issue]
                self._lost.append((issue, "its job was cancelled"))
                self.lost_ones.add(issue)
            else:
                self._wanted[issue] = True
            self._ring()

        self._world.timers.after(self._chance.uniform(0, self._seconds), answer)
