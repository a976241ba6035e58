"""The class `other`: what no other one is about. It is counted, and nothing goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.edges.cleanup.measuring import LOOK_EVERY, Measure
from forge_actors.edges.cleanup.visit import visiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.cleaning import CleanClass, Desk


class OtherCleaner:
    """Says how much there is besides, ours and what others have put there."""

    name: CleanClass = "other"

    def __init__(self, is_counted_elsewhere: Callable[[str], bool]) -> None:
        self._is_counted_elsewhere = is_counted_elsewhere

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        size, whole = 0, True

        def may_go_on() -> bool:
            # What others have put there may be of any size.
            desk.scanned(LOOK_EVERY)
            return desk.may_go_on()

        measure = Measure(may_go_on)
        with visiting(self.name, desk) as visit:
            for entry in visit.home.entries(
                lambda name: not self._is_counted_elsewhere(name)
            ):
                measured = measure.tree(visit.home, entry)
                size += measured.bytes
                whole = whole and measured.whole
        return ClassReport(self.name, size=size if whole else None)
