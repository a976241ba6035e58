"""The graph of a workflow, as lines and as a picture."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from forge_actors.domain.errors import Refused
from forge_actors.domain.picture.graph import LOOKS, MAX_DRAWN, lines, picture
from forge_actors.domain.workflow_steps import STEP_STATES, StepState
from forge_actors.domain.workflow_views import StepView, WorkflowView


def step(name: str, *after: str, state: StepState = "waiting", **told: str) -> StepView:
    return StepView(
        *(name, state, after, told.get("job"), 0, told.get("why"), told.get("gate")),
        *({}, None, None),
    )


def view(*steps: StepView) -> WorkflowView:
    return WorkflowView(
        *(
            "1",
            "<release>",
            "portfolio",
            "running",
            None,
            "",
            "cli",
            "",
            None,
            {},
            None,
        ),
        steps=steps,
    )


def test_a_line_is_as_far_to_the_right_as_the_longest_way_to_it() -> None:
    told = view(
        step("ship", "test", "build", state="asking", gate="Ship\x1b[2J it?"),
        step("build", state="succeeded"),
        step("test", "build", state="failed", why="exit status 3"),
    )
    first, second, third = lines(told)
    assert first == "✓ build  succeeded"
    assert second == "  ✕ test  failed  <- build  (exit status 3)"
    assert third.startswith("    ? ship  asking  <- test, build  (Ship")
    assert "\x1b" not in third


def test_every_state_has_a_mark() -> None:
    assert set(LOOKS) == set(STEP_STATES)
    signs = [LOOKS[state].sign for state in STEP_STATES]
    assert len(set(signs)) == len(signs)


def test_a_picture_has_a_box_a_step_none_upon_another_and_no_script() -> None:
    told = view(
        step("a"),
        step("b"),
        step("c", "a", "b", state="failed", why='"><script>alert(1)</script>'),
        step("d", "b"),
        step("e", "c", "d", state="running", job="1job"),
    )
    drawn = picture(told)
    assert "<script" not in drawn
    root = ET.fromstring(drawn)
    space = "{http://www.w3.org/2000/svg}"
    boxes = root.findall(f".//{space}rect")
    assert [box.get("class") for box in boxes] == [
        *("waiting", "waiting", "failed", "waiting", "running")
    ]
    assert len({(box.get("x"), box.get("y")) for box in boxes}) == 5
    columns = [float(box.get("x", "")) for box in boxes]
    assert columns[0] == columns[1] < columns[2] == columns[3] < columns[4]
    assert len(root.findall(f"{space}path")) == 5
    names = [text.text for text in root.findall(f".//{space}text")]
    assert names == ["· a", "· b", "✕ c", "· d", "▸ e"]


def test_too_many_steps_are_not_drawn() -> None:
    with pytest.raises(Refused, match="without --svg"):
        picture(view(*(step(f"s{n}") for n in range(MAX_DRAWN + 1))))
