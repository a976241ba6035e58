"""A history that cannot be true is refused, with the event that does not follow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forge_actors
from forge_actors.domain.claims import Claim
from forge_actors.domain.events import KINDS, Event, EventView
from forge_actors.domain.history import BrokenHistory, History

PATH = Claim("write", "path", "x", "/app")


def told(*events: tuple[str, str | None, dict[str, object]]) -> History:
    history = History()
    for number, (kind, job, data) in enumerate(events, start=1):
        repo = None if kind in ("limits", "paused", "drain_began") else "r"
        history.apply(Event(kind, 0.0, repo, job, data, number))
    return history


ADDED = ("repository_added", None, {"name": "app", "path": "/app"})
FACTS: dict[str, object] = {
    "reason": "accepted",
    "origin": "cli",
    "kind": "check",
    "priority": "P2",
    "claims": [PATH],
}


def dispatched(fence: int, *tokens: str, attempt: int = 1) -> dict[str, object]:
    return {"attempt": attempt, "fence": fence, "claims": [PATH], "tokens": tokens}


def test_what_a_dispatch_gives_is_free_again_when_the_job_leaves() -> None:
    before = (ADDED, ("job_queued", "j", FACTS))
    given = ("job_dispatched", "j", dispatched(1, "workers", "heavy_checks"))
    history = told(*before, given)
    assert history.leases == {"r": {"j": (PATH,)}}
    assert history.holders("heavy_checks") == ("j",)
    assert (history.jobs["j"].attempt, history.jobs["j"].fence) == (1, 1)
    lost = {"attempt": 1, "error": {"code": "WORKER_LOST", "message": "it is gone"}}
    history = told(*before, given, ("job_queued", "j", lost))
    assert history.leases == {}
    assert history.holders("workers") == ()
    assert (history.jobs["j"].fence, history.jobs["j"].reason) == (None, "WORKER_LOST")


def test_a_dispatch_over_a_limit_or_a_held_claim_is_a_fault() -> None:
    limits = {
        "tokens": {"workers": 1},
        "active_repositories": 1,
        "repository_workers": 2,
    }
    history = told(
        ("limits", None, limits),
        ADDED,
        ("job_queued", "one", {**FACTS, "kind": "repository-command"}),
        ("job_queued", "two", {**FACTS, "kind": "repository-command"}),
        ("job_dispatched", "one", dispatched(1, "workers")),
        ("job_dispatched", "two", dispatched(2, "workers")),
    )
    assert history.faults("two") == [
        "write:path:x of two conflicts with write:path:x of one",
        "two makes 2 of 1 workers",
    ]


def test_one_that_is_readied_has_its_claims_and_takes_its_tokens_later() -> None:
    plain = {**FACTS, "kind": "repository-command"}
    before = (ADDED, ("job_queued", "j", plain))
    readied = ("job_readied", "j", dispatched(1, "workers"))
    history = told(*before, readied)
    assert (history.jobs["j"].state, history.holders("workers")) == ("dispatched", ())
    assert history.leases == {"r": {"j": (PATH,)}}
    taken = ("job_dispatched", "j", dispatched(1, "workers"))
    history = told(*before, readied, taken)
    assert (history.jobs["j"].attempt, history.holders("workers")) == (1, ("j",))
    # Its runtime was killed before it wrote that down.
    history = told(*before, readied, ("job_running", "j", {"pid": 7}))
    assert history.holders("workers") == ("j",)
    history = told(*before, readied, ("job_queued", "j", {"attempt": 1}))
    assert (history.holders("workers"), history.leases) == ((), {})
    with pytest.raises(BrokenHistory, match="j is dispatched"):
        told(*before, readied, taken, taken)


def test_other_claims_are_those_of_the_job_from_then_on() -> None:
    other = ("write", "path", "y", "")
    history = told(
        ADDED,
        ("job_queued", "j", FACTS),
        ("job_auto_isolated", "j", {"claims": [other]}),
    )
    [claim] = history.jobs["j"].claims
    assert (claim.family, claim.rest) == ("path", "y")


def test_holds_pauses_and_edits_are_taken() -> None:
    history = told(
        ADDED,
        ("job_queued", "j", FACTS),
        ("job_held", "j", {}),
        ("job_edited", "j", {"changed": {"priority": "P0", "labels": ["l"], "x": 1}}),
        ("paused", None, {"scope": "all", "jobs": False}),
        ("drain_began", None, {}),
    )
    job = history.jobs["j"]
    assert (job.held, job.priority, job.labels) == (True, "P0", ("l",))
    assert (history.pauses, history.draining) == ({"all": False}, True)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([("job_queued", "j", FACTS)], "names no job, or no repository"),
        ([ADDED, ("job_queued", "j", {"reason": "accepted"})], "lacks something"),
        ([ADDED, ("job_queued", "j", FACTS), ("job_running", "j", {})], "is queued"),
        (
            [
                ADDED,
                ("job_queued", "j", FACTS),
                ("job_dispatched", "j", dispatched(1, attempt=2)),
            ],
            "attempt 2 or fence 1 was there before",
        ),
        (
            [
                ADDED,
                ("job_queued", "j", FACTS),
                ("job_dispatched", "j", dispatched(1, "workers")),
            ],
            "j takes workers, heavy_checks",
        ),
        ([ADDED, ("job_queued", "j", FACTS), ("job_lost", "j", {})], "no known kind"),
        ([("repository_removed", None, {"name": "app"})], "is not known"),
        ([("paused", None, {})], "lacks something"),
    ],
)
def test_an_event_that_does_not_follow_is_refused(
    events: list[tuple[str, str | None, dict[str, object]]], problem: str
) -> None:
    with pytest.raises(BrokenHistory, match=problem) as caught:
        told(*events)
    assert str(caught.value).startswith(f"event {len(events)}, {events[-1][0]}")


def test_the_numbers_of_events_grow_and_a_line_says_as_much_as_an_event() -> None:
    history = told(ADDED)
    data: dict[str, object] = {"name": "app", "from": "/app", "to": "/new"}
    line = EventView(
        2, "2026-01-01T00:00:00Z", "repository_moved", "app", None, data, "r"
    )
    history.apply(line)
    assert history.repositories["r"].path == "/new"
    with pytest.raises(BrokenHistory, match="event 2 comes after event 2"):
        history.apply(line)


def test_every_event_that_is_written_is_of_a_known_kind() -> None:
    package = Path(forge_actors.__file__).parent
    written = {
        kind
        for path in package.rglob("*.py")
        if path.parent.name != "testing"
        for kind in re.findall(r'\bEvent\(\s*"([a-z_]+)"', path.read_text("utf-8"))
    }
    assert "runtime_started" in written
    assert written <= set(KINDS)


def test_limits_providers_and_their_jobs_are_as_they_were_told_last() -> None:
    limits: dict[str, object] = {
        "tokens": {"worker": 4},
        "active_repositories": 2,
        "repository_workers": 3,
    }
    closed: dict[str, object] = {"provider": "openai", "reason": "usage"}
    history = told(
        ("limits", None, limits),
        ADDED,
        ("provider_closed", None, closed),
        ("job_queued", "j", FACTS),
        ("job_redirected", "j", {"provider": "anthropic"}),
    )
    assert history.limits == {"worker": 4}
    assert (history.active_repositories, history.repository_workers) == (2, 3)
    assert history.closed_providers == {"openai": "usage"}
    assert history.jobs["j"].provider == "anthropic"
    opened = ("provider_opened", None, {"provider": "openai"})
    again = told(("provider_closed", None, closed), opened)
    assert again.closed_providers == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_known_kind_has_its_place_in_the_fold(kind: str) -> None:
    """It may not follow, or lack what it carries; it is never unknown."""
    history = told(ADDED, ("job_queued", "j", FACTS))
    about_one = kind.startswith(("job_", "repository_"))
    event = Event(kind, 0.0, "r" if about_one else None, "j", {"name": "app"}, 3)
    problem = ""
    try:
        history.apply(event)
    except BrokenHistory as broken:
        problem = str(broken)
    assert "of no known kind" not in problem
