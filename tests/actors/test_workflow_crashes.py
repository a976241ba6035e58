"""A runtime that is killed at each write of its store comes to the same end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.campaigns import ITEMS
from forge_actors.domain.rounds import Marks, Terms
from forge_actors.domain.workflow_definitions import Definition, condition_of
from forge_actors.domain.workflow_records import loaded
from forge_actors.domain.workflow_steps import Workflow
from forge_actors.runtime.workflow_plans import plan_of
from forge_actors.testing.made_changes import ended_waiting
from forge_actors.testing.store import MemoryStore
from tests.actors.workflows_kit import JOB, World, named, step

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobEnded
    from forge_actors.domain.jobs import State
    from forge_actors.testing.rows import Rows

pytestmark = pytest.mark.mock_clock

PORTFOLIO = Definition(
    "release",
    "portfolio",
    (
        named("build", retries=1),
        named("lint"),
        named("test", "build", "lint", job={"argv": ["test", "${build.version}"]}),
        named("left-out", "test", condition=condition_of("build.x == '1'", field="")),
        named("bad", "lint"),
        named("behind", "bad"),
        named("tell", "bad", when="failed"),
        named("always", "left-out", "tell", when="ended"),
    ),
    parallel=2,
)
CAMPAIGN = Definition(
    "lint",
    "campaign",
    (named(ITEMS, gives_items=True),),
    template=step("item", request=structs.replace(JOB, name="${item}")),
    canary=1,
    parallel=2,
    stop_after=2,
)
GOAL = Definition(
    "mend",
    "goal",
    (step("act", request=JOB), step("check", request=JOB)),
    goal=Terms(rounds=4, tokens=1000),
)
MARKS: dict[str | None, Marks] = {
    "act-1": Marks(tokens=10),
    "check-1": Marks(likeness="a"),
    "check-2": Marks(likeness="b"),
    "act-3": Marks(tokens=20),
    "check-4": Marks(likeness="c"),
}
#: How the tries of a job end that do not all succeed.
ENDS: dict[str, list[State]] = {
    "build": ["failed", "succeeded"],
    "bad": ["failed"],
    "two": ["failed"],
    "three": ["failed"],
    "check-1": ["failed"],
    "check-2": ["failed"],
    "act-3": ["failed"],
    "check-4": ["failed"],
}
OUTPUTS = {"build": {"version": "1.2"}, ITEMS: {"1": "one", "2": "two", "3": "three"}}


class Killed(Exception):
    """The runtime was killed."""


class MortalStore(MemoryStore):
    """A store whose process is killed at one of its commits: before what that has is
    durable, or when it is and nobody has heard of it."""

    def __init__(self, durable: Rows | None, life: int, *, after: bool) -> None:
        super().__init__(durable=durable)
        self._life = life
        self._after = after
        self._dead = False

    def commit(self) -> None:
        if self._dead:
            return
        moves = self._ready()
        if not moves or self._life != self.commits:
            super().commit()
            return
        self._dead = True
        for move in moves if self._after else ():
            for change in move.changes:
                self.durable.apply(change)
        raise Killed


class Living(World):
    """A world in which jobs end, each as it is to end."""

    async def live(self) -> None:
        """End jobs until cancelled, also those of an earlier runtime."""
        while True:
            await trio.testing.wait_all_tasks_blocked()
            for key, job in tuple(self.store.durable.jobs.items()):
                if job.state == "queued":
                    await self.store.save([self._end(key)]).wait()
                    break
            else:
                await trio.sleep(1)

    def _end(self, key: str) -> JobEnded:
        name = self.requests[key].name or ""
        self.outputs[key] = OUTPUTS.get(name, {})
        earlier = [k for k in self.jobs_of(name) if k < key]
        ends = ENDS.get(name, ["succeeded"])
        return ended_waiting(key, state=ends[min(len(earlier), len(ends) - 1)])

    def jobs_of(self, name: str) -> list[str]:
        return [
            key for key in self.store.durable.jobs if self.requests[key].name == name
        ]


class End(NamedTuple):
    state: str
    why: str | None
    #: The state of each step, and how many jobs it had.
    steps: dict[str, tuple[str, int]]
    jobs: int


async def whole(definition: Definition, life: int, *, after: bool) -> tuple[End, int]:
    """Run a workflow to its end, killed after so many commits, and then not any more;
    how it ended, and how many commits the last runtime made."""
    world = Living(MortalStore(None, life, after=after))
    world.marks = MARKS
    header = Workflow("1", definition.name, definition.kind, "0", 0.0)
    while True:
        try:
            async with world.open(), trio.open_nursery() as nursery:
                nursery.start_soon(world.live)
                if world.store.workflow("1") is None:
                    await world.workflows.begin(header, definition, "once")
                await world.workflows.wait("1")
                nursery.cancel_scope.cancel()
            break
        except* Killed:
            other = Living(MortalStore(world.store.durable, -1, after=after))
        other.requests, other.outputs = world.requests, world.outputs
        other.marks = MARKS
        world = other
    row = world.store.workflow("1")
    assert row is not None
    ended, _, known = loaded(*row)
    plan = plan_of(definition, known)
    steps = {one.name: (one.state, one.tries) for one in plan.steps}
    return End(
        ended.state, ended.why, steps, len(world.store.durable.jobs)
    ), world.store.commits


@pytest.mark.parametrize(
    "definition", [PORTFOLIO, CAMPAIGN, GOAL], ids=lambda d: d.kind
)
async def test_the_end_is_the_same_wherever_the_runtime_is_killed(
    definition: Definition,
) -> None:
    expected, commits = await whole(definition, -1, after=False)
    assert expected.state == "failed"
    assert expected.jobs == sum(tries for _, tries in expected.steps.values())
    assert commits > 10
    for life in range(commits):
        for after in (False, True):
            found, _ = await whole(definition, life, after=after)
            assert found == expected, (life, after)
