"""Marks and samples: which one answers which, and when the next is due."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.looking import (
    BUSY_GAP_SECONDS,
    BUSY_SETTLE_SECONDS,
    FILES_CHANGED,
    GAP_SECONDS,
    JOB_ENDED,
    LONGEST_RETRY,
    OVERHEAD,
    PATIENCE,
    ROUND,
    SETTLE_SECONDS,
    Look,
    Pace,
    Waiting,
    retry_delay,
)

STATUS = GitStatus("main", "a" * 40)


def test_a_sample_answers_the_mark_it_was_begun_for() -> None:
    look = Look("repo").marked(JOB_ENDED, 10.0)
    assert look.dirty is not None
    done = look.sampled(look.dirty.nonce, STATUS, 11.0)
    assert done.dirty is None
    assert (done.status, done.sampled_at, done.due(active=False)) == (
        STATUS,
        11.0,
        math.inf,
    )


def test_a_mark_that_came_meanwhile_stays() -> None:
    look = Look("repo").marked(JOB_ENDED, 10.0)
    assert look.dirty is not None
    later = look.marked(FILES_CHANGED, 10.5).sampled(look.dirty.nonce, STATUS, 10.2)
    assert later.dirty is not None
    assert later.dirty.reason == FILES_CHANGED
    assert later.dirty.at == 10.0, "its place in line is that of the first"
    assert later.due(active=False) == 10.2 + GAP_SECONDS


def test_a_repository_with_more_jobs_is_left_to_them_for_a_while() -> None:
    look = Look("repo").marked(JOB_ENDED, 10.0)
    assert look.due(active=False) == 10.0 + SETTLE_SECONDS
    assert look.due(active=True) == 10.0 + BUSY_SETTLE_SECONDS
    again = look.sampled(1, STATUS, 12.0).marked(JOB_ENDED, 12.1)
    assert again.due(active=False) == 12.0 + GAP_SECONDS
    assert again.due(active=True) == 12.0 + BUSY_GAP_SECONDS


def test_the_same_source_keeps_the_mark_and_another_one_supersedes_it() -> None:
    look = Look("repo").marked(JOB_ENDED, 10.0, "a")
    assert look.marked(JOB_ENDED, 12.0, "a") is look
    other = look.marked(JOB_ENDED, 12.0, "b")
    assert look.dirty is not None
    assert other.dirty is not None
    assert other.dirty.nonce > look.dirty.nonce
    # Without a source nobody can tell that it is the same.
    assert look.marked(JOB_ENDED, 12.0) != look


def test_a_nonce_is_never_used_again() -> None:
    look = Look("repo")
    seen = set()
    for moment in range(5):
        look = look.marked(JOB_ENDED, float(moment))
        assert look.dirty is not None
        seen.add(look.dirty.nonce)
        look = look.sampled(look.dirty.nonce, STATUS, float(moment))
    assert len(seen) == 5


def test_failures_back_off_and_keep_what_was_known() -> None:
    look = Look("repo", STATUS, 5.0).marked(JOB_ENDED, 10.0)
    for number in range(1, PATIENCE):
        look = look.failed(1, "git is gone", 10.0)
        assert look.dirty is not None
        assert look.due(active=False) == 10.0 + retry_delay(number)
    assert retry_delay(1) == 1.0
    assert retry_delay(4) == 8.0
    assert retry_delay(1000) == LONGEST_RETRY
    look = look.failed(1, "git is gone", 99.0)
    assert look.dirty is None, "the safety round is left"
    assert (look.status, look.sampled_at, look.error) == (STATUS, 5.0, "git is gone")
    # Whoever marks it now does not make it be tried at once.
    assert look.marked(JOB_ENDED, 100.0).due(active=False) == 99.0 + LONGEST_RETRY
    well = look.sampled(2, STATUS, 200.0)
    assert (well.failures, well.error, well.retry_at) == (0, None, None)


def test_a_failed_turn_of_the_safety_round_is_not_repeated() -> None:
    look = Look("repo").marked(ROUND, 10.0).failed(1, "git is gone", 10.0)
    assert look.dirty is None
    assert look.looked_at == 10.0


def test_a_mark_that_comes_while_a_last_try_fails_is_kept() -> None:
    look = Look("repo").marked(ROUND, 10.0).marked(JOB_ENDED, 10.1)
    assert look.failed(1, "git is gone", 10.2).dirty is not None


def test_jobs_that_may_have_changed_something_unmarked_are_noticed() -> None:
    look = Look("repo").sampled(0, STATUS, 100.0, fence=7)
    assert not look.outdated(7)
    assert look.outdated(8)
    assert Look("repo").sampled(0, STATUS, 100.0, busy=True, fence=7).outdated(7)
    assert not Look("repo").outdated(0), "it never had a job"
    assert Look("repo").outdated(1)
    assert not look.marked(JOB_ENDED, 101.0).outdated(8), "it is marked already"


def test_a_clock_that_was_set_back_keeps_nothing_waiting() -> None:
    saved = Look("repo").marked(JOB_ENDED, 5000.0).failed(1, "git is gone", 5000.0)
    look = saved.taken_in(ahead=0.0, now=1000.0)
    assert look.dirty is not None
    assert (look.dirty.at, look.looked_at) == (1000.0, 1000.0)
    assert look.due(active=False) <= 1000.0 + LONGEST_RETRY
    ahead = saved.taken_in(ahead=10.0, now=6000.0)
    assert ahead.looked_at == 4990.0


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 20)), max_size=40))
def test_the_one_that_is_due_for_longest_is_next(puts: list[tuple[str, int]]) -> None:
    waiting = Waiting()
    model: dict[str, float] = {}
    for repo, due in puts:
        moment = math.inf if due == 20 else float(due)
        waiting.put(repo, moment)
        model[repo] = moment
    model = {repo: due for repo, due in model.items() if due < math.inf}
    assert len(waiting) == len(model)
    assert waiting.first_due == min(model.values(), default=math.inf)
    order = []
    while (repo := waiting.take(100.0)) is not None:
        order.append(repo)
    assert order == sorted(model, key=lambda repo: (model[repo], repo))


def test_nothing_is_taken_before_it_is_due() -> None:
    waiting = Waiting()
    waiting.put("repo", 5.0)
    assert waiting.take(4.9) is None
    assert waiting.take(5.0) == "repo"


def test_samples_take_their_share_and_no_more() -> None:
    pace, now, spent = Pace(), 0.0, 0.0
    for _ in range(1000):
        now = max(now, pace.free_at)
        assumed = pace.begin(now, 0.2)
        spent += 0.004 + OVERHEAD
        pace.end(assumed, 0.004, 0.2)
    assert 0.19 < spent / now < 0.21
    # A pause is not made up for.
    pace.begin(now + 1000.0, 0.2)
    assert pace.free_at > now + 1000.0
