"""Limits are exchanged: what runs is left alone, what waits goes by the new ones."""

from __future__ import annotations

from msgspec import structs

from forge_actors.domain.capacity import (
    ACTIVE_REPOSITORIES,
    Capacity,
    Offer,
    RepositoryLimits,
    tokens_for,
)
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.line import Line
from tests.domain.making import (
    SUCCESS,
    dispatch_any,
    end_attempt,
    make_capacity,
    make_job,
)

PLAIN = tokens_for("repository-command", None)
LOCAL = tokens_for("repository-command", "local")
PLAIN_KINDS = frozenset({"workers", "heavy_checks", "agents"})


def without_local(capacity: Capacity) -> None:
    tokens = {k: n for k, n in capacity.limits.tokens.items() if k != "provider:local"}
    capacity.set_limits(structs.replace(capacity.limits, tokens=tokens))


def with_tokens(capacity: Capacity, **counts: int) -> None:
    tokens = capacity.limits.tokens | counts
    capacity.set_limits(structs.replace(capacity.limits, tokens=tokens))


# The counts


def test_below_what_is_held_nothing_fits_until_enough_came_back() -> None:
    capacity = make_capacity(workers=3)
    for name in ("g1", "g2", "g3"):
        capacity.take(name, "r1", PLAIN)
    with_tokens(capacity, workers=2)
    assert (capacity.used("workers"), capacity.limit("workers")) == (3, 2)
    capacity.give_back("g1", "r1", PLAIN)
    assert not capacity.fits("r1", PLAIN)
    [lack] = capacity.lacking("r1", PLAIN)
    assert (lack.token, lack.used, lack.limit) == ("workers", 2, 2)
    capacity.give_back("g2", "r1", PLAIN)
    assert capacity.fits("r1", PLAIN)


def test_a_kind_that_is_new_can_be_taken() -> None:
    capacity = make_capacity()
    other = tokens_for("repository-command", "other")
    assert not capacity.fits("r1", other)
    with_tokens(capacity, **{"provider:other": 1})
    assert capacity.fits("r1", other)
    capacity.take("g1", "r1", other)
    assert capacity.used("provider:other") == 1


def test_a_kind_that_is_gone_is_counted_until_it_came_back() -> None:
    capacity = make_capacity()
    capacity.take("g1", "r1", LOCAL)
    without_local(capacity)
    assert "provider:local" in capacity.kinds()
    use = capacity.use("provider:local", lambda grants: grants)
    assert (use.used, use.limit, use.jobs, use.known) == (1, 0, ("g1",), False)
    assert not capacity.fits("r1", LOCAL)
    capacity.give_back("g1", "r1", LOCAL)
    assert "provider:local" not in capacity.kinds()


def test_over_their_limit_not_even_an_active_repository_starts_something() -> None:
    """Else each of them could go on for ever with its own jobs."""
    capacity = make_capacity(active_repositories=2)
    capacity.take("g1", "r1", PLAIN)
    capacity.take("g2", "r2", PLAIN)
    assert capacity.fits("r1", PLAIN)
    capacity.set_limits(structs.replace(capacity.limits, active_repositories=1))
    assert not capacity.fits("r1", PLAIN)
    [lack] = capacity.lacking("r1", PLAIN)
    assert (lack.token, lack.used, lack.limit) == (ACTIVE_REPOSITORIES, 2, 1)
    capacity.give_back("g2", "r2", PLAIN)
    assert capacity.fits("r1", PLAIN)
    assert not capacity.fits("r2", PLAIN)


# The line


def starving(capacity: Capacity) -> tuple[Line, Offer]:
    """`old` waits since 0 for the one token of the provider, which is held."""
    capacity.take("g1", "r0", LOCAL)
    line = Line({})
    old = Offer("r1", "old", LOCAL, 2, 0.0)
    line.put("r1", [old], 0.0)
    return line, old


def test_who_starves_follows_the_time_that_counts_as_too_long() -> None:
    capacity = make_capacity(overtake_after=100.0)
    line, old = starving(capacity)
    assert line.reserved(capacity, 200.0)["provider:local"] is old
    for overtake_after, reserved in ((300.0, False), (100.0, True)):
        limits = structs.replace(capacity.limits, overtake_after=overtake_after)
        capacity.set_limits(limits)
        line.reconsider()
        assert ("provider:local" in line.reserved(capacity, 200.0)) is reserved


