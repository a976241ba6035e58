"""The line: who is granted next, against an oracle that sorts every offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from forge_actors.domain.capacity import (
    ACTIVE_REPOSITORIES,
    WORKERS,
    Capacity,
    Offer,
    tokens_for,
)
from forge_actors.domain.line import Line
from tests.domain.making import make_capacity
from tests.examples import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 100_000.0
PLAIN = tokens_for("repository-command", None)
CHECK = tokens_for("check", None)
AGENT = tokens_for("agent-run", None)
LOCAL_AGENT = tokens_for("agent-run", "local")
LOCAL_CHECK = tokens_for("check", "local")
TOKEN_SETS = [PLAIN, CHECK, AGENT, LOCAL_AGENT, LOCAL_CHECK]
REPOS = ["r1", "r2", "r3", "r4"]


def offer(
    repo: str,
    tokens: tuple[str, ...] = PLAIN,
    *,
    job: str = "",
    priority: int = 2,
    waited: float = 10.0,
) -> Offer:
    return Offer(repo, job or f"{repo}-job", tokens, priority, NOW - waited)


def line_of(*offers: Offer, served: dict[str, float] | None = None) -> Line:
    line = Line(served or {})
    for repo in dict.fromkeys(each.repo for each in offers):
        line.put(repo, [each for each in offers if each.repo == repo], NOW)
    return line


def grant(line: Line, capacity: Capacity, now: float = NOW) -> str | None:
    """Grant one offer the way the supervisor does; its job."""
    first = line.next(capacity, now)
    if first is None:
        return None
    line.drop(first.repo)
    line.last_dispatch[first.repo] = now
    capacity.take(first.job, first.repo, first.tokens)
    return first.job


def oracle(
    offers: Sequence[Offer], served: dict[str, float], capacity: Capacity
) -> Offer | None:
    ordered = sorted(offers, key=lambda each: each.order(served.get(each.repo, 0), NOW))
    keeper: dict[str, int] = {}
    for place, each in enumerate(ordered):
        lacks = capacity.lacking(each.repo, each.tokens)
        starving = NOW - each.queued_at >= capacity.limits.overtake_after
        if not lacks or not starving or any(lack.limit == 0 for lack in lacks):
            continue
        scarce = {
            kind
            for kind in set(each.tokens) - {WORKERS}
            if capacity.limit(kind) - capacity.used(kind) <= 1
        }
        for kind in scarce | {lack.token for lack in lacks}:
            keeper.setdefault(kind, place)
    for place, each in enumerate(ordered):
        kept = [keeper.get(kind) for kind in (*each.tokens, ACTIVE_REPOSITORIES)]
        free = all(first is None or place <= first for first in kept)
        if free and capacity.fits(each.repo, each.tokens):
            return each
    return None


OFFERS = st.builds(
    Offer,
    repo=st.sampled_from(REPOS),
    job=st.uuids().map(str),
    tokens=st.sampled_from(TOKEN_SETS),
    priority=st.integers(0, 4),
    queued_at=st.sampled_from([0.0, 600.0, 1800.0, 3600.0, 9000.0]).map(
        lambda waited: NOW - waited
    ),
)
HELD = st.lists(st.tuples(st.sampled_from(REPOS), st.sampled_from(TOKEN_SETS)))
SERVED = st.dictionaries(
    st.sampled_from(REPOS), st.sampled_from([NOW - 9, NOW - 5, NOW])
)


def distinct(offers: list[Offer]) -> list[Offer]:
    """One offer for each repository and set of tokens, as a ledger makes them."""
    return list({(each.repo, each.tokens): each for each in offers}.values())


@settings(max_examples=examples(400))
@given(
    st.lists(OFFERS, max_size=12),
    st.lists(OFFERS, max_size=6),
    HELD,
    SERVED,
    st.sampled_from([None, "load"]),
    st.integers(1, 4),
    st.sampled_from([600.0, 1800.0, float("inf")]),
)
def test_the_next_is_the_first_of_all_offers_that_may_have_its_tokens(
    replaced: list[Offer],
    offers: list[Offer],
    held: list[tuple[str, tuple[str, ...]]],
    served: dict[str, float],
    pressure: str | None,
    active_repositories: int,
    overtake_after: float,
) -> None:
    capacity = make_capacity(
        active_repositories=active_repositories, overtake_after=overtake_after
    )
    for number, (repo, tokens) in enumerate(held):
        if capacity.fits(repo, tokens):
            capacity.take(f"g{number}", repo, tokens)
    capacity.pressure = pressure
    line = Line(served)
    current: dict[str, list[Offer]] = {}
    for each in (distinct(replaced), distinct(offers)):
        for repo in {one.repo for one in each}:
            current[repo] = [one for one in each if one.repo == repo]
            line.put(repo, current[repo], NOW)
    while True:
        wanted = [one for each in current.values() for one in each]
        expected = oracle(wanted, line.last_dispatch, capacity)
        assert line.next(capacity, NOW) == expected
        if expected is None:
            break
        assert grant(line, capacity) == expected.job
        del current[expected.repo]


@given(st.lists(OFFERS, max_size=12), HELD)
def test_a_job_that_cannot_have_its_tokens_never_blocks_a_later_one_that_can(
    offers: list[Offer], held: list[tuple[str, tuple[str, ...]]]
) -> None:
    capacity = make_capacity(overtake_after=float("inf"), active_repositories=2)
    for number, (repo, tokens) in enumerate(held):
        if capacity.fits(repo, tokens):
            capacity.take(f"g{number}", repo, tokens)
    offers = distinct(offers)
    line = line_of(*offers)
    able = [each for each in offers if capacity.fits(each.repo, each.tokens)]
    assert (line.next(capacity, NOW) in able) if able else not grant(line, capacity)


def test_an_empty_line_grants_nothing() -> None:
    line = line_of()
    assert not line
    assert line.next(make_capacity(), NOW) is None


def test_priority_comes_before_turns_and_turns_before_age() -> None:
    served = {"r1": NOW - 1, "r2": NOW - 2, "r3": NOW}
    line = line_of(
        offer("r1", waited=100), offer("r2"), offer("r3", priority=1), served=served
    )
    capacity = make_capacity()
    granted = [grant(line, capacity) for _ in range(4)]
    assert granted == ["r3-job", "r2-job", "r1-job", None]


def test_between_equals_the_repository_served_longest_ago_comes_first() -> None:
    line = line_of(*[offer(repo) for repo in REPOS])
    capacity = make_capacity(workers=1)
    turns = []
    for tick in range(12):
        job = grant(line, capacity, NOW + tick)
        assert job is not None
        repo = job.removesuffix("-job")
        turns.append(repo)
        capacity.give_back(job, repo, PLAIN)
        line.put(repo, [offer(repo)], NOW + tick)
    assert turns == REPOS * 3


def test_a_repository_that_withdraws_its_offers_is_granted_nothing() -> None:
    line = line_of(offer("r1"), offer("r2"))
    line.put("r1", [], NOW)
    line.drop("r2")
    line.drop("never seen")
    assert line.next(make_capacity(), NOW) is None
    assert not line


def test_a_replaced_offer_is_granted_in_its_new_form_only() -> None:
    line = line_of(offer("r1", job="old", priority=0))
    line.put("r1", [offer("r1", job="new", priority=4)], NOW)
    line.put("r2", [offer("r2", priority=3)], NOW)
    capacity = make_capacity()
    assert [grant(line, capacity) for _ in range(3)] == ["r2-job", "new", None]


def test_at_the_limit_of_active_repositories_only_those_are_served() -> None:
    line = line_of(offer("r1", priority=4), offer("r2", priority=0))
    capacity = make_capacity(active_repositories=1)
    capacity.take("g", "r1", PLAIN)
    assert [grant(line, capacity), grant(line, capacity)] == ["r1-job", None]


def test_under_pressure_agents_wait_and_one_plain_job_runs() -> None:
    line = line_of(offer("r1", AGENT, priority=0), offer("r2"), offer("r3"))
    capacity = make_capacity()
    capacity.pressure = "free memory"
    assert [grant(line, capacity), grant(line, capacity)] == ["r2-job", None]


def test_what_a_starving_job_needs_is_kept_until_it_has_all_of_it() -> None:
    """Checks and agents end in turn, never together; each is followed by another."""
    starving = offer("r1", LOCAL_CHECK, waited=2000, job="starving")
    capacity = make_capacity(workers=4, heavy_checks=1, agents=1, local=2)
    capacity.take("check", "r2", CHECK)
    capacity.take("agent", "r3", AGENT)
    line = line_of(starving, offer("r2", CHECK), offer("r3", AGENT))
    capacity.give_back("check", "r2", CHECK)
    assert grant(line, capacity) is None
    capacity.give_back("agent", "r3", AGENT)
    assert grant(line, capacity) == "starving"


def test_before_it_starves_a_job_is_overtaken() -> None:
    patient = offer("r1", LOCAL_CHECK, waited=1700, job="patient")
    capacity = make_capacity(heavy_checks=1, agents=1)
    capacity.take("agent", "r3", AGENT)
    line = line_of(patient, offer("r2", CHECK))
    assert grant(line, capacity) == "r2-job"
    assert line.reserved(capacity, NOW) == {}


def test_a_reservation_holds_back_only_those_that_come_after() -> None:
    starving = offer("r1", LOCAL_CHECK, waited=2000, priority=3, job="starving")
    capacity = make_capacity(heavy_checks=1, agents=1)
    capacity.take("agent", "r3", AGENT)
    line = line_of(starving, offer("r2", CHECK, priority=0), offer("r4", PLAIN))
    assert line.reserved(capacity, NOW)["heavy_checks"] is starving
    assert grant(line, capacity) == "r2-job"
    assert grant(line, capacity) == "r4-job", "a worker was never lacking"


def test_a_starving_job_that_pressure_shuts_out_reserves_nothing() -> None:
    starving = offer("r1", LOCAL_CHECK, waited=2000, job="starving")
    capacity = make_capacity(heavy_checks=1)
    capacity.pressure = "load"
    line = line_of(starving, offer("r2", CHECK))
    assert line.reserved(capacity, NOW) == {}
    assert grant(line, capacity) == "r2-job"


def test_active_repositories_drain_for_one_that_waited_too_long() -> None:
    capacity = make_capacity(active_repositories=1)
    capacity.take("g", "r1", PLAIN)
    line = line_of(
        offer("r1"), offer("r2", waited=2000, job="starving"), served={"r1": NOW}
    )
    assert grant(line, capacity) is None
    capacity.give_back("g", "r1", PLAIN)
    assert grant(line, capacity) == "starving"


def test_a_starving_offer_that_is_withdrawn_reserves_nothing_more() -> None:
    starving = offer("r1", LOCAL_CHECK, waited=2000)
    capacity = make_capacity(agents=1)
    capacity.take("agent", "r3", AGENT)
    line = line_of(starving)
    assert line.reserved(capacity, NOW)
    line.drop("r1")
    assert line.reserved(capacity, NOW) == {}


def test_the_place_in_line_counts_other_repositories_that_want_the_same() -> None:
    mine = offer("r3", CHECK, waited=1)
    line = line_of(
        offer("r1", CHECK), offer("r2", AGENT), offer("r3", PLAIN, priority=0), mine
    )
    assert line.ahead_of(mine, {"heavy_checks"}, NOW) == 1
    assert line.ahead_of(mine, {"heavy_checks", "agents"}, NOW) == 2
    assert line.ahead_of(mine, {WORKERS}, NOW) == 2


def test_offers_that_are_renewed_for_days_take_no_more_memory() -> None:
    line = line_of(offer("r1", CHECK))
    for _ in range(20_000):
        line.put("r2", [offer("r2", CHECK), offer("r2", AGENT, job="x")], NOW)
    held = len(line._by_age) + sum(len(heap) for heap in line._heaps.values())
    assert held < 5_000
    assert grant(line, make_capacity()) == "r1-job"
