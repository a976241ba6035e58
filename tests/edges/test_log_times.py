"""When which part of an output came: marks of time beside a log, reading by them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.edges.node import logs
from forge_actors.edges.node.agent import output
from forge_actors.edges.node.agent.output import MARK, Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGAN = 1000.0


def write(folder: Path, pieces: Sequence[tuple[float, bytes]], limit: int = 100) -> str:
    """The log of a job that began at BEGAN and wrote each piece at its time."""
    log = str(folder / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "time", lambda: BEGAN)
        stream = Stream(-1, os.fsencode(f"{log}.stdout"), limit, keep_tail=False)
        for moment, data in pieces:
            patch.setattr(output, "time", lambda moment=moment: moment)
            stream.take(data)
        stream.close()
    for path in folder.glob("log.stdout*"):
        os.utime(path, (pieces[-1][0], pieces[-1][0]))
    return log


def since(log: str, moment: float) -> int:
    return logs.since(log, "stdout", moment, BEGAN)


def test_a_short_job_has_no_marks(tmp_path: Path) -> None:
    log = write(tmp_path, [(BEGAN + 0.1, b"one"), (BEGAN + 0.9, b"two")])
    assert [path.name for path in tmp_path.iterdir()] == ["log.stdout"]
    assert since(log, BEGAN - 5) == 0
    assert since(log, BEGAN + 0.5) == 0
    assert since(log, BEGAN + 2) == 6


def test_what_came_before_a_silence_is_left_out(tmp_path: Path) -> None:
    log = write(tmp_path, [(BEGAN, b"old"), (BEGAN + 60, b"new"), (BEGAN + 90, b"x")])
    assert since(log, BEGAN + 30) == 3
    assert since(log, BEGAN + 60) == 3
    assert since(log, BEGAN + 62) == 6
    assert since(log, BEGAN + 200) == 7


def test_no_output_has_no_beginning(tmp_path: Path) -> None:
    assert logs.since(str(tmp_path / "log"), "stdout", 5.0, 1.0) == 0


@given(
    pieces=st.lists(
        st.tuples(st.floats(0.01, 5.0), st.binary(min_size=1, max_size=9)),
        min_size=1,
        max_size=20,
    ),
    after=st.floats(-2.0, 60.0),
)
def test_nothing_is_missed_and_little_shown_too_much(
    pieces: list[tuple[float, bytes]], after: float
) -> None:
    moments, now = [], BEGAN
    for pause, data in pieces:
        now += pause
        moments.append((now, data))
    moment = BEGAN + after
    with tempfile.TemporaryDirectory() as name:
        found = since(write(Path(name), moments, limit=10_000), moment)
    wanted = sum(len(data) for when, data in moments if when < moment)
    surely_before = sum(len(data) for when, data in moments if when < moment - 1.0)
    assert surely_before <= found <= wanted


def test_marks_grow_apart_in_an_endless_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MARKS_OF_A_LENGTH", 4)
    log = write(tmp_path, [(BEGAN + 1.5 * n, b"x") for n in range(400)])
    size = (tmp_path / "log.stdout.times").stat().st_size
    assert size <= 30 * MARK.size
    assert since(log, BEGAN + 590) <= 394
    assert since(log, BEGAN) == 0


def test_a_clock_that_was_set_back_loses_nothing(tmp_path: Path) -> None:
    log = write(tmp_path, [(BEGAN + 50, b"a"), (BEGAN + 10, b"b"), (BEGAN + 12, b"c")])
    assert since(log, BEGAN + 5) <= 1


def test_without_room_for_marks_the_log_is_whole_and_nothing_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.stdout.times").mkdir()
    log = write(tmp_path, [(BEGAN, b"old"), (BEGAN + 60, b"new")])
    (tmp_path / "log.stdout.times").rmdir()
    assert (tmp_path / "log.stdout").read_bytes() == b"oldnew"
    assert since(log, BEGAN + 30) == 0
