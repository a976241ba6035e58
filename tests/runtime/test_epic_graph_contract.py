"""Every graph of an EPIC keeps the contract, wherever it is read from."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.epic.graph import SnapshotRefused
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
    from collections.abc import AsyncIterator

    from forge_actors.domain.epic.graph import RefusalReason
    from forge_actors.testing.epic.graph_contract import Check, Open

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


async def no_time(seconds: float) -> None:
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("open_", [over_http, in_process, scripted, from_a_plan])
async def test_every_graph_keeps_the_contract(check: Check, open_: Open) -> None:
    await check(open_)
