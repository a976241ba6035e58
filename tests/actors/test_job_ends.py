"""Which schedules are looked at when it is read which jobs have ended."""

from __future__ import annotations

from msgspec import structs

from forge_actors.actors.followed import Followed
from forge_actors.actors.job_ends import JobEnds
from forge_actors.domain.causes import parse_cause
from forge_actors.domain.schedules import Progress, Schedule
from forge_actors.domain.triggers import On
from forge_actors.testing.clock import START, FakeClock
from forge_actors.testing.store import MemoryStore
from tests.actors.schedules_kit import made


def following(name: str) -> Followed:
    cause = parse_cause("ended:*")
    definition = structs.replace(made(name, On(cause)), repo="repo")
    return Followed(Schedule(name, 1, definition, Progress(START)), cause)


async def test_one_that_left_before_it_was_read_is_not_looked_at() -> None:
    looked: list[str] = []
    ends = JobEnds(
        MemoryStore(),
        FakeClock(),
        ring=lambda _: None,
        guard=lambda one, _: looked.append(one.name),
        tell=lambda *_, **__: None,
    )
    stays, leaves = following("stays"), following("leaves")
    ends.add(stays)
    ends.add(leaves)
    ends.drop(leaves)
    await ends.read("repo")
    assert looked == ["stays"]
