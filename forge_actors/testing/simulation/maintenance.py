"""Days of maintenance in seconds: the real actor over clean-ups that go wrong.

One seed is one run. Some classes of the simulated program hang, crash it or are slow,
always the same ones; it may also crash before it has done anything. Jobs end, people
ask for runs at any time, also while one goes on, and the service is stopped or killed
and started again. What is durable outlives it.

    report = simulate(seed, hours=48)
    assert report.violations == []
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import maintenance
from forge_actors.actors.maintenance_context import Context
from forge_actors.actors.maintenance_messages import Clean, Message, Stop
from forge_actors.domain.cleaning import CLASSES, CleanClass, CleanRequest
from forge_actors.domain.errors import ActorStopped, CleanUpFailed, MailboxClosed
from forge_actors.domain.maintenance import CleanLimits, Policy
from forge_actors.testing.clean_up import FakeCleanUp
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from forge_actors.testing.simulation.run import seeded
from forge_actors.testing.store import MemoryStore, Rows

if TYPE_CHECKING:
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.maintenance import Books, CleanOrder, CleanResult

HOUR = 3600.0
PERIOD = 60.0
#: Seconds within which each class has to be visited again, whatever the others do. Runs
#: that fail are up to 64 periods apart, and one may end early.
LONGEST_GAP = 6 * HOUR


class Report:
    """What happened, and what should not have."""

    def __init__(self) -> None:
        self.runs = self.crashes = self.hangs = self.restarts = self.asked = 0
        self.visits: dict[CleanClass, list[float]] = {name: [] for name in CLASSES}
        self.violations: list[str] = []


class _Program(FakeCleanUp):
    """The simulated program: what its classes do is drawn with the seed."""

    def __init__(self, world: _World) -> None:
        rows = world.rows
        super().__init__(
            lambda: {name: each.visited_at for name, each in rows.visits.items()}
        )
        self._world = world

    async def run(self, order: CleanOrder, books: Books) -> CleanResult:
        world = self._world
        world.judge_begin(order)
        world.running += 1
        try:
            if world.chance.random() < 0.1:
                world.report.crashes += 1
                raise CleanUpFailed("the clean-up ended too early with status 9")
            watched = _Watched(world, books)
            return await super().run(structs.replace(order, rules=world.rules), watched)
        finally:
            world.running -= 1


class _Watched:
    """The books, seen by whoever judges."""

    def __init__(self, world: _World, books: Books) -> None:
        self._world = world
        self._books = books
        self.visited = books.visited
        self.forget_jobs = books.forget_jobs
        self.forget_events = books.forget_events
        self.record = books.record
        self.upkeep = books.upkeep

    async def visiting(self, clean_class: CleanClass) -> str | None:
        cursor = await self._books.visiting(clean_class)
        self._world.judge_visit(clean_class)
        return cursor


class _World:
    """What outlives the service."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - it is to be repeatable
        self.rows = Rows()
        self.clock = FakeClock()
        self.report = Report()
        self.running = 0
        self.jobs = 0
        #: When the last run began that nobody asked for.
        self._began_at: float | None = None
        self.asks = 0
        wrong = self.chance.sample(CLASSES, 4)
        how = ("hang", "crash", f"take:{self.chance.uniform(20, 50):.1f}", "fail:no")
        behave = dict(zip(wrong, how, strict=True))
        for name in CLASSES:
            behave.setdefault(name, f"take:{self.chance.uniform(0, 3):.1f}")
        self.rules = {"behave": behave}
        self.policy = Policy(period=PERIOD, limits=CleanLimits(seconds=40.0))
        self.mailbox: Mailbox[Message] | None = None

    # -- the judge -------------------------------------------------------------------

    def fail(self, what: str) -> None:
        self.report.violations.append(f"at {trio.current_time():.0f}: {what}")

    def judge_begin(self, order: CleanOrder) -> None:
        self.report.runs += 1
        if self.running:
            self.fail("two runs at once")
        now = self.clock.wall()
        saved = self.rows.run
        if order.request.dry_run:
            return
        if saved is None or saved.ended_at is not None or saved.began_at > now:
            self.fail("a run begins, and that is not durable")
        if self.asks:
            self._began_at = None
            return
        if self._began_at is not None and now - self._began_at < PERIOD - 0.001:
            self.fail(f"two runs within {now - self._began_at:.1f} s")
        self._began_at = now

    def judge_visit(self, name: CleanClass) -> None:
        now = self.clock.wall()
        visit = self.rows.visits.get(name)
        if visit is None or visit.visited_at < now - 0.001:
            self.fail(f"a visit of {name} begins, and that is not durable")
        self.report.visits[name].append(trio.current_time())

    def judge_gaps(self, seconds: float) -> None:
        for name, visits in self.report.visits.items():
            moments = [0.0, *visits, seconds]
            gap = max(later - before for before, later in pairwise(moments))
            if gap > LONGEST_GAP:
                self.fail(f"{name} is not visited for {gap / HOUR:.1f} h")

    # -- what happens ----------------------------------------------------------------

    async def live(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            async with MemoryStore(durable=self.rows).open() as store:
                await store.save([repository()]).wait()
            while True:
                await self._serve()
                self.report.restarts += 1
        self.judge_gaps(seconds)

    async def _serve(self) -> None:
        """One life of the service, which is stopped or killed."""
        async with MemoryStore(durable=self.rows).open() as store:
            context = Context(
                home="/home",
                store=store,
                clock=self.clock,
                clean_up=_Program(self),
                policy=lambda: self.policy,
                claim=None,
                is_busy=lambda: False,
            )
            async with trio.open_nursery() as nursery:
                self.mailbox = await nursery.start(maintenance.run, context)
                nursery.start_soon(self._end_jobs, store)
                nursery.start_soon(self._ask)
                await trio.sleep(self.chance.uniform(30.0, 4 * HOUR))
                if self.chance.random() < 0.5:
                    self.mailbox.tell(Stop())
                    await trio.sleep(5.0)
                nursery.cancel_scope.cancel()

    async def _end_jobs(self, store: MemoryStore) -> None:
        while True:
            await trio.sleep(self.chance.expovariate(1 / 300.0))
            self.jobs += 1
            name, fence = f"job{self.jobs}", self.jobs
            await store.save([job(name)]).wait()
            await store.save([dispatched(name, fence=fence)]).wait()
            end = structs.replace(ended(name, fence=fence), at=self.clock.now())
            await store.save([end]).wait()

    async def _ask(self) -> None:
        while True:
            await trio.sleep(self.chance.expovariate(1 / HOUR))
            self.report.asked += 1
            dry_run = self.chance.random() < 0.3
            request = CleanRequest("/home", self.clock.wall(), dry_run=dry_run)
            self.asks += 1
            try:
                assert self.mailbox is not None
                result: CleanResult = await self.mailbox.ask(
                    lambda reply, request=request: Clean(request, reply)  # type: ignore[misc]
                )
                self.report.hangs += "took too long" in (result.error or "")
            except (ActorStopped, MailboxClosed):
                return
            finally:
                self.asks -= 1


def simulate(seed: int, *, hours: float = 48.0) -> Report:
    """So many hours of the home with this seed."""
    world = _World(seed)

    async def main() -> None:
        await world.live(hours * HOUR)

    with seeded(seed):
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return world.report