def test_what_a_kind_that_is_gone_would_need_is_kept_free_for_nobody() -> None:
    capacity = make_capacity(overtake_after=100.0)
    line, _ = starving(capacity)
    without_local(capacity)
    assert line.reserved(capacity, 200.0) == {}


# The ledger


def test_fewer_workers_of_a_repository_start_nothing_until_enough_have_ended() -> None:
    ledger = Ledger("repo", workers=2)
    for name in ("a", "b", "c"):
        ledger.add(make_job(name), (), 0.0)
    assert [dispatch_any(ledger, 0.0) for _ in range(3)] == ["a", "b", None]
    ledger.set_limits(RepositoryLimits(1, 1800.0))
    end_attempt(ledger, "a", 1, SUCCESS, None, 1.0)
    assert dispatch_any(ledger, 1.0) is None
    assert ledger.waiting("c", 1.0).detail == "1 of 1 workers of its repository run"
    end_attempt(ledger, "b", 1, SUCCESS, None, 2.0)
    assert dispatch_any(ledger, 2.0) == "c"


def test_a_reservation_follows_the_time_that_counts_as_too_long() -> None:
    ledger = Ledger("repo", overtake_after=1800.0)
    ledger.add(make_job("holder", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("big", "write:path:a", "write:path:b"), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    ledger.set_limits(RepositoryLimits(4, 100.0))
    ledger.add(make_job("small", "write:path:b", queued_at=150.0), (), 150.0)
    assert dispatch_any(ledger, 150.0) is None
    assert ledger.waiting("small", 150.0).kind == "reservation"
    ledger.set_limits(RepositoryLimits(4, 1800.0))
    assert dispatch_any(ledger, 160.0) == "small"


def test_a_job_whose_provider_is_gone_cannot_run_and_the_others_go_on() -> None:
    """Q-09: also where it waited so long that its claims were reserved for it."""
    ledger = Ledger("repo", overtake_after=100.0)
    ledger.add(make_job("holder", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("stuck", "write:path:a", provider="local"), (), 0.0)
    ledger.add(make_job("next", "write:path:a", queued_at=150.0), (), 150.0)
    assert dispatch_any(ledger, 150.0) is None
    assert ledger.waiting("next", 150.0).kind in ("claim", "reservation")
    ledger.set_limits(RepositoryLimits(4, 100.0, PLAIN_KINDS))
    why = ledger.waiting("stuck", 160.0)
    assert (why.kind, why.resource) == ("policy", "provider:local")
    assert "no longer name its provider 'local'" in why.detail
    assert "[providers.local]" in why.detail
    assert ledger.state_of("stuck", why) == "queued"
    end_attempt(ledger, "holder", 1, SUCCESS, None, 170.0)
    assert dispatch_any(ledger, 170.0) == "next"
    assert dispatch_any(ledger, 170.0) is None
    assert ledger.announce(170.0) == []
    end_attempt(ledger, "next", 1, SUCCESS, None, 180.0)
    ledger.set_limits(RepositoryLimits(4, 100.0, PLAIN_KINDS | {"provider:local"}))
    assert dispatch_any(ledger, 180.0) == "stuck"


def test_a_ledger_that_is_loaded_later_knows_the_kinds_there_are() -> None:
    ledger = Ledger("repo", known=PLAIN_KINDS)
    ledger.add(make_job("stuck", provider="local"), (), 0.0)
    ledger.add(make_job("after", provider="local", after=("x",)), ("x",), 0.0)
    assert ledger.offers(0.0) == ()
    for job in ("stuck", "after"):
        assert ledger.waiting(job, 0.0).kind == "policy"
    after = ledger.waiting("after", 0.0)
    assert ledger.state_of("after", after) == "waiting_for_dependency"


def test_what_runs_on_a_kind_that_is_gone_ends_in_its_own_way() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", provider="local"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "a"
    ledger.set_limits(RepositoryLimits(4, 1800.0, PLAIN_KINDS))
    assert "a" in ledger.leases
    _, outcome = end_attempt(ledger, "a", 1, SUCCESS, None, 1.0)
    assert outcome is not None
    assert outcome.state == "succeeded"
