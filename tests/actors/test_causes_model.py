"""The schedules and their lookout, over crashes: every end is answered once."""

from __future__ import annotations

import copy
import random
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec import structs

from forge_actors.actors import lookout
from forge_actors.actors.lookout_messages import Follow, Leave
from forge_actors.domain.causes import parse_cause
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.triggers import On
from forge_actors.testing.made_changes import dispatched, ended, job
from tests.actors.lookout_kit import FakeCommits
from tests.actors.schedules_kit import FakeSource, World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.lookout_messages import Message
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.schedules_messages import Signalled
    from forge_actors.domain.schedules import Schedule

pytestmark = pytest.mark.mock_clock
ROUNDS = 60
CALLED = ("build", "test")


class Lookout(FakeSource):
    """The source that the actor is."""

    def __init__(self) -> None:
        super().__init__()
        self.mailbox: Mailbox[Message]

    def follow(self, schedule: Schedule) -> None:
        self.mailbox.tell(Follow(schedule))

    def leave(self, schedule: str) -> None:
        self.mailbox.tell(Leave(schedule))


class Both(World):
    """A world whose source is a lookout; jobs of other people come and end in it."""

    def __init__(self) -> None:
        super().__init__()
        self.source: Lookout = Lookout()
        #: The jobs of others that were to end.
        self.others: list[str] = []

    @asynccontextmanager
    async def open_both(self) -> AsyncGenerator[None, None]:
        def tell(told: Signalled) -> None:
            with suppress(MailboxClosed):
                self.mailbox.tell(told)

        context = lookout.Context(
            store=self.store,
            clock=self.clock,
            commits=FakeCommits(),
            repository=self.store.durable.repositories.get,
            watch=lambda _: None,
            tell=tell,
        )
        async with trio.open_nursery() as nursery:
            self.source.mailbox = await nursery.start(lookout.run, context)
            async with self.open():
                yield
            nursery.cancel_scope.cancel()

    def other_ends(self, name: str) -> None:
        """A job of somebody comes and ends; whether that is durable is open."""
        key, at = f"other{len(self.others)}", self.clock.now()
        self.others.append(key)
        fence = self.store._pending.repositories["repo"].fence + 1
        added = job(key)
        details = structs.replace(added.details, name=name)
        end = ended(key, fence=fence)
        self.store.save(
            [
                structs.replace(added, details=details),
                dispatched(key, fence=fence),
                structs.replace(end, event=structs.replace(end.event, at=at)),
            ]
        )

    def end_some(self, chance: random.Random, part: float) -> None:
        """Some of the jobs that the schedules have submitted end."""
        for key in list(self.requests):
            held = self.store._pending.jobs.get(key)
            there = key in self.store.durable.jobs and held is not None
            if there and held.state not in TERMINAL and chance.random() < part:
                self.end(key)

    def named(self, name: str) -> set[str]:
        traits = self.store.durable.traits
        return {
            key for key in self.others if key in traits and traits[key].name == name
        }


@pytest.mark.parametrize("seed", range(6))
async def test_each_end_is_answered_once_whatever_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    world = Both()
    policies = {"misfire": "all", "catch_up_most": 100, "overlap": "queue"}
    async with world.open_both():
        for name in CALLED:
            cause = parse_cause(f"succeeded:name:{name}")
            await world.add(name, On(cause), **policies)
        # It answers whatever ends but its own, so those of the others too.
        await world.add("any", On(parse_cause("ended:label:none")), **policies)
    for _ in range(ROUNDS // 6):
        async with world.open_both():
            for _ in range(6):
                await _something(world, chance)
            for _ in range(chance.randrange(8)):
                await trio.lowlevel.checkpoint()
            # Whoever runs still writes on to what is thrown away.
            left = copy.deepcopy(world.store.durable)
        if chance.random() < 0.7:
            world.store.durable = left
        world.store.crash()
        world.clock.shift(chance.choice((0.0, 5.0, 600.0)))
    async with world.open_both():
        await trio.sleep(70)
        while any(one.progress.pending for one in [await world.now(n) for n in CALLED]):
            world.end_some(chance, 1.0)
            await trio.sleep(70)
        for name in CALLED:
            told = await world.told(name)
            answered = Counter(one.key for one in told if one.decision == "run")
            assert answered == Counter(f"end-{key}" for key in world.named(name))
            assert len(told) == len(answered)
        assert await world.told("any") == []
    requests = Counter(world.store.durable.requests.values())
    assert set(requests.values()) == {1}


async def _something(world: Both, chance: random.Random) -> None:
    match chance.randrange(4):
        case 0 | 1:
            world.other_ends(chance.choice((*CALLED, "else")))
        case 2:
            await trio.sleep(chance.choice((0.0, 0.1, 40.0)))
        case _:
            world.end_some(chance, 0.5)
            await trio.lowlevel.checkpoint()
