"""Boxes behind each other: where they stand, what is in them and what leads to them."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from forge_actors.domain.picture.boxes import (
    ACROSS,
    DOWN,
    HEIGHT,
    MARGIN,
    WIDTH,
    Box,
    Look,
    lines,
    picture,
)

LOOKS = {"on": Look("+", "#111", "#eee"), "off": Look("-", "#222", "#ddd")}
SVG = "{http://www.w3.org/2000/svg}"
COLUMN, ROW = WIDTH + ACROSS, HEIGHT + DOWN


def drawn(*boxes: Box) -> ET.Element:
    return ET.fromstring(picture(boxes, LOOKS, "Work & more"))


def places(root: ET.Element) -> dict[str, tuple[int, int]]:
    """The column and the row of each box, by what stands in it."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert text is not None
        x, y = int(rect.attrib["x"]), int(rect.attrib["y"])
        assert (text.attrib["x"], text.attrib["y"]) == (str(x + 10), str(y + 19))
        assert (rect.attrib["width"], rect.attrib["height"]) == (
            str(WIDTH),
            str(HEIGHT),
        )
        column, left = divmod(x - MARGIN, COLUMN)
        row, below = divmod(y - MARGIN, ROW)
        assert (left, below) == (0, 0)
        found[text.text or ""] = (column, row)
    return found


def test_a_box_stands_beside_what_it_comes_after() -> None:
    root = drawn(
        Box("a", "on"),
        Box("b", "off"),
        Box("c", "on"),
        Box("d", "on", ("c",)),
        Box("e", "on", ("b", "d", "gone")),
        Box("f", "on", ("a", "b")),
    )
    assert places(root) == {
        "+ a": (0, 0),
        "- b": (0, 1),
        "+ c": (0, 2),
        "+ d": (1, 2),
        "+ e": (2, 1),
        "+ f": (1, 3),
    }
    wide, high = 2 * MARGIN + 2 * COLUMN + WIDTH, 2 * MARGIN + 3 * ROW + HEIGHT
    assert root.attrib == {
        "viewBox": f"0 0 {wide} {high}",
        "width": str(wide),
        "height": str(high),
    }
    title, style = root.find(f"{SVG}title"), root.find(f"{SVG}style")
    assert title is not None
    assert style is not None
    assert title.text == "Work & more"
    assert ".on { stroke: #111; }.off { stroke: #222; }" in (style.text or "")
    assert ".on { stroke: #eee; }.off { stroke: #ddd; }" in (style.text or "")


def test_a_line_leads_from_the_right_of_one_to_the_left_of_the_next() -> None:
    root = drawn(Box("a", "on"), Box("b", "on"), Box("c", "on", ("b", "a", "gone")))
    paths = [path.attrib["d"] for path in root.iter(f"{SVG}path")]
    middle, bend = MARGIN + HEIGHT // 2, ACROSS // 2
    start, end = MARGIN + WIDTH, MARGIN + COLUMN
    shared = f"{end - bend} {middle} {end} {middle}"
    assert sorted(paths) == sorted(
        f"M {start} {y} C {start + bend} {y} {shared}" for y in (middle, middle + ROW)
    )


def test_an_empty_picture_has_room_for_one() -> None:
    root = drawn()
    assert root.attrib["width"] == str(2 * MARGIN + WIDTH)
    assert root.attrib["height"] == str(2 * MARGIN + HEIGHT)
    assert places(root) == {}


@pytest.mark.parametrize(("length", "shown"), [(22, "x" * 22), (23, "x" * 21 + "…")])
def test_a_name_is_cut_where_its_box_ends(length: int, shown: str) -> None:
    root = drawn(Box("a", "on", label="x" * length, told=["more", "still"]))
    assert places(root) == {f"+ {shown}": (0, 0)}
    [rect] = root.iter(f"{SVG}rect")
    assert (rect.attrib["class"], rect.attrib["rx"]) == ("on", "5")
    [group] = root.iter(f"{SVG}g")
    hint = group.find(f"{SVG}title")
    assert hint is not None
    assert hint.text == f"{'x' * length}: on\nmore\nstill"


def test_a_label_that_moves_a_cursor_is_made_plain() -> None:
    assert "\x1b" not in picture([Box("a", "on", label="\x1b[2J")], LOOKS, "\x1b")
    assert places(drawn(Box("a", "on", label="\t"))) == {"+ a": (0, 0)}
    assert places(drawn(Box("a", "on", label="<b>"))) == {"+ <b>": (0, 0)}


def test_lines_are_as_far_to_the_right_as_the_longest_way() -> None:
    found = lines(
        [
            Box("c", "on", ("a", "b"), label="Third", note="why"),
            Box("b", "off", ("a",)),
            Box("a", "on", ("gone",), note="\x1b"),
        ],
        LOOKS,
    )
    first, second, third = found
    assert re.fullmatch(r"\+ a  on  <- gone  \(.*\)", first)
    assert second == "  - b  off  <- a"
    assert third == "    + Third  on  <- a, b  (why)"


def test_what_is_in_a_circle_and_behind_one_comes_last() -> None:
    boxes = [
        Box("x", "on", ("y",)),
        Box("y", "on", ("x",)),
        Box("z", "on", ("y",)),
        Box("a", "on"),
        Box("b", "on", ("a",)),
    ]
    assert {name: column for name, (column, _) in places(drawn(*boxes)).items()} == {
        "+ a": 0,
        "+ b": 1,
        **{f"+ {name}": 2 for name in "xyz"},
    }
    assert [line.strip()[2] for line in lines(boxes[:2], LOOKS)] == ["x", "y"]
    assert not any(line.startswith(" ") for line in lines(boxes[:2], LOOKS))
