"""What is counted is told by room and by function, for each job."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from benchmarks import counted, profile

if TYPE_CHECKING:
    from pathlib import Path


def test_bytecodes_are_counted_from_begin_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> int:
        return sum(range(3))

    place = tmp_path / "counted"
    monkeypatch.setenv("BYTECODES", str(place))
    before = sys.gettrace()
    try:
        counted.begin()
        work()
        counted.end()
    finally:
        sys.settrace(before)
    work()
    found = json.loads(place.read_text())
    [count] = [n for name, n in found.items() if name.endswith("<locals>.work")]
    assert 4 <= count < 20


def test_counts_are_told_for_each_job_by_room_and_function() -> None:
    found = Counter(
        {
            "/x/forge_actors/domain/ledger.py:Ledger.finish": 600,
            "/x/forge_actors/domain/lanes.py:Lanes.best": 200,
            "/v/site-packages/trio/_core/_run.py:unrolled_run": 400,
            "/usr/lib/python3/json/decoder.py:decode": 100,
            "<string>:__init__": 100,
        }
    )
    lines = profile.listed(found, 10).splitlines()
    assert lines[0].split() == ["140", "bytecodes", "a", "job"]
    assert lines[1].split() == ["80", "forge_actors/domain"]
    assert lines[2].split() == ["40", "trio"]
    assert [line.split(maxsplit=1)[1] for line in lines[3:5]] == [
        "the standard library",
        "made at run time",
    ]
    assert "60   forge_actors/domain Ledger.finish" in "\n".join(lines[6:])


def test_a_tool_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as refused:
        profile.main(["--with", "instructions"])
    assert refused.value.code == 2
    assert "needs valgrind, which is not installed" in capsys.readouterr().err
