"""Relocation: what is below a folder that moved, and nothing else, is elsewhere."""

from __future__ import annotations

import pytest

from forge_actors.domain.claims import Claim
from forge_actors.domain.events import Event
from forge_actors.domain.history import History
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.quarantine import Quarantine
from forge_actors.domain.relocation import Relocation, relocation
from tests.domain.making import AT_ONCE, dispatch_any, make_job

PLAIN = ("workers",)
THERE = Relocation("/a/app", "/b/app")


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/a/app", "/b/app"),
        ("/a/app/x/y", "/b/app/x/y"),
        ("/a/app-2/x", "/a/app-2/x"),
        ("/a", "/a"),
        ("", ""),
        ("/c/a/app", "/c/a/app"),
    ],
)
def test_only_what_is_below_the_folder_moves(path: str, there: str) -> None:
    assert THERE.path(path) == there


@pytest.mark.parametrize(
    ("old", "new", "paths", "expected"),
    [
        ("/a/.git", "/b/.git", ("/a", "/b"), ("/a", "/b")),
        # The work tree it was registered with is another one, and stays.
        ("/a/.git", "/b/.git", ("/tree", "/tree"), ("/a", "/b")),
        ("/a/.git", "/a/.git", ("/tree", "/tree"), None),
        ("/s/.git/modules/m", "/t/.git/modules/m", ("/s/m", "/t/m"), ("/s/m", "/t/m")),
        ("/a.git", "/b.git", ("/tree", "/tree"), None),
        ("/.git", "/b/.git", ("/x", "/y"), ("/x", "/y")),
    ],
)
def test_what_moves_with_a_repository(
    old: str, new: str, paths: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    found = relocation(old, new, *paths)
    assert (None if found is None else (found.old, found.new)) == expected


def _at(place: str, *, mode: str = "write") -> tuple[Claim, ...]:
    return (Claim(mode, "path", "src", place),)  # type: ignore[arg-type]


def test_the_ledger_goes_by_the_claims_there() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    runs, waits, beside = (make_job(name) for name in ("a", "b", "c"))
    runs.claims, waits.claims, beside.claims = _at("/old"), _at("/old"), _at("/new")
    for job in (runs, waits):
        ledger.add(job, (), 0.0)
    assert dispatch_any(ledger, 1.0) == "a"
    assert ledger.offers(1.0) == ()
    ledger.relocated(dict.fromkeys(("a", "b", "unknown"), _at("/new")))
    assert ledger.leases == {"a": _at("/new")}
    assert ledger.jobs["b"].claims == _at("/new")
    # One that names the new place waits for what runs, and goes on after it.
    ledger.add(beside, (), 2.0)
    assert ledger.offers(2.0) == ()
    assert ledger.waiting("c", 2.0).holders == ("a",)
    ledger.finish("a", 1, None, "cancelled", 3.0)
    assert [offer.job for offer in ledger.offers(3.0)] == ["b"]


def test_jobs_that_do_not_conflict_there_may_start() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    runs, waits = make_job("a"), make_job("b")
    runs.claims, waits.claims = _at("/old"), _at("/old")
    for job in (runs, waits):
        ledger.add(job, (), 0.0)
    dispatch_any(ledger, 1.0)
    assert ledger.offers(1.0) == ()
    ledger.relocated({"a": _at("/new"), "b": _at("/old")})
    assert [offer.job for offer in ledger.offers(1.0)] == ["b"]


def test_what_is_kept_is_kept_there() -> None:
    left = Quarantine(
        "z", "repo", 1, 1, _at("/old"), (ProcessIdentity("boot", 1, 1),), "stuck", 0.0
    )
    ledger = Ledger("repo", backoff=AT_ONCE, quarantined=[left])
    ledger.relocated({"z": _at("/new")})
    assert ledger.held == {"z": _at("/new")}


def test_the_history_tells_who_holds_what_where_it_is_now() -> None:
    history = History()
    told = [
        ("repository_added", None, {"name": "app", "path": "/old"}),
        (
            "job_queued",
            "a",
            {
                "origin": "cli",
                "kind": "repository-command",
                "priority": "P2",
                "claims": _at("/old"),
            },
        ),
        (
            "job_dispatched",
            "a",
            {"attempt": 1, "fence": 1, "tokens": PLAIN, "claims": _at("/old")},
        ),
        (
            "repository_moved",
            None,
            {"name": "app", "from": "/old", "to": "/new", "moved": ("/old", "/new")},
        ),
    ]
    for seq, (kind, job, data) in enumerate(told, start=1):
        history.apply(Event(kind, 1.0, "repo", job, data, seq=seq))
    assert history.repositories["repo"].path == "/new"
    assert history.leases == {"repo": {"a": _at("/new")}}
    assert history.jobs["a"].claims == _at("/new")
