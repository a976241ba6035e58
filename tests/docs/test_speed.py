"""The page about speed: no number of it is from anywhere but the recorded run."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.bars import BARS
from benchmarks.limits import with_limits
from benchmarks.recorded import read
from benchmarks.report import make_row
from docs.making import speed

SVG = "{http://www.w3.org/2000/svg}"


def run_of(*rows: dict[str, object], quick: bool = False) -> dict[str, Any]:
    machine = {"cpus": 2, "python": "3.11.7", "implementation": "CPython"}
    return {
        "recorded": "2026-11-29",
        "machine": {**machine, "sqlite": "3.50.0", "filesystem": "ext4"},
        "quick": quick,
        "jobs": 1000,
        "rounds": 3,
        "rows": with_limits(rows, 2),
    }


@pytest.fixture
def run() -> dict[str, Any]:
    return run_of(
        make_row("cref", 3000.0, "jobs/s", 1.0, ""),
        make_row("w1-huey", 1800.0, "jobs/s", 0.6, ""),
        make_row("w1", 1590.0, "jobs/s", 0.53, ""),
        make_row("w1-spooler", None, "jobs/s", None, "skipped: it is not there"),
        make_row("w1_of_spooler", None, "ratio", None, "one of them has no value"),
        make_row("w2-median", 1.5, "ms", None, ""),
        make_row("w1-others", 3.0, "%", None, ""),
    )


def test_what_is_met_missed_and_unmeasured_stands_apart(run: dict[str, Any]) -> None:
    text = speed.behind(run)
    _, beside, met, missed, unknown = re.split("^## ", text, flags=re.MULTILINE)
    assert "| Forge Actors | 1,590 | 0.53 |" in beside
    assert "| task-spooler | not measured |  |" in beside
    assert "| 1.50 ms | ≤ 3 |" in met
    assert "0.53 of C, wanted ≥ 0.55 of C, goal 0.65. Unknown in this run:" in missed
    assert "beside task-spooler: one of them has no value" in unknown


def test_a_run_that_means_little_says_so(run: dict[str, Any]) -> None:
    assert "**" not in speed.behind(run)
    assert "Other programs used" in speed.behind(
        run_of(make_row("w1-others", 40.0, "%", None, ""))
    )
    assert "its numbers mean little" in speed.behind(run_of(quick=True))
    assert "Nothing." in speed.behind(run_of())


def test_the_picture_has_a_bar_for_each_that_was_measured(run: dict[str, Any]) -> None:
    drawn = ET.fromstring(speed.picture(run))
    bars = [one for one in drawn.iter(f"{SVG}rect") if one.get("class")]
    long = [float(one.attrib["width"]) for one in bars]
    assert [round(one / long[0], 2) for one in long] == [1.0, 0.6, 0.53]
    assert [one.get("class") for one in bars] == ["b", "b", "k"]
    words = [one.text for one in drawn.iter(f"{SVG}text")]
    assert words[:6] == ["a C program", "1.00", "huey", "0.60", "Forge Actors", "0.53"]
    assert words[6:] == ["target 0.55", "goal 0.65"]


def test_what_is_written_by_hand_states_no_number() -> None:
    text = (speed.ROOT / speed.PAGE).read_text("utf-8")
    assert not re.search(r"\d", text)
    titles = "".join(speed.TITLES.values())
    assert not re.search(r"\d", titles.replace("99 of 100", ""))
    assert speed.TITLES.keys() == BARS.keys()


def test_the_recorded_run_makes_the_page() -> None:
    assert read(speed.RECORDED)["rows"]
    (page, text), (picture, drawn) = speed.pages()
    assert (page, picture) == ("speed.md", "images/speed.svg")
    assert f"]({picture})" in text
    assert ET.fromstring(drawn).get("role") == "img"
