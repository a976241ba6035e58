"""A run that was kept is what later ones are compared with, by their ratios alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import __main__ as command
from benchmarks import cref, recorded
from benchmarks.bars import BARS, COMPARISONS
from benchmarks.report import make_row
from benchmarks.rows import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.rows import Bench

HEAD = {"machine": {"cpus": 2}, "quick": False, "jobs": 1000}


def run_of(
    w1: float | None = 0.6, status: float = 2.0, rate: float = 900.0
) -> dict[str, Any]:
    rows = [
        make_row("cref", 2500.0, "jobs/s", 1.0, ""),
        make_row("w1-huey", rate, "jobs/s", 0.1, ""),
        make_row("w1", rate, "jobs/s", w1, ""),
        make_row("w2-median", 1e6 / rate, "ms", None, ""),
        make_row("start-status_of_python", status, "ratio", None, ""),
    ]
    return {**HEAD, "rows": rows}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (run_of(w1=0.46), "2 ratios compared, none lost more than 25%"),
        (run_of(w1=0.44), "LOST 27% of w1: 0.44, recorded 0.60"),
        (run_of(status=2.6), "2 ratios compared"),
        (run_of(status=2.8), "LOST 29% of start-status_of_python: 2.80, recorded 2.00"),
        (run_of(w1=2.0, status=0.5), "2 ratios compared"),
        # Times and rates are those of another day, and a peer's ratio is not ours.
        (run_of(rate=9.0), "2 ratios compared"),
        (run_of(w1=None), "1 ratios compared"),
    ],
)
def test_a_ratio_that_lost_a_quarter_is_named(now: dict[str, Any], told: str) -> None:
    good, said = recorded.verdict(recorded.compared(run_of(), now))
    assert said.startswith(told)
    assert good is not told.startswith("LOST")


def test_every_loss_is_named_and_nothing_to_compare_is_no_success() -> None:
    good, said = recorded.verdict(
        recorded.compared(run_of(), run_of(w1=0.1, status=9.0))
    )
    assert not good
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "LOST 83% of w1",
        "LOST 78% of start-status_of_python",
    ]
    good, said = recorded.verdict(recorded.compared(run_of(), {**HEAD, "rows": []}))
    assert not good
    assert "nothing is compared" in said


def test_which_way_is_better_agrees_with_the_bars() -> None:
    for comparison in COMPARISONS:
        bar = BARS.get(comparison.name)
        assert bar is None or bar.at_least is not comparison.less_is_better


@pytest.mark.parametrize(
    "other", [{"quick": True}, {"jobs": 200}, {"machine": {"cpus": 8}}]
)
def test_other_sizes_and_cores_are_not_compared(other: dict[str, Any]) -> None:
    recorded.check_same(run_of(), run_of())
    with pytest.raises(recorded.Unusable, match="record this one with --record"):
        recorded.check_same(run_of(), run_of() | other)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"rows": []}'])
def test_a_file_that_is_no_run_is_refused_before_anything_is_measured(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file, place = tmp_path / "run.json", tmp_path / "place"
    place.mkdir()
    if text is not None:
        file.write_text(text)
    words = ["--against", str(file), "--dir", str(place), "--rows", "idle"]
    assert command.main(words) == 2
    assert str(file) in capsys.readouterr().err
    assert not any(place.iterdir())


def test_a_run_is_kept_and_the_next_one_is_compared_with_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, ratio = tmp_path / "run.json", 0.6

    def measure(_: Bench) -> Iterable[Sample]:
        if not ratio:
            raise OSError("no disk")
        yield Sample("w1", 1000 * ratio, "jobs/s", rate=True)

    def run(*words: str) -> int:
        return command.main(
            ["--rows", "w1", "--dir", str(tmp_path / "place"), "--rounds", "1", *words]
        )

    (tmp_path / "place").mkdir()
    monkeypatch.setitem(command.MEASURES, "w1", measure)
    monkeypatch.setattr(cref.CReference, "rate", lambda *_: 1000.0)
    assert run("--record", str(file)) == 0
    kept = recorded.read(file)
    assert kept["machine"]["implementation"]
    assert [row["ratio_to_cref"] for row in kept["rows"]] == [0.6]
    assert run("--against", str(file)) == 0
    ratio = 0.4
    assert run("--against", str(file)) == 1
    assert "LOST 33% of w1: 0.40, recorded 0.60" in capsys.readouterr().err
    ratio = 0.0
    assert run("--record", str(file)) == 1
    assert recorded.read(file) == kept
