"""What may go: the oldest first, within the limits, and never what is protected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.retention import (
    DAY,
    DEFAULTS,
    OFF,
    Besides,
    Candidate,
    EventNumbers,
    Policy,
    decide,
    duration_text,
    events_before,
    next_due,
    policy_of,
    referred_to,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = 1000.0

candidates = st.lists(
    st.builds(
        Candidate,
        name=st.text("abc", max_size=4),
        at=st.integers(0, 1000).map(float),
        bytes=st.integers(0, 50),
        group=st.sampled_from(["", "one", "other"]),
        protected=st.sampled_from([None, None, None, "it runs"]),
    ),
    max_size=30,
    unique_by=lambda each: each.name,
)
limits = st.none() | st.integers(0, 12)
policies = st.builds(
    Policy,
    on=st.just(True),
    age=st.none() | st.integers(0, 1000).map(float),
    count=limits,
    bytes=st.none() | st.integers(0, 300),
    grace=st.integers(0, 300).map(float),
)


def gone(
    found: Iterable[Candidate], policy: Policy, now: float = NOW, *, besides: Besides
) -> set[str]:
    verdicts = decide(found, policy, now, besides)
    return {each.candidate.name for each in verdicts if each.goes}


NOTHING = Besides()


@given(candidates, policies)
def test_protected_and_young_things_never_go(
    found: list[Candidate], policy: Policy
) -> None:
    for verdict in decide(found, policy, NOW):
        if verdict.goes:
            assert verdict.candidate.protected is None
            assert NOW - verdict.candidate.at >= policy.grace


@given(candidates, policies)
def test_what_stays_is_within_the_limits_but_for_what_has_to_stay(
    found: list[Candidate], policy: Policy
) -> None:
    kept = [
        verdict.candidate
        for verdict in decide(found, policy, NOW)
        if not verdict.goes
        and verdict.candidate.protected is None
        and NOW - verdict.candidate.at >= policy.grace
    ]
    if policy.age is not None:
        assert all(NOW - each.at < policy.age for each in kept)
    if policy.count is not None:
        counts = Counter(each.group for each in kept)
        assert all(count <= policy.count for count in counts.values())
    if policy.bytes is not None:
        assert sum(each.bytes for each in kept) <= policy.bytes


@given(candidates, policies)
def test_the_oldest_go_first(found: list[Candidate], policy: Policy) -> None:
    verdicts = decide(found, policy, NOW)
    ages = [verdict.candidate.at for verdict in verdicts]
    assert ages == sorted(ages)
    for group in ("", "one", "other"):
        free = [
            verdict.goes
            for verdict in verdicts
            if verdict.candidate.group == group and not verdict.candidate.protected
        ]
        # Whatever goes is older than whatever stays of the same group.
        assert free == sorted(free, reverse=True)


@given(candidates, policies)
def test_switched_off_nothing_goes(found: list[Candidate], policy: Policy) -> None:
    assert gone(found, structs.replace(policy, on=False), besides=NOTHING) == set()


@given(candidates, policies, st.randoms())
def test_the_same_is_decided_in_whatever_order_it_is_told(
    found: list[Candidate], policy: Policy, chance: object
) -> None:
    mixed = list(found)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert decide(found, policy, NOW) == decide(mixed, policy, NOW)


@given(candidates, policies, st.sampled_from(["age", "bytes", "grace"]), st.data())
def test_a_larger_limit_lets_nothing_go_that_stayed(
    found: list[Candidate], policy: Policy, limit: str, data: st.DataObject
) -> None:
    before = getattr(policy, limit)
    more = None if before is None else before + data.draw(st.integers(0, 500))
    larger = structs.replace(
        policy, **{limit: data.draw(st.sampled_from([more, None]))}
    )
    if larger.grace is None:  # type: ignore[comparison-overlap]
        larger = structs.replace(policy, grace=policy.grace + 500)
    assert gone(found, larger, besides=NOTHING) <= gone(found, policy, besides=NOTHING)


@given(candidates, policies, limits)
def test_a_larger_count_lets_nothing_go_that_stayed_unless_it_takes_its_room(
    found: list[Candidate], policy: Policy, more: int | None
) -> None:
    # More of one repository may leave less room in all for another one.
    policy = structs.replace(policy, bytes=None)
    count = None if more is None or policy.count is None else policy.count + more
    larger = structs.replace(policy, count=count)
    assert gone(found, larger, besides=NOTHING) <= gone(found, policy, besides=NOTHING)


@given(candidates, policies)
def test_what_was_decided_once_is_not_decided_anew(
    found: list[Candidate], policy: Policy
) -> None:
    went = gone(found, policy, besides=NOTHING)
    rest = [each for each in found if each.name not in went]
    assert gone(rest, policy, besides=NOTHING) == set()


@given(candidates, policies, st.integers(0, 1000).map(float))
def test_the_oldest_part_is_decided_as_it_is_in_the_whole(
    found: list[Candidate], policy: Policy, until: float
) -> None:
    part = [each for each in found if each.at < until]
    newer = [each for each in found if each.at >= until]
    stays = {each.name for each in newer} - gone(newer, policy, besides=NOTHING)
    besides = Besides(
        Counter(each.group for each in newer),
        sum(each.bytes for each in newer if each.name in stays),
    )
    if policy.bytes is None:
        whole = gone(found, policy, besides=NOTHING)
        assert gone(part, policy, besides=besides) == whole & {e.name for e in part}


@given(candidates, policies)
def test_nothing_more_goes_before_the_moment_that_is_told(
    found: list[Candidate], policy: Policy
) -> None:
    verdicts = decide(found, policy, NOW)
    due = next_due(verdicts)
    went = {each.candidate.name for each in verdicts if each.goes}
    left = [each for each in found if each.name not in went]
    later = 1e9 if due is None else due - 0.5
    if later > NOW:
        assert gone(left, policy, later, besides=NOTHING) == set()
    if due is not None:
        assert gone(left, policy, max(due, NOW), besides=NOTHING) != set()


def test_each_verdict_says_why() -> None:
    found = [
        Candidate("old", NOW - 40 * DAY, 1, "r"),
        Candidate("kept", NOW - 40 * DAY, 1, "r", "job b needs it"),
        Candidate("third", NOW - 3 * DAY, 1, "r"),
        Candidate("large", NOW - 2 * DAY, 3000, "q"),
        Candidate("second", NOW - 2 * DAY, 1, "r"),
        Candidate("fresh", NOW - 60, 1, "r"),
    ]
    policy = Policy(age=30 * DAY, count=2, bytes=2048, grace=3600)
    assert {
        each.candidate.name: each.reason for each in decide(found, policy, NOW)
    } == {
        "old": "older than 30d",
        "kept": "job b needs it",
        "third": "more than 2 of its repository are there",
        "large": "more than 2 KiB are there",
        "second": "within the limits",
        "fresh": "within the limits",
    }
    [young] = decide(found[-1:], Policy(count=0, grace=3600), NOW)
    assert (young.goes, young.reason, young.due_at) == (
        False,
        "younger than 1h",
        NOW - 60 + 3600,
    )


def test_what_something_refers_to_goes_only_with_that_or_after_it() -> None:
    found = [Candidate(name, float(place)) for place, name in enumerate("abcdef")]
    verdicts = decide(found, Policy(age=100.0), NOW)
    references = [
        ("a", "another job was made from it", "c"),
        ("b", "another job was made from it", "young"),
        ("d", "it waits", None),
        # What is not there, or goes in any case, holds nothing.
        ("stranger", "it waits", None),
        ("e", "another job was made from it", "f"),
        # A chain: f stays, and so does what it was made from in the end.
        ("f", "it is kept", None),
    ]
    told = referred_to(verdicts, references)
    assert [each.candidate.name for each in told] == list("abcdef")
    assert {each.candidate.name: each.reason for each in told if not each.goes} == {
        "b": "another job was made from it",
        "d": "it waits",
        "e": "another job was made from it",
        "f": "it is kept",
    }


def test_rules_that_name_a_class_take_the_place_of_its_defaults() -> None:
    assert policy_of({}, "jobs") == DEFAULTS["jobs"]
    assert policy_of({"jobs": {"age": 5.0}}, "jobs") == Policy(age=5.0)
    assert policy_of({"jobs": {"on": False}}, "jobs") == OFF
    assert policy_of({}, "store") == OFF


@pytest.mark.parametrize(
    ("policy", "before"),
    [
        (Policy(), 10),
        (Policy(age=5.0), 40),
        (Policy(count=30), 71),
        (Policy(age=5.0, count=80), 40),
        (Policy(count=1), 90),
        (Policy(age=5.0, count=1, on=False), 10),
        (Policy(count=1000), 10),
    ],
)
def test_events_go_up_to_a_number(policy: Policy, before: int) -> None:
    numbers = EventNumbers(first=10, last=100, in_age=40, in_grace=90)
    assert events_before(policy, numbers)[0] == before


def test_a_length_of_time_is_told_in_its_largest_whole_unit() -> None:
    lengths = (0.5, 90, 900, 7200, 2 * DAY)
    assert [*map(duration_text, lengths)] == ["0.5s", "90s", "15m", "2h", "2d"]
