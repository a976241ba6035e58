"""Two days of clean-ups that hang, crash and overlap: every class is still visited."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.actors import bookkeeper, maintenance
from forge_actors.domain.cleaning import CLASSES
from forge_actors.domain.maintenance import ClassVisit, oldest_first
from forge_actors.testing import clean_up
from forge_actors.testing.simulation.maintenance import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.testing.simulation.maintenance import Report

    Mutation = Callable[[pytest.MonkeyPatch], None]

SEEDS = range(6)


@cache
def a_day(seed: int) -> Report:
    """Without a bug."""
    return simulate(seed, hours=24)


def test_in_two_days_every_class_is_visited_whatever_the_others_do() -> None:
    reports = [simulate(seed, hours=48) for seed in SEEDS]
    for seed, report in enumerate(reports):
        assert report.violations == [], seed
        assert report.runs > 48, seed
        assert min(len(visits) for visits in report.visits.values()) >= 10, seed
    # What can go wrong did.
    for name in ("crashes", "hangs", "restarts", "asked"):
        assert sum(getattr(report, name) for report in reports) > 0, name


def test_a_seed_is_repeatable() -> None:
    first, second = simulate(3, hours=12), simulate(3, hours=12)
    assert first.visits == second.visits


# Deliberate bugs


def classes_are_visited_in_a_fixed_order(patch: pytest.MonkeyPatch) -> None:
    def fixed(_: Any, wanted: Any = ()) -> Any:
        return [name for name in CLASSES if name in (wanted or CLASSES)]

    patch.setattr(clean_up, "oldest_first", fixed)


def the_youngest_is_visited_first(patch: pytest.MonkeyPatch) -> None:
    def youngest(visited_at: Any, wanted: Any = ()) -> Any:
        return oldest_first({n: -at for n, at in visited_at.items()}, wanted)

    patch.setattr(clean_up, "oldest_first", youngest)


def a_visit_is_written_down_when_it_has_ended(patch: pytest.MonkeyPatch) -> None:
    async def visiting(self: Any, clean_class: Any) -> None:
        self._visits.setdefault(clean_class, ClassVisit(clean_class, 0.0))

    patch.setattr(bookkeeper.Bookkeeper, "visiting", visiting)


def that_a_run_begins_is_not_saved(patch: pytest.MonkeyPatch) -> None:
    real = maintenance._Maintenance._save

    async def save(self: Any, run: Any, event: Any) -> None:
        if run.ended_at is not None:
            await real(self, run, event)

    patch.setattr(maintenance._Maintenance, "_save", save)


def a_run_does_not_wait_for_the_one_before_it(patch: pytest.MonkeyPatch) -> None:
    def go_on(self: Any) -> None:
        while self._asked:
            asked = self._asked.pop(0)
            self._begin(asked.request, asked.reply)
        if self._due and self._request is None:
            self._due = False
            now = self._context.clock.wall()
            self._begin(maintenance.CleanRequest(self._context.home, now), None)

    patch.setattr(maintenance._Maintenance, "go_on", go_on)


def a_run_is_due_at_once_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(maintenance, "next_run", lambda run, ended_at, period, now: now)


MUTATIONS: list[Mutation] = [
    classes_are_visited_in_a_fixed_order,
    the_youngest_is_visited_first,
    a_visit_is_written_down_when_it_has_ended,
    that_a_run_begins_is_not_saved,
    a_run_does_not_wait_for_the_one_before_it,
    a_run_is_due_at_once_again,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_deliberate_bug_is_found(mutation: Mutation) -> None:
    for seed in SEEDS:
        with pytest.MonkeyPatch.context() as patch:
            mutation(patch)
            found = simulate(seed, hours=24)
        if found.violations:
            assert a_day(seed).violations == []
            return
    raise AssertionError("nobody noticed")
