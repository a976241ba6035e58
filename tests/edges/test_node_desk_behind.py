"""What the agent decides about starts that wait behind others."""

from __future__ import annotations

import json
from typing import Any

from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from tests.edges.test_node_desk import A, B, World, about, hello, served, start

C, D = ("c", 1), ("d", 1)
WITHDRAWN = {"grace": None, "ending": "withdrawn"}


def behind(key: tuple[str, int], room: int = 1) -> dict[str, Any]:
    return start(key) | {"room": room}


def begun(world: World) -> list[str]:
    return [entry[1][0] for entry in world.log if entry[0] == "begin"]


def receipts(world: World) -> list[tuple[str, str]]:
    told = [each["receipt"] for each in world.said if each["event"] == "exited"]
    return [(each["job"], each["ending"]) for each in told]


def test_each_begins_in_its_turn_when_there_is_room() -> None:
    world = World()
    desk = served(world)
    for message in (behind(A, 2), behind(B, 2), behind(C, 2), behind(D, 2)):
        desk.obey(message)
    assert begun(world) == ["a", "b"]
    desk.obey(behind(C, 2))  # said again, it is the same one
    desk.ended(B, {})
    assert begun(world) == ["a", "b", "c"]
    desk.ended(A, {})
    desk.ended(C, {})
    assert begun(world) == ["a", "b", "c", "d"]


def test_nothing_is_written_of_one_before_it_begins() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    assert B not in world.lines
    desk.ended(A, {})
    assert (world.lines[B]["record"], world.lines[B]["fence"]) == ("starting", 7)


def test_the_end_is_told_before_the_next_begins() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    world.failure = SpawnFailed("no such program")
    desk.obey(behind(C))
    desk.ended(A, {"job": "a", "ending": "exit"})
    # One that cannot be started leaves its place to the one after it.
    assert receipts(world) == [("a", "exit"), ("b", "spawn"), ("c", "spawn")]


def test_one_that_has_no_room_to_heed_goes_first() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    desk.obey(start(C))
    assert begun(world) == ["a", "c"]
    desk.ended(C, {})
    assert begun(world) == ["a", "c"]


def test_one_that_the_system_has_no_room_for_keeps_its_place() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    world.failure = NoRoom("too many open files")
    desk.obey(start(B))
    world.failure = None
    desk.obey(behind(C, 2))
    assert begun(world) == ["a"]
    desk.ended(A, {})
    assert begun(world) == ["a", "b", "c"]


def test_one_is_withdrawn_only_before_it_begins() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    for key in (A, B, B, C):
        desk.obey(about("stop", key, **WITHDRAWN))
    assert receipts(world) == [("b", "withdrawn")]
    assert not [entry for entry in world.log if entry[0] == "stop"]
    desk.ended(A, {})
    assert begun(world) == ["a"]


def test_one_that_is_stopped_or_paused_meanwhile_is_so() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    desk.obey(behind(C))
    desk.obey(about("pause", B))
    desk.obey(about("stop", C, grace=1.0, ending="cancel"))
    assert receipts(world) == [("c", "stop")]
    desk.ended(A, {})
    assert world.log[-2:] == [("begin", B), ("pause", "b")]


def test_it_is_dropped_with_its_service_and_the_next_one_hears_nothing_of_it() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    desk.service_gone()
    ready = json.loads(desk.greet(hello())[0])
    assert ready["rooms"] is True
    assert [each["job"] for each in (*ready["running"], *ready["held"])] == ["a"]
    desk.ended(A, {})
    assert begun(world) == ["a"]
    # Ordered anew, also without the first service having hung up, it is another start.
    desk.obey(start(C))
    desk.obey(behind(B))
    desk.greet(hello())
    desk.ended(C, {})
    assert begun(world) == ["a", "c"]
    desk.obey(behind(B))
    assert begun(world) == ["a", "c", "b"]


def test_nothing_begins_once_everything_ends() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(behind(B))
    desk.end()
    desk.obey(behind(C))
    assert receipts(world) == [("b", "stop"), ("c", "spawn")]
    desk.ended(A, {})
    assert begun(world) == ["a"]
