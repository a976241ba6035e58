"""When the agent tells what happened: at once, unless many starts wait behind."""

from __future__ import annotations

from forge_actors.edges.node.agent.loop import NEVER
from forge_actors.edges.node.agent.telling import FEW, PATIENCE, Telling


def test_without_many_that_wait_all_is_told_at_the_end_of_the_turn() -> None:
    telling = Telling(range(FEW))
    assert not telling.is_time(1.0)
    telling.add()
    assert telling.due == NEVER
    assert telling.is_time(1.0)
    assert not telling.is_time(1.1)


def test_behind_many_that_wait_it_is_kept_for_a_moment_from_the_first_on() -> None:
    telling = Telling(range(FEW + 1))
    telling.add()
    assert not telling.is_time(1.0)
    telling.add()
    assert not telling.is_time(1.0 + PATIENCE / 2)
    assert telling.due == 1.0 + PATIENCE
    assert telling.is_time(telling.due)
    assert telling.due == NEVER
    telling.add()
    assert not telling.is_time(2.0)  # the next have a moment of their own
    assert telling.due == 2.0 + PATIENCE


def test_what_is_kept_is_told_as_soon_as_few_wait() -> None:
    waiting = list(range(FEW + 1))
    telling = Telling(waiting)
    telling.add()
    assert not telling.is_time(1.0)
    waiting.pop()
    assert telling.is_time(1.0)
    assert telling.due == NEVER
