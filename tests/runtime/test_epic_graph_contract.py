"""Every graph of an EPIC keeps the contract, wherever it is read from."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.verdicts import evaluate
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.github.places import GITHUB, IssueAt, Place
from forge_actors.runtime.epic_graph import GitHubGraph
from forge_actors.runtime.epic_plan import PlanGraph
from forge_actors.testing.epic.graph import ScriptedGraph
from forge_actors.testing.epic.graph_contract import CHECKS, Ground
from forge_actors.testing.epic.graph_people import (
    PlanPeople,
    ScriptedPeople,
    WorldPeople,
)
from forge_actors.testing.github import FakeGitHub
from tests.edges.github_kit import bench, world_of_two

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from forge_actors.domain.epic.graph import RefusalReason, Snapshot
    from forge_actors.testing.epic.graph_contract import Check, Open
    from forge_actors.testing.epic.graph_people import People

EPIC = IssueAt(Place(GITHUB, "octo", "demo"), 7)


@asynccontextmanager
async def over_http() -> AsyncIterator[Ground]:
    async with bench() as made:
        graph = GitHubGraph(made.reader, EPIC, wall=lambda: made.world.now)
        troubles = made.troubles

        def spoil() -> RefusalReason:
            troubles.fault(".", status=401, times=1000)
            return "denied"

        people = WorldPeople(made.world, made.demo)
        yield Ground(graph, people, spoil, troubles.faults.clear)


@asynccontextmanager
async def in_process() -> AsyncIterator[Ground]:
    world = world_of_two()
    demo, _ = world.repositories.values()
    reader = FakeGitHub(world)
    graph = GitHubGraph(reader, EPIC, wall=lambda: world.now)

    def spoil() -> RefusalReason:
        error = GitHubFailed("unavailable", "it is gone")
        reader.failures.extend([error] * 1000)
        return "unavailable"

    yield Ground(graph, WorldPeople(world, demo), spoil, reader.failures.clear)


@asynccontextmanager
async def scripted() -> AsyncIterator[Ground]:
    graph = ScriptedGraph()

    def spoil() -> RefusalReason:
        graph.down = SnapshotRefused("malformed", "scripted")
        return "malformed"

    def mend() -> None:
        graph.down = None

    yield Ground(graph, ScriptedPeople(graph), spoil, mend)


@asynccontextmanager
async def from_a_plan() -> AsyncIterator[Ground]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "plan.toml")
        people = PlanPeople(path)

        def spoil() -> RefusalReason:
            path.write_text("title = ")
            return "malformed"

        graph = PlanGraph(path, sleep=no_time)
        yield Ground(graph, people, spoil, people.save)


#: Something that a person does: a word, and the numbers of one or two issues.
ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "finish", "drop", "reopen", "block", "unblock", "turn"]
        ),
        st.integers(1, 6),
        st.integers(1, 6),
    ),
    max_size=25,
)


class Act:
    """What may be done when: to issues that are there, and once."""

    def __init__(self, crowd: Sequence[People]) -> None:
        self.crowd = crowd
        self.numbers: list[int] = []
        self.blocks: set[tuple[int, int]] = set()

    def do(self, what: str, one: int, other: int) -> None:
        if what == "add" and one not in self.numbers:
            self.numbers.append(one)
            self._all(lambda people: people.add(one))
        elif not {one, other} <= set(self.numbers):
            return
        elif what in ("finish", "drop"):
            reason = "completed" if what == "finish" else "not_planned"
            self._all(lambda people: people.finish(one, reason))
        elif what == "reopen":
            self._all(lambda people: people.reopen(one))
        elif what == "block" and (one, other) not in self.blocks:
            self.blocks.add((one, other))
            self._all(lambda people: people.block(one, other))
        elif what == "unblock" and (one, other) in self.blocks:
            self.blocks.remove((one, other))
            self._all(lambda people: people.unblock(one, other))
        elif what == "turn":
            self.numbers.reverse()
            self._all(lambda people: people.order(*self.numbers))

    def _all(self, does: Callable[[People], None]) -> None:
        for people in self.crowd:
            does(people)


@given(ACTS)
@settings(max_examples=30, deadline=None)
def test_whatever_people_do_all_graphs_say_the_same(
    acts: list[tuple[str, int, int]],
) -> None:
    async def compare() -> None:
        async with in_process() as one, scripted() as two, from_a_plan() as three:
            grounds = (one, two, three)
            act = Act([ground.people for ground in grounds])
            before = [await ground.graph.snapshot() for ground in grounds]
            for each in acts:
                act.do(*each)
                now = [await ground.graph.snapshot() for ground in grounds]
                [told, *others] = [evaluated(snapshot) for snapshot in now]
                assert others == [told, told]
                changed = [
                    a.digest != b.digest for a, b in zip(before, now, strict=True)
                ]
                assert len(set(changed[:2])) == 1
                before = now

    trio.run(compare)


def evaluated(snapshot: Snapshot) -> list[tuple[int, str]]:
    return [(each.number, each.reason) for each in evaluate(snapshot, {})]


async def no_time(seconds: float) -> None:
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("open_", [over_http, in_process, scripted, from_a_plan])
async def test_every_graph_keeps_the_contract(check: Check, open_: Open) -> None:
    await check(open_)
