"""People who change what a graph of an EPIC tells of, wherever it tells it from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from forge_actors.domain.epic.graph import IssueText

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from forge_actors.testing.epic.graph import ScriptedGraph
    from forge_actors.testing.github.world import Issue, Repository, World


class People(Protocol):
    """What they do to the children of one EPIC."""

    def add(self, number: int, *, blocked_by: Iterable[int] = ()) -> None:
        """One more, behind the others. Its title is `Issue` and the number."""

    def finish(self, number: int, reason: str = "completed") -> None: ...

    def reopen(self, number: int) -> None: ...

    def block(self, number: int, by: int) -> None: ...

    def unblock(self, number: int, by: int) -> None: ...

    def give_away(self, number: int) -> None:
        """It is no child of the EPIC any more."""

    def order(self, *numbers: int) -> None: ...

    def say(self, number: int, title: str, body: str) -> None: ...


class WorldPeople:
    """Of a world for tests: its EPIC is octo/demo#7."""

    def __init__(self, world: World, demo: Repository, number: int = 7) -> None:
        self.world = world
        self.demo = demo
        self.epic = world.issue(demo, number, title="The EPIC")

    def __getitem__(self, number: int) -> Issue:
        found = self.world.numbered(self.demo, number)
        assert found is not None, f"there is no #{number}"
        return found

    def add(self, number: int, *, blocked_by: Iterable[int] = ()) -> None:
        title = f"Issue {number}"
        made = self.world.issue(self.demo, number, title=title, parent=self.epic)
        for each in blocked_by:
            self.world.block(made, self[each])

    def finish(self, number: int, reason: str = "completed") -> None:
        self.world.close(self[number], reason)

    def reopen(self, number: int) -> None:
        self.world.reopen(self[number])

    def block(self, number: int, by: int) -> None:
        self.world.block(self[number], self[by])

    def unblock(self, number: int, by: int) -> None:
        self[number].blockers.remove(self[by].id)
        self.world.touch(self[number])

    def give_away(self, number: int) -> None:
        other = self.world.numbered(self.demo, 8) or self.world.issue(self.demo, 8)
        self.world.adopt(other, self[number])

    def order(self, *numbers: int) -> None:
        self.epic.children = [self[number].id for number in numbers]

    def say(self, number: int, title: str, body: str) -> None:
        self[number].body = body
        self.world.rename_issue(self[number], title)


class ScriptedPeople:
    """Of a graph that is told what to say."""

    def __init__(self, graph: ScriptedGraph) -> None:
        self.graph = graph
        self.finish, self.reopen = graph.finish, graph.reopen
        self.block, self.unblock = graph.block, graph.unblock
        self.order = graph.order

    def add(self, number: int, *, blocked_by: Iterable[int] = ()) -> None:
        self.graph.add(number, blocked_by=blocked_by)

    def give_away(self, number: int) -> None:
        self.graph.give_away(number)

    def say(self, number: int, title: str, body: str) -> None:
        self.graph.change(number, title=title)
        self.graph.texts[number] = IssueText(title, body)


class PlanPeople:
    """Of a plan that is one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.issues: dict[int, dict[str, Any]] = {}
        self.save()

    def save(self) -> None:
        """Have the file say what is in `issues`."""
        lines = ['title = "The EPIC"']
        for number, issue in self.issues.items():
            told = {"number": number, **issue}
            lines += ["", "[[issue]]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in told.items()]
        self.path.write_text("\n".join([*lines, ""]))

    def add(self, number: int, *, blocked_by: Iterable[int] = ()) -> None:
        self.issues[number] = {"title": f"Issue {number}"}
        self._change(number, blocked_by=list(blocked_by))

    def finish(self, number: int, reason: str = "completed") -> None:
        self._change(number, state="closed", reason=reason.replace("_", "-"))

    def reopen(self, number: int) -> None:
        self.issues[number].pop("reason", None)
        self._change(number, state="open")

    def block(self, number: int, by: int) -> None:
        self.issues[number]["blocked_by"].append(by)
        self.save()

    def unblock(self, number: int, by: int) -> None:
        self.issues[number]["blocked_by"].remove(by)
        self.save()

    def give_away(self, number: int) -> None:
        del self.issues[number]
        self.save()

    def order(self, *numbers: int) -> None:
        self.issues = {number: self.issues[number] for number in numbers}
        self.save()

    def say(self, number: int, title: str, body: str) -> None:
        self._change(number, title=title, body=body)

    def _change(self, number: int, **fields: Any) -> None:
        self.issues[number].update(fields)
        self.save()


if TYPE_CHECKING:

    def _are_people(
        one: WorldPeople, other: ScriptedPeople, third: PlanPeople
    ) -> tuple[People, People, People]:
        return one, other, third
