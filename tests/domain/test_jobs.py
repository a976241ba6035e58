"""The table of legal moves, walked at random."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forge_actors.domain.jobs import (
    ACTIVE,
    MOVES,
    RESERVED,
    STATES,
    TERMINAL,
    WAITING,
    IllegalMove,
    State,
    check_move,
)

#: What follows what, told apart by the group a state belongs to.
LEGAL: list[tuple[frozenset[State], frozenset[State]]] = [
    (WAITING, WAITING),
    (WAITING, frozenset({"dispatched"})),
    (WAITING, TERMINAL - {"succeeded", "orphaned"}),
    (
        frozenset({"dispatched"}),
        frozenset(
            {
                "running",
                "queued",
                "waiting_for_approval",
                "waiting_for_heavy_check",
                "waiting_for_limit",
                "waiting_for_retry",
            }
        ),
    ),
    (frozenset({"dispatched"}), TERMINAL),
    (
        frozenset({"running"}),
        frozenset(
            {
                "queued",
                "waiting_for_approval",
                "waiting_for_heavy_check",
                "waiting_for_limit",
                "waiting_for_retry",
            }
        ),
    ),
    (frozenset({"running"}), TERMINAL),
]


def is_legal(before: State, after: State) -> bool:
    return before != after and any(
        before in starts and after in ends for starts, ends in LEGAL
    )


@pytest.mark.parametrize("before", STATES)
def test_a_state_is_followed_by_what_the_table_says_and_nothing_else(
    before: State,
) -> None:
    assert MOVES[before] == {after for after in STATES if is_legal(before, after)}


def test_every_state_is_waiting_or_reserved_or_terminal_and_only_one_of_them() -> None:
    assert len(WAITING) + len(RESERVED) + len(TERMINAL) == len(STATES)
    assert set(STATES) == WAITING | RESERVED | TERMINAL
    assert set(STATES) - TERMINAL == ACTIVE
    assert set(MOVES) == set(STATES)


def test_running_follows_dispatched_only() -> None:
    assert [state for state in STATES if "running" in MOVES[state]] == ["dispatched"]


def test_dispatched_follows_a_waiting_state_only() -> None:
    before = {state for state in STATES if "dispatched" in MOVES[state]}
    assert before == WAITING


@pytest.mark.parametrize("before", sorted(TERMINAL))
def test_nothing_leaves_a_terminal_state(before: State) -> None:
    for after in STATES:
        with pytest.raises(IllegalMove):
            check_move(before, after)


def test_a_refused_move_names_both_states_and_has_a_stable_code() -> None:
    with pytest.raises(IllegalMove, match="succeeded cannot become queued") as caught:
        check_move("succeeded", "queued")
    assert caught.value.code == "JOB_TRANSITION_INVALID"


class Walk(RuleBasedStateMachine):
    """Random move requests, legal or not, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "queued"
        self.path: list[State] = ["queued"]

    @rule(wanted=st.sampled_from(STATES))
    def request_a_move(self, wanted: State) -> None:
        before = self.state
        try:
            check_move(before, wanted)
        except IllegalMove:
            assert not is_legal(before, wanted)
        else:
            assert is_legal(before, wanted)
            self.state = wanted
            self.path.append(wanted)

    @rule(data=st.data())
    def make_a_legal_move(self, data: st.DataObject) -> None:
        if MOVES[self.state]:
            wanted = data.draw(st.sampled_from(sorted(MOVES[self.state])))
            self.request_a_move(wanted)

    @invariant()
    def a_terminal_state_is_the_last(self) -> None:
        assert not TERMINAL.intersection(self.path[:-1])

    @invariant()
    def running_comes_right_after_dispatched(self) -> None:
        for before, after in zip(self.path, self.path[1:], strict=False):
            assert after != "running" or before == "dispatched"

    @invariant()
    def success_comes_from_a_reserved_state(self) -> None:
        if self.path[-1] == "succeeded":
            assert self.path[-2] in RESERVED


test_random_move_requests_keep_to_the_table = Walk.TestCase
