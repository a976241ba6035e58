"""Shrinking: the least of a plan that still breaks the same rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from forge_actors.testing.simulation.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


T = TypeVar("T")

#: Runs that may be made to shrink one plan.
MAX_RUNS = 300


class Shrinking:
    """The search for the least plan; each try is one `run` of it.

    A plan of any simulation has `operations` and `faults`, and a result its `plan` and
    its `violation`.
    """

    def __init__(
        self,
        found: Any,
        *,
        runs: int = MAX_RUNS,
        run: Callable[[Any], Any] = run,
    ) -> None:
        assert found.violation is not None, "only a failure is shrunk"
        self._rule = found.violation.rule
        self._left = runs
        self._run = run
        self.least: Any = found

    def shrink(self) -> Any:
        """Leave out what is not needed: first what is done, then what goes wrong."""
        before = -1
        while before != self._left and self._left > 0:
            before = self._left
            plan = self.least.plan
            kept = self._reduce(
                plan.operations,
                lambda few: structs.replace(self.least.plan, operations=few),
            )
            plan = structs.replace(self.least.plan, operations=kept)
            self._reduce(
                plan.faults, lambda few: structs.replace(self.least.plan, faults=few)
            )
            if self.least.plan == plan:
                break
        return self.least

    def _reduce(
        self, items: Sequence[T], plan_of: Callable[[tuple[T, ...]], Any]
    ) -> tuple[T, ...]:
        """Try without halves, then without smaller pieces, down to single ones."""
        kept = tuple(items)
        size = max(1, len(kept) // 2)
        while kept and self._left > 0:
            for start in range(0, len(kept), size):
                fewer = kept[:start] + kept[start + size :]
                if self._still_fails(plan_of(fewer)):
                    kept = fewer
                    break
            else:
                if size == 1:
                    break
                size = max(1, size // 2)
        return kept

    def _still_fails(self, plan: Any) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        result = self._run(plan)
        if result.violation is None or result.violation.rule != self._rule:
            return False
        self.least = result
        return True
