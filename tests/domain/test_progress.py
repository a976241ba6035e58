"""Progress: who is idle is well, and who is at the same thing for too long is not."""

from __future__ import annotations

from forge_actors.domain.progress import NEW, stalled


def test_one_that_is_idle_is_never_stalled() -> None:
    seen = NEW.after(3, 0.0, idle=True)
    assert stalled({"a": seen.after(3, 900.0, idle=True)}, 900.0, 30.0) == {}


def test_one_that_is_busy_with_ever_new_things_is_not_stalled() -> None:
    seen = NEW
    for now in range(100):
        seen = seen.after(now, float(now), idle=False)
        assert stalled({"a": seen}, float(now), 2.0) == {}


def test_one_that_serves_nothing_is_stalled_once_the_limit_is_reached() -> None:
    seen = NEW.after(7, 10.0, idle=False)
    for now, found in ((20.0, {}), (39.9, {}), (40.0, {"a": 30.0})):
        seen = seen.after(7, now, idle=False)
        assert stalled({"a": seen}, now, 30.0) == found


def test_a_moment_of_idleness_begins_it_anew() -> None:
    seen = NEW.after(7, 0.0, idle=False).after(7, 20.0, idle=True)
    seen = seen.after(7, 25.0, idle=False)
    assert stalled({"a": seen}, 40.0, 30.0) == {}


def test_the_first_look_is_no_proof_of_anything() -> None:
    assert NEW.after(0, 1e6, idle=False).seconds(1e6) == 0.0
