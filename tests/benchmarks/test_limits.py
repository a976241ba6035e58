"""A row that misses its bar or goal says what limits it, in numbers of its own run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from benchmarks import costs
from benchmarks.bars import BARS
from benchmarks.limits import LIMITS, UNKNOWN, with_limits
from benchmarks.report import Row, make_row, table

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Rows that texts need beside those with a bar.
OTHERS = (
    *("cref-cpu", "skeleton", "sync", "w2-spawn", "accept-sqlite"),
    *(f"w1-cpu-{who}" for who in ("service", "agent", "job")),
    *("w1-idle", "w1-others", "w1-deep-cpu-service"),
    *("accept-batch-cpu", "accept-callers-cpu"),
    *("memory-task", "memory-task-nursery", "ready-imports"),
    "ready-imports-mcp",
    *("ask-trio", "ask-pykka", "tell-called", "tell-trio"),
    *("start-help", "start-python"),
    *("readers-job", "readers-told", "readers-own"),
    *("idle-rss-service", "idle-rss-agent", "idle-rss-python"),
)


def run_of(numbers: Mapping[str, float] = MappingProxyType({})) -> list[Row]:
    """A run whose rows with a bar all miss it; all other numbers are 400."""
    missing = [
        make_row(
            name,
            bar.limit * (0.5 if bar.at_least else 2) + (not bar.limit),
            "",
            0.4 if bar.of_c else None,
            "",
        )
        for name, bar in BARS.items()
    ]
    others = [
        make_row(name, numbers.get(name, 400.0), "", 0.5, "")
        for name in (*OTHERS, *numbers)
    ]
    return [make_row("cref", 2500.0, "jobs/s", 1.0, ""), *missing, *others]


def limits_of(rows: list[Row]) -> dict[str, object]:
    return {str(row["name"]): row["limit"] for row in with_limits(rows, 2)}


def test_a_row_that_misses_its_bar_names_the_limit_and_its_ceiling() -> None:
    found = limits_of(run_of({"w1-others": 4.0}))
    w1 = str(found["w1"])
    assert "400 µs for the job's own process (C, starter included: 400)" in w1
    # Two cores and 1,200 us a job make 1,667 per s, of the 2,500 that C starts.
    assert "Ceiling with no core idle 0.67 of C" in w1
    assert "without the service's work 1.00" in w1
    assert "the skeleton reached 0.50" in w1
    assert "at most 2,500 per s" in str(found["accept-batch"])
    assert "wait 5.00 ms for the disk" in str(found["w2-median"])
    assert "15.6 are its queue, ledger and mailbox" in str(found["memory-repository"])


def test_where_others_use_the_cores_cpu_times_are_compared() -> None:
    w1 = str(limits_of(run_of({"w1-others": 40.0}))["w1"])
    assert "40 % used by others. Ceiling with no core idle 0.33 of C" in w1
    assert "without the service's work 0.50" in w1


def test_a_run_without_the_skeleton_has_the_rest_of_the_limit() -> None:
    rows = [row for row in run_of() if row["name"] != "skeleton"]
    assert str(limits_of(rows)["w1"]).endswith("without the service's work 0.50")


def test_every_text_has_its_numbers() -> None:
    found = limits_of(run_of())
    assert all("unknown" not in str(found[name]) for name in LIMITS)
    assert found["w4-all"] == UNKNOWN
    assert found["sync"] is None


def test_a_row_that_reaches_its_bar_says_no_limit_until_its_goal_is_missed() -> None:
    def limit(ratio: float) -> object:
        w1 = make_row("w1", 1000.0, "jobs/s", ratio, "")
        rest = [row for row in run_of() if row["name"] != "w1"]
        return limits_of([w1, *rest])["w1"]

    assert limit(0.66) is None
    assert "Ceiling" in str(limit(0.6))


def test_a_limit_whose_rows_were_not_measured_says_which() -> None:
    (row,) = with_limits([make_row("w2-median", 9.0, "ms", None, "")], 2)
    assert row["limit"] == "unknown in this run: it has no row sync"


def test_the_table_has_the_limit_below_its_row() -> None:
    rows = with_limits([make_row("w4-all", 2.0, "jobs", None, "")], 2)
    _, row, limit = table(rows).splitlines()
    assert "NOT MET" in row
    assert limit == f"    limit: {UNKNOWN}"


def test_costs_are_those_of_one_job_and_what_is_left_of_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(costs, "cores", lambda: 2)
    meter = costs.Meter.__new__(costs.Meter)
    meter.used, meter.others = costs.Used(0.4, 0.2, 0.6), 0.2
    found = {one.name: one.value for one in costs.samples("w1", meter, 1.0, 1000)}
    assert found == pytest.approx(
        {
            "w1-cpu-service": 400,
            "w1-cpu-agent": 200,
            "w1-cpu-job": 600,
            "w1-idle": 30,
            "w1-others": 10,
        }
    )
