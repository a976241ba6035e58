"""What the agent decides, without a system around it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from forge_actors.edges.node.agent.desk import Desk, Unwelcome
from forge_actors.edges.node.agent.order import Malformed

Key = tuple[str, int]
A, B = ("a", 1), ("b", 1)


class World:
    """Hands and book in one, which remember what happened in its order."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.said: list[dict[str, Any]] = []
        self.lines: dict[Key, dict[str, Any]] = {}
        self.failure: Exception | None = None
        self.full = False

    def begin(self, key: Key, message: dict[str, Any]) -> str:
        assert self.lines[key]["record"] == "starting"
        if self.failure is not None:
            raise self.failure
        self.log.append(("begin", key))
        return key[0]

    def repeat_start(self, job: str) -> None:
        self.log.append(("repeat", job))

    def stop(self, job: str, grace: float | None, ending: str) -> None:
        self.log.append(("stop", job, grace, ending))

    def end(self, job: str) -> None:
        self.log.append(("end", job))

    def suspend(self, job: str, *, pause: bool) -> None:
        self.log.append(("pause" if pause else "resume", job))

    def watch(self, job: str, known: int) -> None:
        self.log.append(("watch", job, known))

    def identity(self, job: str) -> dict[str, Any]:
        return {"boot_id": "b", "pid": ord(job[0]), "start_ticks": 9, "namespace": 4}

    def say(self, line: bytes) -> None:
        self.said.append(json.loads(line))

    def now(self) -> float:
        return 5.0

    def append(self, key: Key, line: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.lines[key] = json.loads(line)

    def forget(self, key: Key) -> None:
        del self.lines[key]

    def sync(self) -> None:
        self.log.append("sync")


def hello(**changes: Any) -> dict[str, Any]:
    usual = {"op": "hello", "epoch": 3, "instance": "i", "release": "r", "bound": False}
    return usual | changes


def start(key: Key, fence: int = 7) -> dict[str, Any]:
    return {"op": "start", "job": key[0], "attempt": key[1], "fence": fence}


def about(op: str, key: Key, **more: Any) -> dict[str, Any]:
    return {"op": op, "job": key[0], "attempt": key[1], **more}


def receipt(key: Key, **more: Any) -> dict[str, Any]:
    return {"job": key[0], "attempt": key[1], "ending": "exit", **more}


def told(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def served(world: World, **changes: Any) -> Desk[str]:
    desk = Desk(world, world, {"instance": "agent"})
    desk.greet(hello(**changes))
    return desk


def test_an_attempt_begins_once_and_its_end_is_repeated_until_it_is_forgotten() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey(start(A))
    assert world.log == [("begin", A), ("repeat", "a")]
    desk.ended(A, receipt(A))
    desk.obey(start(A))
    assert [each["event"] for each in world.said] == ["exited", "exited"]
    assert world.log == [("begin", A), ("repeat", "a")]
    desk.obey({"op": "forget", "attempts": [A, B]})
    assert world.lines == {}
    assert json.loads(desk.greet(hello())[0])["outstanding"] == 0


def test_what_is_written_down_names_the_fence_and_who_ordered_it() -> None:
    world = World()
    desk = served(world, instance='i"\n', release="r1")
    stamp = {"fence": 7, "instance": 'i"\n', "release": "r1"}
    desk.obey(start(A))
    about_a = {"job": "a", "attempt": 1, **stamp}
    assert world.lines[A] == {"record": "starting", **about_a}
    desk.greet(hello(instance="later", release="r2"))
    desk.started(A)
    identity = world.identity("a")
    written = {"record": "started", **about_a, "identity": identity}
    assert world.lines[A] == written
    assert world.said[-1] == {
        "event": "started",
        "job": "a",
        "attempt": 1,
        "pid": 97,
        "start_ticks": 9,
    }
    desk.came_to(A, receipt(A, after_job={"unfinished": True}))
    assert world.lines[A]["after_job"] == {"unfinished": True}
    desk.started(A)  # told late, or again
    assert world.said[-1]["event"] == "started"
    assert world.lines[A]["after_job"] == {"unfinished": True}
    desk.ended(A, receipt(A))
    assert world.lines[A] == receipt(A, **stamp)
    assert world.said[-1] == {"event": "exited", "receipt": world.lines[A]}


def test_a_service_that_comes_back_is_told_what_runs_and_what_ended() -> None:
    world = World()
    desk = served(world)
    for key in (A, B, ("c", 2)):
        desk.obey(start(key))
    world.failure = NoRoom("no files")
    desk.obey(start(("d", 1), fence=8))
    world.failure = None
    desk.service_gone()
    assert not desk.ending
    assert desk.leaving  # once nothing runs
    desk.jobs.pop(A)
    desk.jobs[A] = "a"
    desk.ended(B, receipt(B))
    ready, *ended = told(desk.greet(hello(epoch=4)))
    assert not desk.leaving
    assert ready["instance"] == "agent"
    assert [(each["job"], each["attempt"]) for each in ready["running"]] == [
        ("c", 2),
        ("a", 1),
        ("d", 1),
    ]
    assert ready["running"][0]["identity"] == world.identity("c")
    assert [each["fence"] for each in ready["running"]] == [7, 7, 8]
    assert ready["held"] == []
    assert ready["outstanding"] == len(ended) == 1
    assert ended[0]["receipt"]["job"] == "b"


def test_without_a_service_all_that_is_written_is_synced() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    assert "sync" not in world.log
    desk.service_gone()
    assert world.log == [("begin", A), "sync"]
    desk.ended(A, receipt(A))
    assert world.log == [("begin", A), "sync", "sync"]


def test_an_earlier_owner_of_the_home_is_not_served() -> None:
    world = World()
    desk = served(world, epoch=5)
    desk.obey(start(A))
    for epoch in (4, 0, -9):
        with pytest.raises(Unwelcome, match="came later"):
            desk.greet(hello(epoch=epoch, bound=True))
    desk.service_gone()
    assert not desk.ending  # the one who was refused did not bind it
    with pytest.raises(Unwelcome):
        desk.greet(hello(epoch=4))
    assert desk.alone
    assert len(told(desk.greet(hello(epoch=5)))[0]["running"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        hello(op="start"),
        hello(epoch="3"),
        hello(epoch=True),
        hello(bound=0),
        hello(instance=None),
        hello(release=7),
        {},
    ],
)
def test_what_is_no_hello_changes_nothing(line: dict[str, Any]) -> None:
    desk: Desk[str] = Desk(World(), World(), {})
    with pytest.raises(Malformed):
        desk.greet(line)
    desk.greet(hello(epoch=0))


def test_the_end_of_a_bound_service_ends_everything() -> None:
    world = World()
    desk = served(world, bound=True)
    desk.obey(start(A))
    world.failure = NoRoom("no files")
    desk.obey(start(B))
    desk.service_gone()
    assert ("end", "a") in world.log
    assert (desk.ending, desk.leaving) == (True, True)
    assert world.lines[B]["ending"] == "stop"
    with pytest.raises(Unwelcome, match="ends everything"):
        desk.greet(hello(epoch=9))
    desk.obey(start(("c", 1)))
    assert world.lines["c", 1]["ending"] == "spawn"


def test_the_last_service_says_whether_all_is_bound_to_it() -> None:
    world = World()
    desk = served(world, bound=False)
    desk.obey(start(A))
    desk.greet(hello(bound=True))
    desk.service_gone()
    assert ("end", "a") in world.log
    other = World()
    desk = served(other, bound=True)
    desk.obey(start(A))
    desk.greet(hello(bound=False))
    desk.service_gone()
    assert ("end", "a") not in other.log


def test_quit_ends_everything_also_where_nothing_is_bound() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    desk.obey({"op": "quit"})
    assert world.log[-1] == ("end", "a")
    assert desk.leaving


def test_a_start_without_room_waits_for_the_end_of_another() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    world.failure = NoRoom("no files")
    for key in (B, ("c", 1), ("d", 1)):
        desk.obey(start(key))
    desk.obey(start(B))
    assert world.lines[B]["record"] == "held"
    desk.obey(about("stop", ("c", 1), grace=None, ending="stop"))
    assert world.lines["c", 1]["ending"] == "stop"
    assert world.lines["c", 1]["fence"] == 7
    desk.obey(about("pause", B))
    (ready, *_) = told(desk.greet(hello(instance="later")))
    assert ready["held"] == [
        {"job": job, "attempt": 1, "fence": 7, "identity": None} for job in "bd"
    ]
    world.failure = None
    desk.ended(A, receipt(A))
    assert world.log[-3:] == [("begin", B), ("pause", "b"), ("begin", ("d", 1))]
    assert world.lines[B]["instance"] == "i"


def test_what_has_nothing_to_wait_for_fails() -> None:
    for failure in (NoRoom("no files"), SpawnFailed("no program"), Malformed("no")):
        world = World()
        desk = served(world)
        world.failure = failure
        desk.obey(start(A))
        assert world.lines[A] == {
            "job": "a",
            "attempt": 1,
            "fence": 7,
            "instance": "i",
            "release": "r",
            "ending": "spawn",
            "ended_at": 5.0,
            "error": str(failure),
        }
        assert desk.jobs == {}


def test_an_attempt_whose_start_cannot_be_written_down_does_not_begin() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    world.full = True
    desk.obey(start(B))
    assert ("begin", B) not in world.log
    assert "cannot be written down" in world.said[-1]["problem"]
    world.full = False
    desk.ended(A, receipt(A))
    assert world.log[-1] == ("begin", B)


def test_a_receipt_that_cannot_be_written_down_is_told_all_the_same() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    world.full = True
    desk.ended(A, receipt(A))
    problem, exited = world.said
    assert (problem["event"], exited["event"]) == ("error", "exited")
    assert len(desk.greet(hello())) == 2


def test_messages_about_attempts_reach_those_that_run() -> None:
    world = World()
    desk = served(world)
    desk.obey(start(A))
    del world.log[:]
    for message in (
        about("stop", A, grace=2, ending="wall"),
        about("stop", A, grace=None, ending="stop"),
        about("pause", A),
        about("resume", A),
        about("watch", A, known=3),
    ):
        desk.obey(message)
    assert world.log == [
        ("stop", "a", 2.0, "wall"),
        ("stop", "a", None, "stop"),
        ("pause", "a"),
        ("resume", "a"),
        ("watch", "a", 3),
    ]
    for op in ("stop", "pause", "resume"):
        desk.obey(about(op, B, grace=None, ending="stop"))
    desk.obey(about("watch", B, known=3))
    desk.obey({"op": "ping"})
    assert world.said == [
        {"event": "output", "job": "b", "attempt": 1, "known": 3},
        {"event": "pong"},
    ]
    with pytest.raises(Malformed, match="unknown op 'dance'"):
        desk.obey(about("dance", A))
