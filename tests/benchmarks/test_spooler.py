"""task-spooler, or a program that speaks as it does, runs our jobs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from benchmarks import spooler
from benchmarks.rows import Bench

if TYPE_CHECKING:
    from pathlib import Path


def test_without_it_the_rows_say_how_to_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = list(spooler.measure(Bench(tmp_path)))
    assert [row.name for row in rows] == ["w1-spooler", "w2-spooler"]
    assert all(row.value is None for row in rows)
    assert all("package task-spooler" in row.note for row in rows)


@pytest.mark.skipif(not shutil.which(spooler.NAME), reason="it is not installed")
def test_it_drains_its_queue_and_starts_jobs(tmp_path: Path) -> None:
    small = Bench(tmp_path, jobs=6, warm_up=4, starts=2)
    drained, started = spooler.measure(small)
    assert drained.value
    assert drained.note.startswith("Task Spooler v")
    assert "6 jobs, 4 at once" in drained.note
    assert started.value
