"""A chain: an exit, the token it frees and the next dispatch are saved at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors.tokens import Grants
from forge_actors.domain.capacity import Offer
from forge_actors.edges.sqlite.store import SqliteStore
from tests.actors.kit import limits, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock

TWO = ("r0", "r1")


def commits(made: World) -> int:
    assert isinstance(made.store, SqliteStore)
    return made.store.commits.seconds.count


async def test_an_exit_and_the_dispatch_it_makes_possible_are_one_commit(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(made.job("a"), made.job("b"), made.job("c"))
        before, began = commits(made), trio.current_time()
        await made.finish("a")
        assert made.states() == {"a": "succeeded", "b": "dispatched", "c": "queued"}
        assert made.running == ["b"]
        assert commits(made) == before + 1
        assert trio.current_time() == began, "it waits for no timer"


async def test_exits_of_several_repositories_share_one_commit(tmp_path: Path) -> None:
    async with world(tmp_path, repos=TWO, limits=limits(workers=2)) as made:
        await made.submit(*(made.job(f"j{n}", TWO[n % 2]) for n in range(6)))
        before = commits(made)
        await made.finish(*made.running)
        assert list(made.states().values()).count("succeeded") == 2
        assert len(made.running) == 2
        assert commits(made) == before + 1


async def test_an_exit_that_nothing_follows_is_durable_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a"), made.job("b"))
        began = trio.current_time()
        await made.finish("a")
        assert made.states() == {"a": "succeeded", "b": "running"}
        await made.pause("all")
        await made.finish("b")
        assert made.states() == {"a": "succeeded", "b": "succeeded"}
        assert trio.current_time() == began


async def test_a_grant_that_is_not_used_keeps_nothing_from_being_saved(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, repos=TWO, limits=limits(workers=2)) as made:
        await made.submit(*(made.job(f"j{n}", TWO[n % 2]) for n in range(4)))
        began = trio.current_time()
        for job in made.running:
            made.launcher.finish(job)
        # What its next grant is for is gone when that arrives.
        actor = await made.open("r1")
        assert await made.cancel("j3", "r1")
        await trio.testing.wait_all_tasks_blocked()
        states = made.states()
        assert (states["j0"], states["j1"]) == ("succeeded", "succeeded")
        assert made.running == ["j2"]
        assert actor is await made.open("r1")
        assert trio.current_time() == began


def test_only_when_no_grant_is_on_its_way_all_has_settled() -> None:
    settled: list[bool] = []
    grants = Grants(limits(), lambda _: None, lambda: settled.append(True))

    one, other = (
        grants.issue(Offer("repo", job, ("workers",), 2, 0.0)) for job in ("a", "b")
    )
    grants.settle()
    assert not settled
    one.job = "a"
    grants.settle()
    assert not settled
    grants.take_back(other)
    assert grants.came_back
    grants.settle()
    assert settled == [True]
    assert not grants.came_back
