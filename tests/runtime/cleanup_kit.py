"""What the tests of the clean-up program share: a home, and who it talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.cleaning import ClassReport, CleanClass, CleanRequest
from forge_actors.domain.maintenance import CleanLimits, CleanOrder
from forge_actors.edges.cleanup import wire
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.runtime.homes import STORE_FILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.domain.cleaning import Desk


def home_with(folder: Path, *statements: tuple[str, tuple[Any, ...]]) -> Path:
    """A home whose store these statements have filled."""
    with opened_alone(folder / STORE_FILE) as db:
        for statement, values in statements:
            db.execute(statement, values)
    return folder


def visited_at(**moments: float) -> list[tuple[str, tuple[Any, ...]]]:
    """Statements that say when classes were visited."""
    insert = "INSERT INTO clean_class (name, visited_at) VALUES (?, ?)"
    return [(insert, (name, at)) for name, at in moments.items()]


def order(
    home: Path, *, limits: CleanLimits | None = None, **fields: Any
) -> CleanOrder:
    return CleanOrder(
        CleanRequest(str(home), 1000.0, **fields), limits or CleanLimits()
    )


class Heard:
    """An owner that does what it is asked, and remembers all that was said."""

    def __init__(self) -> None:
        self.said: list[wire.Said] = []

    def ask(self, question: wire.Question) -> wire.Answer:
        self.said.append(question)
        if isinstance(question, wire.ForgetJobs):
            return wire.Answer(jobs=question.jobs)
        return wire.Answer()

    def tell(self, told: wire.Told | wire.Done) -> None:
        self.said.append(told)

    @property
    def visits(self) -> list[str]:
        return [each.clean_class for each in self.said if type(each) is wire.Visiting]

    @property
    def reports(self) -> dict[str, ClassReport]:
        visited = [each for each in self.said if isinstance(each, wire.Visited)]
        return {each.report.clean_class: each.report for each in visited}

    @property
    def done(self) -> list[str | None]:
        return [each.error for each in self.said if isinstance(each, wire.Done)]


class Doing:
    """A class of the clean-up that does what a test says."""

    def __init__(self, name: CleanClass, do: Callable[[Desk], object]) -> None:
        self.name = name
        self._do = do
        self.cursors: list[str | None] = []

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        self.cursors.append(cursor)
        self._do(desk)
        return ClassReport(self.name)
