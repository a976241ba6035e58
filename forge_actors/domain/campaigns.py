"""Campaigns: one step for each of many items, a few first to see whether it goes well.

A campaign is a graph without dependencies, but for those on its canaries. What it is
about is known when it begins, or told by the output of its first step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.workflow_definitions import MAX_NAME, MAX_STEPS
from forge_actors.domain.workflows import Graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forge_actors.domain.workflow_definitions import Definition, StepDefinition
    from forge_actors.domain.workflow_steps import Step, StepEnd

#: The step that finds out what a campaign is about, and the place of an item.
ITEMS, ITEM = "items", "item"
#: Characters of one item.
MAX_ITEM = 4096
NO_ITEMS = "it found nothing that the campaign could be about"
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def expanded(definition: Definition, items: Sequence[str]) -> Definition:
    """The same, with a step for each item behind those that it has."""
    template = definition.template
    assert template is not None, definition.name
    names = {step.name for step in definition.steps}
    numbers: dict[str, int] = {}
    steps: list[StepDefinition] = []
    canaries: tuple[str, ...] = ()
    for item in items:
        name = name_of(item, names, numbers)
        names.add(name)
        after = tuple(step.name for step in definition.steps) + canaries
        values = {**template.values, ITEM: item}
        steps.append(structs.replace(template, name=name, after=after, values=values))
        if len(steps) == definition.canary:
            canaries = tuple(step.name for step in steps)
    return structs.replace(definition, steps=(*definition.steps, *steps))


def usable(lines: Iterable[str]) -> tuple[str, ...]:
    """The items among the lines of an output: each once, without blanks around it."""
    found = dict.fromkeys(line.strip() for line in lines)
    return tuple(item for item in found if 0 < len(item) <= MAX_ITEM)


def name_of(item: str, taken: set[str], numbers: dict[str, int]) -> str:
    """A name for the step of an item, as much like it as can be. `numbers`: what is put
    behind the next one that begins so, so that many are not tried in vain."""
    plain = _NO_NAME.sub("-", item).strip("-_")[:MAX_NAME] or ITEM
    stem = plain[: MAX_NAME - len(f"-{MAX_STEPS}")]
    name = plain
    while name in taken:
        number = numbers[stem] = numbers.get(stem, 1) + 1
        end = f"-{number}"
        name = plain[: MAX_NAME - len(end)] + end
    return name


class Campaign(Graph):
    """The plan of a campaign."""

    def __init__(self, definition: Definition, known: Iterable[Step] = ()) -> None:
        saved = list(known)
        #: As it was begun, before anything is known that it is about.
        self._begun = definition
        items = definition.items
        for step in saved:
            if step.name == ITEMS and step.state == "succeeded" and definition.steps:
                items = step.items
        super().__init__(expanded(definition, items), saved)
        first = len(definition.steps)
        self._canaries = self._order[first : first + definition.canary]

    def ended(self, step: Step, end: StepEnd, now: float) -> list[Step]:
        gives = self._defined[step.name].gives_items
        if not gives or end.state != "succeeded":
            return super().ended(step, end, now)
        if self._cancelled:
            why = "it is known what it is about, and nothing of that was begun"
            over = structs.replace(end, state="cancelled", why=why)
            return super().ended(step, over, now)
        items = usable(end.items)
        if not 1 <= len(items) < MAX_STEPS:
            why = f"it found more than {MAX_STEPS - 1} items"
            if not items:
                why = end.why or NO_ITEMS
            bad = structs.replace(end, state="failed", why=why)
            return super().ended(step, bad, now)
        changed = super().ended(step, structs.replace(end, items=items), now)
        Campaign.__init__(self, self._begun, self._order)
        return changed + self.begin(now)

    @property
    def _must_stop(self) -> bool:
        if super()._must_stop:
            return True
        return any(step.state == "failed" for step in self._canaries)
