"""A run of a single issue that belongs to no EPIC holds its issue back: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic.namespace import Expected
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import parse_issue_url

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import EngineState


def held_issue(state: EngineState | None, expected: Expected) -> int | None:
    """The issue of this repository that such a run has not done yet, if there is one.

    What leads to no issue, or to one of another repository, holds nothing.
    """
    if state is None or state.phase == "done":
        return None
    try:
        at = parse_issue_url(state.issue_url)
    except InvalidInput:
        return None
    return at.number if expected.is_named(at.place.owner, at.place.name) else None
