"""What the history says in numbers: each attempt once, whenever it began."""

from __future__ import annotations

from forge_actors.domain.event_counts import EventCounts, Moments
from forge_actors.domain.events import Event
from forge_actors.domain.metrics import Histogram


def event(state: str, at: float, job: str = "j", **data: object) -> Event:
    return Event(f"job_{state}", at, "r", job, data)


def test_an_attempt_counts_once_by_its_outcome() -> None:
    counts = EventCounts(["old"])
    counts.add(
        [
            event("queued", 1.0, reason="accepted", kind="check"),
            event("dispatched", 2.0, attempt=1),
            event("running", 2.5),
            event("waiting_for_retry", 5.0, attempt=1),
            # Nothing ran of these two.
            event("cancelled", 5.0, "waited", attempt=0),
            event("queued", 6.0),
            event("dispatched", 8.0, attempt=2),
        ],
        {"j": Moments(1.0, 1.5)},
    )
    # It was dispatched, never ran, and is told of in the next part.
    counts.add([event("failed", 9.0, attempt=2), event("orphaned", 9.0, "old")], {})
    assert counts.accepted == {"check": 1}
    assert counts.outcomes == {"waiting_for_retry": 1, "failed": 1, "orphaned": 1}
    assert counts.lengths.sum == 3.0 + 1.0
    sums = {since: (seen.count, seen.sum) for since, seen in counts.delays.items()}
    assert sums == {"accepted": (1, 1.5), "queued": (1, 1.0), "dispatched": (1, 0.5)}


def test_only_a_first_attempt_tells_how_long_it_was_since_the_acceptance() -> None:
    counts = EventCounts([])
    moments = {"j": Moments(1.0, 20.0)}
    counts.add([event("dispatched", 10.0, attempt=2), event("running", 11.0)], moments)
    assert counts.delays["accepted"].count == 0
    # Meanwhile it is back in the queue: since when it waited before is not known.
    assert counts.delays["queued"].count == 0
    assert counts.delays["dispatched"].count == 1


def test_one_that_was_taken_over_has_no_delay_and_no_length() -> None:
    counts = EventCounts(["j"])
    counts.add([event("running", 3.0), event("succeeded", 4.0)], {})
    assert counts.outcomes == {"succeeded": 1}
    assert counts.lengths.count == counts.delays["dispatched"].count == 0


def test_the_moments_asked_for_are_those_of_jobs_that_start() -> None:
    events = [event("running", 1.0, "a"), event("queued", 1.0, "b")]
    assert EventCounts([]).starts([*events, Event("paused", 1.0)]) == ["a"]


def test_every_family_is_there_before_anything_happened() -> None:
    families = {family.name: family for family in EventCounts([]).families()}
    assert families["forge_attempts"].values["succeeded",] == 0
    assert families["forge_jobs_accepted"].values["check",] == 0
    assert ("running",) not in families["forge_attempts"].values


def test_a_histogram_counts_each_value_in_the_first_bound_that_holds_it() -> None:
    seen = Histogram((1.0, 2.0))
    for value in (0.0, 1.0, 1.5, 2.0, 1.5, 3.0):
        seen.add(value)
    assert seen.up_to() == [(1.0, 2), (2.0, 5), (float("inf"), 6)]
    assert (seen.count, seen.sum) == (6, 9.0)
