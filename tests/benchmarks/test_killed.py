"""What was lost or ran twice is a number, and so are the seconds until all is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import killed
from benchmarks.chaos.report import Report
from benchmarks.chaos.times import Spread
from benchmarks.rows import Bench
from benchmarks.service import ServiceFailed

if TYPE_CHECKING:
    from pathlib import Path


def report(*violations: str) -> Report:
    return Report(
        "wreck",
        4,
        9.0,
        1000,
        interrupted=6,
        ended_alone=7,
        ready=Spread(1, 0.8, 0.8),
        decided={"all": (Spread(6, 0.1, 0.3), Spread(6, 1.0, 1.1))},
        violations=list(violations),
    )


def test_a_run_has_its_counts_and_its_seconds() -> None:
    lost, ready, decided = killed.samples("w4-all", report("one is lost", "two ran"))
    assert (lost.name, lost.value) == ("w4-all", 2)
    assert "7 ended while no service was there, 6 were cut off" in lost.note
    assert (ready.name, ready.value) == ("w4-all-ready", 0.8)
    assert (decided.name, decided.value) == ("w4-all-decided", 0.3)
    assert "all 6 that the kill met" in decided.note


def test_what_is_wrong_fails_the_row_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killed, "run", lambda *_: report("job-7 is lost"))
    rows = killed.measure(Bench(tmp_path))
    assert next(iter(rows)).value == 1
    with pytest.raises(ServiceFailed, match="job-7 is lost"):
        list(rows)
