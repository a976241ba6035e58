"""What others wrote cannot move the cursor, and a table fits its terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.job_text import page
from forge_actors.cli.text import (
    clean,
    clean_lines,
    fit,
    span,
    table,
    width,
)

#: Text in which escape sequences and their parts are frequent.
HOSTILE = st.lists(
    st.text(max_size=5)
    | st.sampled_from(
        [
            "\x1b[31m",
            "\x1b]0;title\x07",
            "\x1b]52;c;Zm9v\x1b\\",
            "\x1bP",
            "\x1b(B",
            "\x1b",
            "\x9b2J",
            "\x9d8;;http://x\x9c",
            "[",
            "\r",
            "\n",
            "\u202e",
            "\u2066",
            "\udcff",
            "漢字",
            "e\u0301",
        ]
    ),
    max_size=12,
).map("".join)

OVERRIDES = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def harmless(text: str) -> bool:
    return all(
        char in "\n\t"
        or (unicodedata.category(char) not in ("Cc", "Cs") and char not in OVERRIDES)
        for char in text
    )


@given(HOSTILE)
def test_nothing_harmful_is_left(text: str) -> None:
    assert harmless(clean_lines(text))
    assert "\n" not in clean(text)
    assert clean_lines(clean_lines(text)) == clean_lines(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean_lines(text) == text


@given(HOSTILE, st.integers(1, 7))
def test_the_size_of_the_pieces_makes_no_difference(text: str, size: int) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    whole, cut = Cleaner(), Cleaner()
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    shown = "".join([cut.feed(piece) for piece in pieces]) + cut.feed(b"", final=True)
    assert shown == whole.feed(raw, final=True)
    assert harmless(shown)


def test_output_is_not_held_back_for_ever_by_an_endless_sequence() -> None:
    cleaner = Cleaner()
    shown = cleaner.feed(b"\x1b]" + b"x" * 10_000)
    assert len(shown) > 5000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\x1b[1;31mb\x1b[0mc", "abc"),
        ("\x1b]0;pwned\x07text", "text"),
        ("one\ttwo\nthree", "one two three"),
        ("gnp.\u202eexe", "gnp.exe"),
        ("\udcff", "\ufffd"),
    ],
)
def test_a_line_is_cleaned(text: str, wanted: str) -> None:
    assert clean(text) == wanted


@given(st.text(st.characters(categories=["L", "N"])), st.integers(1, 20))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    assert width(fit(text, columns)) <= columns


@given(st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), max_size=4), st.integers(10, 120))
def test_a_table_fits_its_terminal(
    rows: list[tuple[str, str, str]], columns: int
) -> None:
    lines = table(("A", "B", "C"), rows, columns=columns, flexible=(1, 2))
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= columns and harmless(line) for line in lines)


def test_a_table_for_a_pipe_is_whole() -> None:
    lines = table(("A", "B"), [("x" * 200, "y")], columns=None)
    assert lines == ["A" + " " * 199 + "  B", "x" * 200 + "  y"]


def test_one_long_cell_does_not_widen_every_line_of_a_pipe() -> None:
    lines = table(("A", "B"), [("x" * 100_000, "y"), ("z", "y")], columns=None)
    assert [len(line) for line in lines] == [203, 203, 203]
    assert "…" in lines[1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (200, "3m 20s"),
        (18_000, "5h"),
        (18_060, "5h 1m"),
        (183_600, "2d 3h"),
    ],
)
def test_a_length_of_time_is_short(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_page_leaves_out_what_says_nothing_at_any_depth() -> None:
    waiting = {"kind": "token", "until": None, "holders": [], "position": 0}
    assert page({"waiting": waiting, "name": None}) == [
        "waiting  kind token, position 0"
    ]
