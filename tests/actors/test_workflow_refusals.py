"""Steps whose jobs are refused: for now, and for good."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors.workflows import TRY_AGAIN
from forge_actors.actors.workflows_messages import Answer, Count, Tell
from forge_actors.domain.disk import DiskLow
from forge_actors.domain.errors import (
    ActorStopped,
    AdmissionBlocked,
    Forbidden,
    Refused,
    RequestTaken,
    StoreFailed,
    Unavailable,
)
from tests.actors.test_workflow_saves import events, saved, settle
from tests.actors.workflows_kit import World, named

if TYPE_CHECKING:
    from forge_actors.domain.errors import ForgeError

pytestmark = pytest.mark.mock_clock

FOR_NOW = (
    *(StoreFailed("full"), Unavailable("full"), ActorStopped()),
    *(DiskLow("full"), AdmissionBlocked("gone", "full")),
)


@pytest.mark.parametrize("error", FOR_NOW, ids=lambda e: type(e).__name__)
async def test_what_keeps_all_out_is_tried_again_later_and_once(
    error: ForgeError,
) -> None:
    async with World().open() as world:
        world.refusals[None] = error
        key = await world.begin(named("a"), named("b"), named("c", gate="Go?"))
        assert world.calls == [2], "each alone would fare no better"
        told = await world.workflows.ask(key, Count)
        assert told is not None
        assert told[2:] == ({"waiting": 2, "asking": 1}, [])
        await world.workflows.ask(key, partial(Answer, "c", True))
        await settle()
        assert world.calls == [2], "nor does another one"
        for tries in (2, 3):
            await trio.sleep(TRY_AGAIN - 1.0)
            assert len(world.calls) == tries - 1
            await trio.sleep(1.0)
            await settle()
            assert world.calls[tries - 1 :] == [3]
        world.refusals.clear()
        await trio.sleep(TRY_AGAIN)
        await settle()
        assert world.calls == [2, 3, 3, 3]
        assert sorted(filter(None, world.names())) == ["a", "b", "c"]
        assert {one.tries for one in saved(world, key)[1].values()} == {1}
        await trio.sleep(10 * TRY_AGAIN)
        assert len(world.calls) == 4


async def test_one_that_is_refused_for_now_says_so_until_it_has_a_job() -> None:
    async with World().open() as world:
        world.refusals["a"] = Refused("it is busy")
        key = await world.begin(named("a"), named("b"), named("c", "b"))
        told = await world.workflows.ask(key, Tell)
        assert told is not None
        _, _, steps = told
        assert [one.why for one, _ in steps] == [
            *("its job was refused for now: it is busy", None),
            None,
        ]
        assert [defined.name for _, defined in steps] == ["a", "b", "c"]
        # What began meanwhile asks for no second try of its own.
        await trio.sleep(TRY_AGAIN / 2)
        await world.end("b")
        assert world.names() == ["b", "c"]
        calls = len(world.calls)
        await trio.sleep(TRY_AGAIN / 2)
        await settle()
        assert world.calls[calls:] == [1]
        await trio.sleep(TRY_AGAIN - 1.0)
        assert world.calls[calls:] == [1]


@pytest.mark.parametrize(
    ("error", "tries"), [(Forbidden("no"), 0), (RequestTaken("of another"), 1)]
)
async def test_what_is_refused_for_good_fails_its_step_at_once(
    error: ForgeError, tries: int
) -> None:
    async with World().open() as world:
        await trio.sleep(2.0)
        world.refusals["a"] = error
        key = await world.begin(named("a"), named("b"))
        _, steps = saved(world, key)
        assert steps["a"].state == "failed"
        assert steps["a"].why == f"its job was refused: {error}"
        assert (steps["a"].tries, steps["a"].ended) == (tries, world.clock.wall())
        assert (
            "workflow_step_failed",
            {"step": "a", "reason": steps["a"].why},
        ) in events(world)
        await trio.sleep(2 * TRY_AGAIN)
        assert world.names() == ["b"]


async def test_a_job_that_cannot_be_made_fails_its_step_and_frees_others() -> None:
    async with World().open() as world:
        bad = named("a", job={"argv": ["${x.y}"]})
        key = await world.begin(bad, named("b", "a", when="failed"), named("c", "a"))
        _, steps = saved(world, key)
        assert steps["a"].state == "failed"
        assert (steps["a"].why or "").startswith("its job cannot be made: ")
        assert steps["a"].ended == world.clock.wall()
        assert steps["c"].state == "skipped"
        assert world.names() == ["b"]
        gone = named("g", repo="old")
        world.removed = {"old"}
        other = await world.begin(gone)
        await world.workflows.wait(other)
        assert saved(world, other)[1]["g"].why == (
            "its job cannot be made: its repository was removed"
        )
