"""Jobs without processes: what each does is an async function of the test.

    async def script(job: ScriptedJob) -> int:
        job.print("building")
        await trio.sleep(600)  # no time at all, on a mock clock
        return 1 if job.argv[0] == "make" else 0

A stop, and the end of a time budget, cancels the function, as a signal ends a process;
a pause measures time, and stops nothing. An error of it is a fault of the test: it ends
the launcher, and is raised there.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from forge_actors.testing.launcher import FakeLauncher, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
    from typing import NoReturn

    from forge_actors.domain.agents import AgentEvent
    from forge_actors.domain.launch import Ending
    from forge_actors.domain.ownership import Owner
    from forge_actors.testing.launcher import FakeAttempt

    #: What a job does, and how it ends: an exit status, or everything about it.
    Script = Callable[["ScriptedJob"], Awaitable[int | Outcome | None]]


class ScriptedJob:
    """One attempt of a job, for the script that plays it."""

    def __init__(self, attempt: FakeAttempt, scope: trio.CancelScope) -> None:
        self._attempt = attempt
        self._scope = scope
        wall = attempt.order.wall
        self._ends_at = math.inf if wall is None else trio.current_time() + wall
        self._begin_idling()
        order = attempt.order
        self.id = order.job
        self.attempt = order.attempt
        self.argv = order.argv
        self.cwd = order.cwd
        #: With the secrets, as a process would have it.
        self.env = {**order.env, **order.secrets}

    @property
    def prompt(self) -> str:
        """What an agent is asked, or what else its input is."""
        stdin = self._attempt.order.stdin
        return "" if stdin is None else Path(stdin).read_text()

    def print(self, text: str, stream: Literal["stdout", "stderr"] = "stdout") -> None:
        """Write a line of output."""
        data = f"{text}\n".encode()
        log = Path(f"{self._attempt.order.log}.{stream}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(data)
        self._attempt.output_bytes += len(data)
        self._attempt.change()
        self._begin_idling()

    def _begin_idling(self) -> None:
        idle = self._attempt.order.idle
        idles = math.inf if idle is None else trio.current_time() + idle
        self._scope.deadline = min(self._ends_at, idles)

    @property
    def spent(self) -> Ending:
        """Which of its time budgets it has come to the end of."""
        return "wall" if trio.current_time() >= self._ends_at else "idle"

    def tell(self, event: AgentEvent) -> None:
        """Print what `testing.ScriptedAgent` reads as an event of an agent."""
        self.print(msgspec.json.encode([type(event).__name__, event]).decode())


async def succeed(job: ScriptedJob) -> None:
    """The script of a job that succeeds at once."""


class ScriptedLauncher(FakeLauncher):
    """The launcher of an in-memory runtime; `orders` and `stops` tell what it did."""

    #: Of which nobody ever hears.
    agent_pid = 0
    heeds_room = True

    def __init__(
        self,
        script: Script = succeed,
        *,
        missing: Collection[str] = (),
        owner: Owner | None = None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(owner=owner, now=now)
        self.script = script
        #: Programs that cannot be started.
        self.missing = missing
        self._nursery: trio.Nursery | None = None
        self._playing: dict[tuple[str, int], trio.CancelScope] = {}

    @property
    def held_back(self) -> list[str]:
        """Nothing ever is."""
        return []

    async def wait_down(self) -> NoReturn:
        """It never gives up."""
        await trio.sleep_forever()
        raise AssertionError("for ever is over")

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[ScriptedLauncher, None]:
        async with super().open(), trio.open_nursery() as self._nursery:
            try:
                yield self
            finally:
                self._nursery.cancel_scope.cancel()

    def _begin(self, attempt: FakeAttempt) -> None:
        super()._begin(attempt)
        order = attempt.order
        problem = order.problem
        if problem is None and order.argv[0] in self.missing:
            problem = f"there is no program {order.argv[0]}"
        if problem is not None:
            self._end(attempt, "spawn", Outcome(spawn_error=problem))
        else:
            assert self._nursery is not None, "it is open"
            scope = self._playing[attempt.key] = trio.CancelScope()
            self._nursery.start_soon(self._play, attempt, scope)

    async def _play(self, attempt: FakeAttempt, scope: trio.CancelScope) -> None:
        job = ScriptedJob(attempt, scope)
        try:
            with scope:
                told = await self.script(job)
                outcome = told if isinstance(told, Outcome) else Outcome(exit_code=told)
                if told is None:
                    outcome = Outcome()
                if attempt.receipt is None:
                    self._end(attempt, "exit", outcome)
            if attempt.receipt is None and scope.cancelled_caught:
                signal = attempt.order.stop_signal
                self._end(attempt, job.spent, Outcome(exit_code=None, signal=signal))
        finally:
            del self._playing[attempt.key]

    def _end(self, attempt: FakeAttempt, ending: Ending, outcome: Outcome) -> None:
        super()._end(attempt, ending, outcome)
        scope = self._playing.get(attempt.key)
        if scope is not None and ending != "exit":
            scope.cancel()
