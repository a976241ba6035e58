"""What a schedule waits for in place of a time, and whether it would run then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.causes import AllOf, Branch, Clean, Ended, Files, Issues, Jobs
from forge_actors.domain.github.watching import BEGIN, IssuesSeen
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import Definition, Policies, Progress, Schedule
from forge_actors.domain.sightings import (
    MAX_SHOWN,
    CommitSeen,
    EndsSeen,
    RefsSeen,
    written,
)
from forge_actors.domain.triggers import Every, On
from forge_actors.domain.waited_for import if_it_came, waited_for

if TYPE_CHECKING:
    from msgspec import Struct

    from forge_actors.domain.causes import Cause

JOB = JobRequest(repo="app", argv=["true"])
BUILD = Ended(Jobs("named", "build"), succeeded=True)
BOTH = AllOf((Jobs("named", "a"), Jobs("kind", "check")))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def schedule(cause: Cause, seen: Struct | None = None, **fields: Any) -> Schedule:
    policies = fields.pop("policies", Policies())
    blind = fields.pop("blind", None)
    known = None if seen is None else written(seen)
    progress = Progress(0.0, seen=known, **({} if blind is None else {"blind": blind}))
    definition = Definition("night", "app", On(cause), JOB, policies)
    return Schedule("s1", 1, definition, progress, **fields)


@pytest.mark.parametrize(
    ("cause", "seen", "far"),
    [
        (Clean(), None, ""),
        (BUILD, EndsSeen(3), ""),
        (BOTH, None, ""),
        (BOTH, EndsSeen(3), ""),
        (BOTH, EndsSeen(3, {"a": "j1"}), "; not yet: kind:check"),
        (Branch("main"), None, ""),
        (Branch("main"), RefsSeen({"main": COMMIT}), "; main is at 0123456789ab"),
        (
            Branch("*"),
            RefsSeen({"c": "3", "a": "1", "d": "4", "b": "2"}),
            "; a is at 1, b is at 2, c is at 3, 1 more",
        ),
        (Branch("*"), RefsSeen({"c": "3", "a": "1"}), "; a is at 1, c is at 3"),
        (Files("src/**"), None, ""),
        (Files("src/**"), CommitSeen(None), ""),
        (Files("src/**"), CommitSeen(COMMIT), "; seen until 0123456789ab"),
        (Issues(), None, "; not asked yet"),
        (Issues(), IssuesSeen(BEGIN, BEGIN), ""),
        (
            Issues(),
            IssuesSeen(BEGIN, "2026-01-02T03:04:05Z"),
            "; seen until 2026-01-02T03:04:05Z",
        ),
    ],
)
def test_how_far_it_is_follows_what_it_waits_for(
    cause: Cause, seen: Struct | None, far: str
) -> None:
    assert waited_for(schedule(cause, seen)) == f"{cause.told}{far}"
    blind = schedule(cause, seen, blind="it is away")
    assert waited_for(blind) == f"{cause.told}{far}; not seen now: it is away"


def test_a_long_name_of_a_branch_is_cut() -> None:
    told = waited_for(schedule(Branch("*"), RefsSeen({"x" * 300: COMMIT})))
    assert told is not None
    assert told.count("x") == MAX_SHOWN - 1


def test_one_that_waits_for_times_waits_for_nothing_else() -> None:
    timed = schedule(BUILD)
    timed = structs.replace(
        timed, definition=structs.replace(timed.definition, trigger=Every(60.0))
    )
    assert waited_for(timed) is None
    assert if_it_came(timed, 100.0) is None


def test_one_that_is_over_or_quarantined_would_not_be_asked() -> None:
    for state in ("quarantined", "done"):
        assert if_it_came(schedule(BUILD, state=state), 100.0) is None


def test_whether_it_would_run_is_what_would_be_ruled() -> None:
    told = f"when {BUILD.told}"
    assert if_it_came(schedule(BUILD), 100.0) == (True, told)
    paused = schedule(BUILD, state="paused", why="a person did")
    assert if_it_came(paused, 100.0) == (
        False,
        f"{told}: it is paused: a person did",
    )
    # The checkout is taken to be clean, and the window not to be late.
    strict = Policies(when_clean=True, catch_up=0.0, misfire="skip")
    assert if_it_came(schedule(BUILD, policies=strict), 1e6) == (True, told)
    over = if_it_came(schedule(BUILD, policies=Policies(until=100.0)), 100.0)
    assert over == (False, f"{told}: its last moment has passed")
    assert if_it_came(schedule(BUILD, policies=Policies(until=100.5)), 100.0) == (
        *(True, told),
    )
