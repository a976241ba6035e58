"""The graph of a large EPIC: how often GitHub is asked, and how long it takes."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import trio

from benchmarks.rows import Bench, Sample
from forge_actors.domain.epic.verdicts import counts, evaluate
from forge_actors.runtime.epic_source import open_graph
from forge_actors.runtime.github_settings import GitHubSettings
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.testing.epic.graph_people import WorldPeople
from forge_actors.testing.github import World, serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.epic.graph import Graph, Snapshot
    from forge_actors.testing.github.server import GitHubServer

URL = "https://github.com/octo/demo/issues/7"
TOKEN = "github_pat_benchbenchbenchbench"
#: Others that a child waits for, on the average.
EACH = 3
#: Evaluations, and unchanged snapshots, of which the median counts.
TIMES, AGAIN = 200, 3


def measure(bench: Bench) -> Iterable[Sample]:
    """Read it whole, read it again unchanged, and say what is to become of each."""
    return trio.run(_measure, bench)


async def _measure(bench: Bench) -> list[Sample]:
    world = large_epic(bench.children)
    children = f"{bench.children} children, {EACH * bench.children} dependencies"
    async with serving(world) as server:
        environ = {"GITHUB_API_URL": server.base, "GH_TOKEN": TOKEN, "PATH": ""}
        secrets = SecretFolder(bench.folder)
        graph = open_graph(URL, GitHubSettings(), secrets, environ=environ)
        first, snapshot, asked = await _read(graph, server)
        waiting = sum(bool(child.blockers) for child in snapshot.children)
        again = [await _read(graph, server) for _ in range(AGAIN)]
        await graph.close()
    statuses = {status for _, _, found in again for status in found}
    if statuses != {304}:
        raise RuntimeError(f"an unchanged graph was answered with {sorted(statuses)}")
    fresh = statistics.median(took for took, _, _ in again)
    evaluation, told = _evaluated(snapshot)
    beside = f"and one for each of {waiting} children that wait; {children}"
    server_too = "the server that answers is Python in this very process"
    return [
        Sample("epic-requests", len(asked) - waiting, "requests", beside),
        Sample("epic-snapshot", first, "ms", f"{children}; {server_too}"),
        Sample("epic-unchanged", fresh, "ms", f"the same again, all 304; {server_too}"),
        Sample("epic-evaluate", evaluation, "ms", f"{children}; {told}"),
    ]


def large_epic(children: int) -> World:
    """A world in which each child waits for the ones right before it."""
    world = World()
    world.token(TOKEN)
    people = WorldPeople(world, world.repository("octo", "demo"))
    first, left = 1001, EACH * children
    for number in range(first, first + children):
        # The first ones have fewer before them, so those after them have one more.
        blockers = range(max(first, number - EACH - (number < first + 10)), number)
        people.add(number, blocked_by=blockers)
        left -= len(blockers)
    assert not left, "it has as many dependencies as it says"
    return world


async def _read(
    graph: Graph, server: GitHubServer
) -> tuple[float, Snapshot, list[int]]:
    """Milliseconds, what it was, and how each request was answered."""
    server.troubles.log.clear()
    begin = time.perf_counter()
    snapshot = await graph.snapshot()
    took = (time.perf_counter() - begin) * 1000
    return took, snapshot, server.troubles.statuses


def _evaluated(snapshot: Snapshot) -> tuple[float, str]:
    took = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        found = evaluate(snapshot, {})
        took.append((time.perf_counter() - begin) * 1000)
    told = ", ".join(
        f"{count} {kind}" for kind, count in counts(found).items() if count
    )
    return statistics.median(took), told
