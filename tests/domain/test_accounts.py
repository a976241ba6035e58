"""A refused job closes the account of its provider, and what opens it again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.accounts import (
    FIRST_BACKOFF,
    FIRST_TRY,
    LONGEST_BACKOFF,
    LONGEST_TRY,
    MOST_BACKOFFS,
    RESET_MARGIN,
    RETURN_GAP,
    RETURN_JITTER,
    RETURN_SECONDS,
    SERVED_AFTER,
    Account,
    Accounts,
    Refusal,
    describe_closed,
    refusal_of,
    waiting_for,
)
from forge_actors.domain.agents import LimitHit, LimitKind
from forge_actors.domain.changes import AccountChanged, Change

TOKENS = ("workers", "agents", "provider:claude")
TOKEN = "provider:claude"
NOW = 1000.0


def meaning(hit: LimitHit, refused: int = 0, *, has_account: bool = True) -> Refusal:
    return refusal_of(hit, "j", refused, NOW, has_account=has_account)


def closed(refusal: Refusal, now: float = NOW) -> Accounts:
    accounts = Accounts()
    assert accounts.refused("claude", "j", refusal, now)
    return accounts


def kinds(changes: list[Change]) -> list[str]:
    return [change.event.kind for change in changes if change.event]


# -- what a refusal means


def test_a_stated_end_closes_the_account_until_a_little_later() -> None:
    found = meaning(LimitHit("usage", "resets at 5", NOW + 3600.0))
    assert found == Refusal("usage", "resets at 5", NOW + 3600.0 + RESET_MARGIN)


@pytest.mark.parametrize("end", [NOW - 60.0, NOW - 1.0, NOW + 41 * 86400.0])
def test_an_end_in_the_past_or_beyond_belief_is_none(end: float) -> None:
    assert meaning(LimitHit("usage", retry_at=end)) == Refusal("usage")


def test_a_short_limit_is_waited_for_by_its_job_alone() -> None:
    found = meaning(LimitHit("rate", retry_at=NOW + 20.0))
    assert found.delay is not None
    assert 20.0 <= found.delay <= 20.0 * (1 + RETURN_JITTER)
    assert found.retry_at is None


def test_one_that_lasts_closes_the_account() -> None:
    found = meaning(LimitHit("rate", retry_at=NOW + 7200.0))
    assert found == Refusal("rate", "", NOW + 7200.0 + RESET_MARGIN)


@pytest.mark.parametrize("kind", ["rate", "overload"])
def test_the_waits_double_are_bounded_and_then_close_the_account(
    kind: LimitKind,
) -> None:
    waits = [meaning(LimitHit(kind), count).delay for count in range(MOST_BACKOFFS)]
    for count, wait in enumerate(waits):
        assert wait is not None
        least = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2**count)
        assert least <= wait <= least * (1 + RETURN_JITTER)
    assert meaning(LimitHit(kind), MOST_BACKOFFS) == Refusal(kind)


@pytest.mark.parametrize("kind", ["auth", "budget"])
def test_what_needs_a_person_closes_the_account_without_an_end(kind: LimitKind) -> None:
    assert meaning(LimitHit(kind, retry_at=NOW + 9.0)) == Refusal(kind)


def test_without_an_account_the_job_waits_by_itself() -> None:
    first = meaning(LimitHit("usage"), has_account=False).delay
    assert first is not None
    assert FIRST_BACKOFF <= first <= FIRST_BACKOFF * (1 + RETURN_JITTER)
    assert meaning(LimitHit("usage"), 30, has_account=False).delay == LONGEST_TRY


def test_no_secret_of_what_was_said_is_kept() -> None:
    said = "invalid api key sk-ant-api03-" + "x" * 40
    assert "xxx" not in meaning(LimitHit("auth", said)).detail


# -- closed, tried, open


def test_an_account_opens_at_its_stated_end_and_not_before() -> None:
    accounts = closed(meaning(LimitHit("usage", retry_at=NOW + 100.0)))
    due = NOW + 100.0 + RESET_MARGIN
    assert accounts.closed_tokens(due - 0.1) == {TOKEN}
    assert accounts.pass_time(due - 0.1) == ([], False)
    assert accounts.next_moment(NOW) == due
    changes, other = accounts.pass_time(due)
    assert (kinds(changes), other) == (["provider_opened"], True)
    assert accounts.closed_tokens(due) == frozenset()


def test_what_waited_returns_one_by_one() -> None:
    accounts = closed(meaning(LimitHit("usage", retry_at=NOW + 1.0)))
    now = NOW + 1.0 + RESET_MARGIN
    accounts.pass_time(now)
    starts = []
    for number in range(5):
        assert accounts.closed_tokens(now) == frozenset()
        starts.append(now)
        assert accounts.granted(TOKENS, f"g{number}", now)
        assert accounts.closed_tokens(now) == {TOKEN}
        due = accounts.next_moment(now)
        assert due is not None
        now = due
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert all(
        abs(gap - RETURN_GAP) <= RETURN_GAP * RETURN_JITTER + 1e-9 for gap in gaps
    )
    assert len(set(gaps)) == len(gaps)


def test_the_return_ends_when_nothing_waits_any_more() -> None:
    accounts = closed(meaning(LimitHit("auth")))
    accounts.opened("claude", NOW, "asked")
    accounts.all_returned(frozenset(), NOW + 1.0)  # they are still on their way
    assert accounts.returning == {TOKEN}
    accounts.all_returned(frozenset({TOKEN}), NOW + RETURN_SECONDS)
    assert accounts.returning == {TOKEN}
    accounts.all_returned(frozenset(), NOW + RETURN_SECONDS)
    assert accounts.returning == frozenset()
    assert not accounts.granted(TOKENS, "g1", NOW + RETURN_SECONDS)


def test_a_return_goes_on_after_a_restart() -> None:
    account = Account("claude", open=True, since=NOW, reason="usage")
    assert Accounts([account], NOW + 1.0).returning == {TOKEN}
    assert Accounts([account], NOW + RETURN_SECONDS).returning == frozenset()


def test_a_clock_that_was_set_back_makes_nobody_wait_for_longer() -> None:
    saved = Account("claude", False, NOW, "usage", retry_at=NOW + 60.0, stated=True)
    assert Accounts([saved], NOW - 3600.0).next_moment(NOW - 3600.0) == NOW - 3540.0
    assert Accounts([saved], NOW + 10.0).next_moment(NOW + 10.0) == NOW + 60.0


def test_where_nobody_knows_the_end_one_job_tries() -> None:
    accounts = closed(Refusal("usage"))
    assert accounts.tried == frozenset()
    now = NOW + FIRST_TRY
    assert accounts.pass_time(now) == ([], True)
    assert (accounts.tried, accounts.closed_tokens(now)) == ({TOKEN}, frozenset())
    assert accounts.granted(TOKENS, "g1", now)
    assert accounts.closed_tokens(now) == {TOKEN}
    # It ended, and nobody said that it was refused.
    changes = accounts.returned(TOKENS, "g1", now + 1.0, used=True)
    assert changes is not None
    assert kinds(changes) == ["provider_opened"]


def test_one_that_tries_for_long_enough_is_served() -> None:
    accounts = closed(Refusal("overload"))
    now = NOW + FIRST_TRY
    accounts.pass_time(now)
    accounts.granted(TOKENS, "g1", now)
    assert accounts.next_moment(now) == now + SERVED_AFTER
    assert kinds(accounts.pass_time(now + SERVED_AFTER)[0]) == ["provider_opened"]
    assert accounts.returned(TOKENS, "g1", now + 99.0, used=True) is None


def test_a_grant_that_nobody_used_lets_the_next_one_try() -> None:
    accounts = closed(Refusal("usage"))
    now = NOW + FIRST_TRY
    accounts.pass_time(now)
    accounts.granted(TOKENS, "g1", now)
    assert accounts.returned(TOKENS, "other", now, used=True) is None
    assert accounts.returned(TOKENS, "g1", now, used=False) == []
    assert accounts.closed_tokens(now) == frozenset()


def test_tries_that_are_refused_come_ever_more_seldom() -> None:
    accounts = Accounts()
    now, distances = NOW, []
    for number in range(9):
        [change] = accounts.refused("claude", "j", Refusal("usage"), now)
        assert isinstance(change, AccountChanged)
        due = change.account.retry_at
        assert due is not None
        distances.append(due - now)
        now = due
        accounts.pass_time(now)
        accounts.granted(TOKENS, f"g{number}", now)
    assert distances[:4] == [FIRST_TRY, 2 * FIRST_TRY, 4 * FIRST_TRY, 8 * FIRST_TRY]
    assert distances[-1] == LONGEST_TRY


def test_many_that_are_refused_at_once_close_it_once() -> None:
    accounts = closed(Refusal("auth"))
    assert accounts.refused("claude", "k", Refusal("auth"), NOW + 1.0) == []
    assert accounts.refused("claude", "k", Refusal("usage"), NOW + 1.0) == []
    accounts = closed(Refusal("usage", retry_at=NOW + 50.0))
    assert accounts.refused("claude", "k", Refusal("usage"), NOW + 1.0) == []
    earlier = Refusal("usage", retry_at=NOW + 20.0)
    assert accounts.refused("claude", "k", earlier, NOW + 1.0) == []
    later = Refusal("usage", retry_at=NOW + 90.0)
    assert kinds(accounts.refused("claude", "k", later, NOW + 1.0))
    assert [account.retry_at for account in accounts.closed] == [NOW + 90.0]


def test_only_a_person_opens_what_needs_one() -> None:
    accounts = closed(Refusal("auth"))
    assert accounts.next_moment(NOW) is None
    assert accounts.pass_time(NOW + 1e7) == ([], False)
    assert kinds(accounts.opened("claude", NOW, "asked")) == ["provider_opened"]
    assert accounts.opened("claude", NOW, "asked") == []
    assert accounts.opened("codex", NOW, "asked") == []


def test_other_providers_go_on() -> None:
    accounts = closed(Refusal("auth"))
    assert not accounts.granted(("workers", "provider:codex"), "g1", NOW)
    assert accounts.closed_tokens(NOW) == {TOKEN}


def test_a_job_is_told_why_it_waits_and_what_to_do() -> None:
    [account] = closed(Refusal("usage", "hit it", NOW + 5.0)).closed
    waiting = waiting_for(account)
    assert (waiting.kind, waiting.until) == ("limit", NOW + 5.0)
    assert "hit it" in waiting.detail
    [account] = closed(Refusal("auth", "no key")).closed
    assert waiting_for(account).kind == "agent"
    assert "resume --provider claude" in describe_closed(account)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["refuse", "stated", "auth", "open", "grant", "back"]),
            st.floats(0.0, 200.0),
        ),
        max_size=40,
    )
)
def test_nothing_starts_while_it_is_closed_but_one_at_a_time(
    steps: list[tuple[str, float]],
) -> None:
    """However it is refused and opened: a closed account has at most one grant after
    its time, none before, and an account that waits for a moment has one."""
    accounts = Accounts()
    now, out, number = NOW, [], 0
    for what, seconds in steps:
        now += seconds
        accounts.pass_time(now)
        match what:
            case "refuse":
                accounts.refused("claude", "j", Refusal("usage"), now)
                out.clear()
            case "stated":
                until = Refusal("usage", retry_at=now + 50.0)
                accounts.refused("claude", "j", until, now)
                out.clear()
            case "auth":
                accounts.refused("claude", "j", Refusal("auth"), now)
                out.clear()
            case "open":
                accounts.opened("claude", now, "asked")
                out.clear()
            case "grant" if TOKEN not in accounts.closed_tokens(now):
                number += 1
                accounts.granted(TOKENS, f"g{number}", now)
                out.append(f"g{number}")
                for account in accounts.closed:
                    assert account.retry_at is not None
                    assert account.retry_at <= now
                    assert len(out) == 1
            case "back" if out:
                accounts.returned(TOKENS, out.pop(), now, used=True)
                if not accounts.closed:
                    out.clear()
        for account in accounts.closed:
            waits = account.retry_at is not None and account.retry_at > now
            assert not waits or accounts.next_moment(now) == account.retry_at
