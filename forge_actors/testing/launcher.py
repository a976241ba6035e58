"""A launcher without processes, for tests that decide themselves what jobs do.

    async with FakeLauncher().open() as launcher:
        attempt = launcher.launch(order)
        launcher.finish(order.job, exit_code=3)
        receipt = await attempt.exited()

It keeps the contracts of `launcher_contract.py` and, on a `FakeNode` that outlives it,
of `adoption_contract.py`, which the real launcher keeps too.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import trio
from msgspec import Struct

from forge_actors.domain.agents import AgentReport
from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import (
    AfterJob,
    Collected,
    Ending,
    LaunchOrder,
    ProcessIdentity,
    Receipt,
)
from forge_actors.testing.fake_attempt import FakeAttempt as FakeAttempt
from forge_actors.testing.lost_attempt import LostAttempt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.ownership import Owner

Key = tuple[str, int]

#: Stop signals that one gets that lasts.
MOST_STOPS = 2


class Outcome(Struct, frozen=True, kw_only=True):
    """What becomes of an attempt. With `spawn_error` it never begins."""

    exit_code: int | None = 0
    signal: str | None = None
    stdout_bytes: int = 0
    stderr_tail: str = ""
    #: What it told, if it is an agent.
    agent: AgentReport | None = None
    spawn_error: str | None = None


class StopRequest(NamedTuple):
    job: str
    attempt: int
    #: None: the order's own.
    grace: float | None
    ending: Ending


class FakeNode:
    """What outlives a launcher: the attempts, and how late an owner it has served."""

    def __init__(self) -> None:
        self.attempts: dict[Key, FakeAttempt] = {}
        self.epoch = -1
        self.served: FakeLauncher | None = None


class FakeLauncher:
    """Starts nothing and remembers everything.

    Attempts run until `finish`, a stop, or the end of the launcher. `paused` names
    those that stand still; pauses are measured by the trio clock. With `auto` each
    order is shown to it first: an `Outcome` ends the attempt at once, None lets it run.
    With `obeys_stop=False` a stop is only noted in `stops`. One that lasts is neither
    lost nor ended but by itself. `descriptors` are the numbers that orders came with,
    which are closed at once. Leaving a `durable` one
    ends nothing: it may be opened again, or another one on the same `node`, for an
    `owner` who is no earlier. `now` gives the times of receipts.
    """

    def __init__(
        self,
        *,
        auto: Callable[[LaunchOrder], Outcome | None] = lambda _: None,
        obeys_stop: bool = True,
        durable: bool = False,
        node: FakeNode | None = None,
        owner: Owner | None = None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.orders: list[LaunchOrder] = []
        self.stops: list[StopRequest] = []
        self.forgotten: list[Key] = []
        self._begun = 0
        self.descriptors: dict[Key, tuple[int, ...]] = {}
        self._auto = auto
        self._obeys_stop = obeys_stop
        self._durable = durable
        self._now = now
        self.owner = owner
        self._node = node or FakeNode()
        self._attempts = self._node.attempts
        self._lost: dict[Key, LostAttempt] = {}
        #: Times at which somebody asked for a sign of life, which is given at once.
        self.pings: list[float] = []
        self._silent_since: float | None = None
        #: What `still_alive` cannot prove gone; all else it says is gone.
        self.undead: set[ProcessIdentity] = set()
        #: Why nothing can be started; None while it can.
        self._down: str | None = None
        #: Leaving is to end what runs.
        self._ends = not durable

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[FakeLauncher, None]:
        """Leaving a durable one ends nothing, unless it is to end all.

        Raises:
            LauncherDown: the node has served a later owner.
        """
        self._take_over()
        if self._durable:
            self._down = None
        self._ends = not self._durable
        try:
            yield self
        finally:
            self._down = self._down or "the launcher is closed"
            if self._ends:
                self._end_all("owner")

    def _take_over(self) -> None:
        node = self._node
        epoch = 0 if self.owner is None else self.owner.epoch
        if epoch < node.epoch:
            raise LauncherDown("a runtime that came later owns this home")
        node.epoch = epoch
        if node.served is not None and node.served is not self:
            node.served._down = "another runtime has taken over"
        node.served = self
        for attempt in self._attempts.values():
            attempt.launcher = self

    @property
    def running(self) -> list[FakeAttempt]:
        """In the order of their launch, paused ones included."""
        return [each for each in self._unended if each.identity is not None]

    @property
    def behind(self) -> list[FakeAttempt]:
        """Those for which there is no room, in the order in which they begin."""
        return [each for each in self._unended if each.identity is None]

    @property
    def _unended(self) -> list[FakeAttempt]:
        return [each for each in self._attempts.values() if each.receipt is None]

    @property
    def paused(self) -> list[FakeAttempt]:
        return [each for each in self.running if each.paused_since is not None]

    # The port.

    def launch(
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> FakeAttempt:
        numbers: tuple[int, ...] = ()
        if descriptors is not None:
            numbers = descriptors.numbers
            descriptors.close()
        known = self._attempts.get((order.job, order.attempt))
        if known is not None:
            return known
        if self._down is not None:
            raise LauncherDown(self._down)
        self.orders.append(order)
        attempt = FakeAttempt(self, order, None, self._now())
        waits = order.room is not None and bool(self.behind)
        self._attempts[attempt.key] = attempt
        if numbers:
            self.descriptors[attempt.key] = numbers
        if not waits and self._has_room(attempt):
            self._begin(attempt)
        return attempt

    def _has_room(self, attempt: FakeAttempt) -> bool:
        room = attempt.order.room
        return room is None or len(self.running) < room

    def _begin(self, attempt: FakeAttempt) -> None:
        self._begun += 1
        number = self._begun
        attempt.began_at = self._now()
        attempt.identity = ProcessIdentity("fake-boot", 1000 + number, number)
        attempt.change()
        outcome = self._auto(attempt.order)
        if outcome is not None:
            self._end(attempt, "exit", outcome)

    @property
    def heard_at(self) -> float:
        return trio.current_time() if self._silent_since is None else self._silent_since

    def ping(self) -> None:
        self.pings.append(trio.current_time())

    async def reconcile(
        self, reserved: Mapping[Key, ProcessIdentity | None], *, same_boot: bool
    ) -> None:
        """See `adoption_contract.DurableLauncher`."""
        await trio.lowlevel.checkpoint()
        for attempt in [self._attempts[k] for k in self._attempts.keys() - reserved]:
            attempt.stop()
            self.forget(*attempt.key)
        if not same_boot:
            for key in reserved.keys() - self._attempts.keys():
                self._lost[key] = LostAttempt(*key, self._now())

    def end_all(self) -> None:
        self._ends = True

    def adopt(self, job: str, attempt: int) -> FakeAttempt | LostAttempt | None:
        key = (job, attempt)
        return self._attempts.get(key) or self._lost.get(key)

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        return tuple(each for each in identities if each in self.undead)

    def forget(self, job: str, attempt: int) -> None:
        self._lost.pop((job, attempt), None)
        known = self._attempts.get((job, attempt))
        if known is not None and known.receipt is not None:
            del self._attempts[known.key]
            self.forgotten.append(known.key)

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        await trio.lowlevel.checkpoint()
        watched = self._attempts.get((job, attempt))
        while (
            watched is not None
            and watched.receipt is None
            and watched.output_bytes <= known
        ):
            await watched.changed.wait()

    # What a test does to it.

    def finish(
        self,
        job: str,
        *,
        exit_code: int | None = 0,
        signal: str | None = None,
        ending: Ending = "exit",
        stderr_tail: str = "",
        agent: AgentReport | None = None,
    ) -> None:
        """End the running attempt of a job."""
        if signal is not None:
            exit_code = None
        outcome = Outcome(
            exit_code=exit_code, signal=signal, stderr_tail=stderr_tail, agent=agent
        )
        self._end(self._running(job), ending, outcome)

    def emit(self, job: str, count: int) -> None:
        """Let the running attempt of a job write `count` bytes of output."""
        attempt = self._running(job)
        attempt.output_bytes += count
        attempt.change()

    def fall_silent(self) -> None:
        """Give no sign of life any more."""
        self._silent_since = trio.current_time()

    def speak(self) -> None:
        self._silent_since = None

    def go_down(self, reason: str = "the node agent ended") -> None:
        """Lose every running attempt and refuse new ones."""
        self._down = reason
        self._end_all("lost")

    def come_back(self) -> None:
        self._down = None

    def asked_to_stop(
        self, attempt: FakeAttempt, grace: float | None, ending: Ending
    ) -> None:
        if ending == "withdrawn" and attempt.identity is not None:
            return
        attempt.stops += 1
        deaf = attempt.order.lasting and attempt.stops > MOST_STOPS
        if attempt.receipt is not None or deaf:
            return
        self.stops.append(StopRequest(*attempt.key, grace, ending))
        if self._obeys_stop:
            signal = attempt.order.stop_signal
            self._end(attempt, ending, Outcome(exit_code=None, signal=signal))

    def _running(self, job: str) -> FakeAttempt:
        for attempt in self.running:
            if attempt.order.job == job:
                return attempt
        raise LookupError(f"no attempt of job {job} is running")

    def _end_all(self, ending: Ending) -> None:
        for attempt in (*self.behind, *self.running):
            if attempt.order.lasting:
                continue
            signal = None if ending == "lost" else attempt.order.stop_signal
            self._end(attempt, ending, Outcome(exit_code=None, signal=signal))

    def _end(self, attempt: FakeAttempt, ending: Ending, outcome: Outcome) -> None:
        order = attempt.order
        if outcome.spawn_error is not None:
            ending = "spawn"
            attempt.identity = None
        began = attempt.identity is not None
        attempt.resume()
        attempt.receipt = Receipt(
            job=order.job,
            attempt=order.attempt,
            fence=order.fence,
            ending=ending,
            ended_at=self._now(),
            started_at=attempt.began_at if began else None,
            identity=attempt.identity,
            exit_code=outcome.exit_code if began else None,
            signal=outcome.signal if began else None,
            paused_seconds=attempt.paused_seconds,
            after_job=AfterJob(exit_code=0) if began and order.after_job else None,
            artifacts=Collected() if began and order.artifacts else None,
            error=outcome.spawn_error,
            stdout_bytes=attempt.output_bytes + outcome.stdout_bytes,
            stderr_bytes=len(outcome.stderr_tail.encode()),
            stderr_tail=outcome.stderr_tail,
            agent=outcome.agent,
            instance="" if attempt.owner is None else attempt.owner.instance,
            release="" if attempt.owner is None else attempt.owner.release,
        )
        attempt.change()
        for first in self.behind:
            if self._has_room(first):
                self._begin(first)
            break
