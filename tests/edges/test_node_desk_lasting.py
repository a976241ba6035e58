"""What the agent decides about attempts that last, and about what comes with one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forge_actors.edges.node.agent.child import NoRoom
from forge_actors.edges.node.agent.handed import Handed, obey
from tests.edges.test_node_desk import A, B, World, about, hello, served, start


def lasting(key: tuple[str, int]) -> dict[str, Any]:
    return start(key) | {"lasting": True, "stop_signal": "SIGINT"}


def stop(nth: int | None) -> dict[str, Any]:
    wanted = about("stop", A, grace=0.0, ending="stop")
    return wanted if nth is None else wanted | {"nth": nth}


def test_a_stop_that_is_said_again_is_no_other_one() -> None:
    world = World()
    desk = served(world)
    desk.obey(lasting(A))
    for nth in (1, 1, 2, 1, 2):
        desk.obey(stop(nth))
    assert world.log == [("begin", A), *2 * [("stop", "a", 0.0, "stop")]]
    # One of which no number is told is always another one.
    desk.obey(stop(None))
    assert len(world.log) == 4


def test_who_comes_next_learns_how_often_it_was_asked() -> None:
    world = World()
    desk = served(world)
    desk.obey(lasting(A))
    desk.obey(start(B))
    assert world.lines[A]["lasting"] == "SIGINT"
    assert "lasting" not in world.lines[B]
    desk.started(A)
    desk.obey(stop(1))
    known = {"lasting": "SIGINT", "stops": 1, "record": "started"}
    assert known.items() <= world.lines[A].items()
    assert world.lines[A]["identity"] == world.identity("a")
    desk.end()
    assert world.lines[A]["stops"] == 2
    assert world.log[-2:] == [("end", "a"), ("end", "b")]


def test_the_ready_tells_what_the_next_service_has_to_know() -> None:
    world = World()
    desk = served(world)
    desk.obey(lasting(A))
    desk.obey(start(B))
    desk.obey(stop(1))
    ready = json.loads(desk.greet(hello())[0])
    assert ready["hands_over"] is True
    assert [each.get("stops") for each in ready["running"]] == [1, None]


def test_what_comes_with_descriptors_is_never_held_back() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(B))
    world.failure = NoRoom("too many open files")
    desk.obey(start(A) | {"descriptors": [8]})
    receipt = world.lines[A]
    assert (receipt["ending"], receipt["error"]) == ("spawn", "too many open files")


def test_descriptors_are_closed_whatever_becomes_of_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[list[int]] = []
    monkeypatch.setattr(Handed, "take", lambda _self, count: [71, 72][:count])
    monkeypatch.setattr("forge_actors.edges.node.agent.handed._close", closed.append)
    world = World()
    desk, handed = served(world), Handed.__new__(Handed)
    for message in (start(A), start(A), {"op": "nonsense", "job": "a", "attempt": 1}):
        try:
            obey(desk, message | {"descriptors": 2}, handed)
        except ValueError:
            assert message["op"] == "nonsense"
    assert closed == 3 * [[71, 72]]
