"""Too little room: what is set counts, and otherwise the size of the disk."""

from __future__ import annotations

import pytest

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.disk import Room, Thresholds, problem, sizes_of, state_of
from forge_actors.domain.maintenance import ClassVisit

GIB, MIB = 1 << 30, 1 << 20
LARGE = 100 * GIB


@pytest.mark.parametrize(
    ("free", "state"),
    [
        (2 * GIB, "ok"),
        (2 * GIB - 1, "low"),
        (512 * MIB, "low"),
        (512 * MIB - 1, "full"),
        (0, "full"),
    ],
)
def test_two_gibibytes_warn_and_half_a_one_refuses(free: int, state: str) -> None:
    assert state_of(Room(free, LARGE), Thresholds()) == state
    # What is set to these counts on a small disk as well.
    fixed = Thresholds(2 * GIB, 512 * MIB)
    assert state_of(Room(free, 3 * GIB), fixed) == state


def test_a_small_disk_may_be_used_too() -> None:
    assert Thresholds().of(Room(0, GIB)) == (GIB // 10, GIB // 20)
    assert state_of(Room(GIB // 2, GIB), Thresholds()) == "ok"


def test_nothing_is_a_limit_that_nobody_reaches() -> None:
    assert state_of(Room(0, LARGE), Thresholds(0, 0)) == "ok"


def test_a_warning_comes_no_later_than_a_refusal() -> None:
    assert Thresholds(refuse=10 * GIB).of(Room(0, LARGE)) == (10 * GIB, 10 * GIB)


def test_a_problem_says_what_to_do() -> None:
    assert problem("/h", Room(3 * GIB, LARGE), Thresholds()) is None
    assert problem("/h", Room(GIB, LARGE), Thresholds()) == (
        "only 1 GiB are free on the disk of /h, less than 2 GiB (setting"
        " disk.warn_free); forge-actors clean removes what may go"
    )
    assert problem("/h", Room(100 * MIB, LARGE), Thresholds()) == (
        "only 100 MiB are free on the disk of /h, so no new job is taken until 512 MiB"
        " are (setting disk.refuse_free); forge-actors clean removes what may go"
    )


def test_the_home_is_the_sum_of_what_was_measured() -> None:
    visits = [
        ClassVisit("jobs", 1.0, report=ClassReport("jobs", size=5), size=5),
        # It is visited now, or was not measured this time.
        ClassVisit("store", 1.0, size=7),
        ClassVisit("events", 1.0, report=ClassReport("events")),
        ClassVisit("logs", 1.0),
    ]
    assert sizes_of(visits) == {"bytes": 12, "classes": {"jobs": 5, "store": 7}}
