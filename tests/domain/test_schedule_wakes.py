"""Schedules that wake a controller: their bounds, and what becomes of a window."""

from __future__ import annotations

import math

import pytest

from forge_actors.domain.continuation import NotNow, NotWoken
from forge_actors.domain.effects import Authority, again
from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, StoreFailed
from forge_actors.domain.schedule_wakes import cautious, refusal
from forge_actors.domain.schedules import Policies


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ((10, 0.0, None, 0.0, 86400.0), (3, 600.0, 3600.0, 600.0, 86400.0)),
        ((0, 60.0, 9000.0, 10.0, 100.0), (3, 600.0, 3600.0, 600.0, 600.0)),
        ((2, 900.0, 60.0, 1200.0, 1200.0), (2, 900.0, 60.0, 1200.0, 1200.0)),
    ],
)
def test_no_schedule_that_wakes_passes_its_bounds(
    said: tuple[int, float, float | None, float, float],
    kept: tuple[int, float, float, float, float],
) -> None:
    failures, cooldown, budget, backoff, longest = said
    policies = cautious(
        Policies(
            max_failures=failures,
            cooldown=cooldown,
            daily_budget=budget,
            backoff=backoff,
            max_backoff=longest,
        )
    )
    assert (
        *(policies.max_failures, policies.cooldown, policies.daily_budget),
        *(policies.backoff, policies.max_backoff),
    ) == kept
    assert cautious(policies) == policies


@pytest.mark.parametrize(
    ("error", "verdict", "decision", "later"),
    [
        (NotNow("it runs"), "defer", "deferred", math.inf),
        (NotNow("so soon", 900.0), "defer", "deferred", 900.0),
        (NotWoken("waits", failed=False), "drop", "stopped", math.inf),
        (NotWoken("unknown", failed=True), "drop", "failed", math.inf),
        (StoreFailed(), "defer", "deferred", 130.0),
        (NotFound("gone"), "drop", "failed", math.inf),
        (InvalidInput("x", "y"), "drop", "failed", math.inf),
    ],
)
def test_what_becomes_of_a_window_that_wakes_nothing(
    error: ForgeError, verdict: str, decision: str, later: float
) -> None:
    for wakes in (False, True):
        ruling = refusal(error, 100.0, wakes=wakes)
        assert (ruling.verdict, ruling.decision, ruling.later) == (
            *(verdict, decision),
            later,
        )
        assert ("controller" in ruling.reason) == wakes


def test_what_no_person_asks_for_goes_on_without_the_rights_of_one() -> None:
    for old in (None, Authority(declared=("push",))):
        assert again(old, "j", None, ["true"]) == old
        assert again(old, "j", None, ["true"], "cli") == old
        for origin in ("continuation:c", "schedule:s"):
            made = again(old, "j", None, ["true"], origin)
            assert made is not None
            assert (made.automated, made.began, made.authorised) == (True, origin, ())
            assert made.declared == (() if old is None else ("push",))
    # What was allowed to one that no person asked for stays allowed.
    allowed = Authority(automated=True, began="schedule:s", authorised=("push",))
    assert again(allowed, "j", None, ["true"], "continuation:c") == allowed
