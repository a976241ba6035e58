"""The page of a timeline: whole, self-contained, and harmless whatever is in it."""

from __future__ import annotations

import datetime as dt
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.picture import page as pages
from forge_actors.domain.picture.marks import MAX_NAME, plain, title
from forge_actors.domain.picture.page import page, picture
from forge_actors.domain.picture.ticks import day, span, ticks, written
from forge_actors.domain.timeline import Run
from tests.domain.picture_kit import EMPTY, HOSTILE, Elements, example, run


def test_a_page_shows_each_attempt_in_its_repository_and_on_its_tokens() -> None:
    drawn = Elements(page(example()))
    bars = [each for each in drawn.of("svg") if "run" in (each.get("class") or "")]
    # Once by repository, and once for each of its tokens.
    assert len(bars) == 9 + 9 + 1
    styles = {(each["class"] or "").split()[1] for each in bars}
    assert styles == {
        *("ok", "failed", "late", "cancelled", "again"),
        *("attention", "unknown", "running"),
    }
    for text in ("app", "lint", "exit code 7", "up to 12 waiting", "of 4"):
        assert text in drawn.text


def test_a_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    drawn = Elements(page(example()))
    names = {name for name, _ in drawn.found}
    assert not names & {"script", "link", "img", "iframe", "object", "a", "form"}
    for _, attributes in drawn.found:
        assert not {"href", "src", "style", "srcset"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    [policy] = [
        each["content"]
        for each in drawn.of("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "url(" not in page(example())
    assert "@import" not in page(example())


def test_whatever_a_job_is_called_a_page_stays_as_it_is() -> None:
    mild, wild = Elements(page(example())), Elements(page(example(HOSTILE)))
    assert {name for name, _ in wild.found} == {name for name, _ in mild.found}
    assert "<script>alert(1)</script>" in wild.text, "it is shown as text"
    for char in page(example(HOSTILE)):
        assert char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
    page(example(HOSTILE)).encode()


@given(st.text())
def test_a_name_never_leaves_its_line(name: str) -> None:
    shown = plain(name)
    assert len(shown) <= MAX_NAME
    assert shown.isprintable()
    wild = Elements(page(example(name)))
    assert len(wild.of("script")) == 0


def test_what_has_no_name_is_called_by_its_kind_and_the_end_of_its_id() -> None:
    assert title(run("1m8p47dfgectppfx8tq", 0, 1)) == "check pfx8tq"
    assert title(run("j1", 0, 1, name="\x1b[0m \u202e")) == "[0m"


def test_an_empty_timeline_says_so() -> None:
    drawn = Elements(page(EMPTY))
    assert "Nothing ran or waited then." in drawn.text
    assert drawn.of("svg") == []


def test_it_says_what_is_not_shown() -> None:
    part = example(complete_from=1800.0, runs_left_out=91)
    said = "Not everything before 2026-11-30 11:06:40 is shown."
    assert said in Elements(page(part)).text
    assert "100 attempts" in Elements(page(part)).text
    assert "Not everything" not in Elements(page(example())).text


def test_many_rows_and_repositories_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "MAX_ROWS", 2)
    monkeypatch.setattr(pages, "MAX_REPOSITORIES", 1)
    monkeypatch.setattr(pages, "MAX_LISTED", 3)
    runs = [run(f"j{n}", 0, None) for n in range(5)]
    runs = [structs.replace(each, lane=n) for n, each in enumerate(runs)]
    drawn = Elements(page(example(runs=runs)))
    assert "3 rows are not drawn" in drawn.text
    assert "1 repository more are not drawn." in drawn.text
    assert len(drawn.of("tr")) == 4
    bars = [each for each in drawn.of("svg") if each.get("class") == "run running"]
    assert len(bars) == 2


def test_bars_are_inside_and_where_they_belong() -> None:
    def placed(each: Run) -> tuple[float, float]:
        drawn = Elements(picture(example(runs=[each], repositories=["app"])))
        [bar, *_] = [s for s in drawn.of("svg") if "run" in (s.get("class") or "")]
        return tuple(float((bar[name] or "").rstrip("%")) for name in ("x", "width"))  # type: ignore[return-value]

    assert placed(run("j", 900, 1800)) == (25, 25)
    assert placed(run("j", None, 1800)) == (0, 50)
    assert placed(run("j", -500, None)) == (0, 100)
    assert placed(run("j", 3000, 9000)) == pytest.approx((83.333, 16.667))
    assert placed(run("j", 100, 100))[1] == 0


@given(st.integers(0, 4 * 10**9), st.integers(1, 10**8), st.integers(2, 12))
def test_an_axis_has_marks_that_people_can_count_in(
    epoch: int, seconds: int, most: int
) -> None:
    marks = ticks(epoch, seconds, most)
    assert len(marks) <= most
    assert all(0 <= at <= seconds for at, _ in marks)
    if len(marks) > 2:
        steps = {round(b[0] - a[0], 3) for a, b in pairwise(marks)}
        assert len(steps) == 1


def test_marks_are_at_whole_times() -> None:
    assert [text for _, text in ticks(1796035000, 3600)] == [
        *("10:40", "10:50", "11:00", "11:10", "11:20", "11:30")
    ]
    assert [text for _, text in ticks(1796035000, 86_400)] == [
        *("12:00", "18:00", "1 Dec", "06:00")
    ]
    assert [text for _, text in ticks(1796035000, 20)] == [
        *("10:36:40", "10:36:45", "10:36:50", "10:36:55", "10:37:00")
    ]


@given(st.integers(0, 250_000_000_000))
def test_days_are_those_of_the_calendar(moment: int) -> None:
    told = dt.datetime.fromtimestamp(moment, dt.UTC)
    assert written(moment) == told.strftime("%Y-%m-%d %H:%M:%S")
    assert day(moment) == f"{told.day} {told.strftime('%b')}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0.44, "0.4s"),
        (9.97, "10.0s"),
        (42.4, "42s"),
        (59.7, "1m"),
        (200, "3m 20s"),
        (18_060, "5h 1m"),
        (183_600, "2d 3h"),
    ],
)
def test_lengths_are_told_in_two_units(seconds: float, text: str) -> None:
    assert span(seconds) == text.replace("10.0s", "10s")
