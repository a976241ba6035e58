"""Ids: in order, never twice, whatever the clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forge_actors.runtime.ids import IdSource

ALPHABET = set("0123456789abcdefghjkmnpqrstvwxyz")
#: From 1970 to 2500.
MOMENTS = st.floats(0, 16_725_000_000, allow_nan=False)


@given(st.lists(MOMENTS, max_size=50))
def test_ids_made_one_after_the_other_are_in_order(moments: list[float]) -> None:
    ids = IdSource()
    made = [ids.make(now) for now in moments]
    assert made == sorted(set(made))
    for entry in made:
        assert len(entry) == 19
        assert set(entry) <= ALPHABET


def test_a_clock_that_is_set_back_makes_no_id_twice() -> None:
    ids = IdSource()
    made = [ids.make(1000.0 - number) for number in range(1000)]
    assert made == sorted(set(made))


def test_two_sources_do_not_meet_in_one_millisecond() -> None:
    made = {IdSource().make(1_700_000_000.0) for _ in range(2000)}
    assert len(made) == 2000
    assert len({entry[:9] for entry in made}) == 1, "the time comes first"


def test_later_ids_of_other_sources_come_later() -> None:
    assert IdSource().make(1_700_000_000.0) < IdSource().make(1_700_000_000.002)
