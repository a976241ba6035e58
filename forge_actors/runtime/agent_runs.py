"""Agent runs: the launcher of a runtime, with the output of agents read as it comes.

What an agent told is part of the receipt of its attempt. The log is read while the
program runs, so that its end is known at once and nothing of the middle of a long log
is missed; one that an earlier runtime launched is read from its beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.agent_verdicts import OURS
from forge_actors.domain.agents import AgentReport
from forge_actors.edges.node import logs
from forge_actors.runtime import telemetry
from forge_actors.runtime.agents import AgentOrder
from forge_actors.runtime.budget_guard import AttemptBudget
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forge_actors.domain.agents import AgentRun
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity, Receipt
    from forge_actors.domain.ports import Clock, Launcher, RunningAttempt, Store
    from forge_actors.edges.agents.output import AgentOutput
    from forge_actors.runtime.agents import Agents
    from forge_actors.runtime.budget_guard import BudgetGuard

#: Bytes that are read in one turn of the loop: some milliseconds.
PIECE = 256 * 1024
#: Seconds between two looks at the output of one agent, however much it prints.
LOOK_SECONDS = 0.25
#: Seconds that an agent may stay after its final event before it is ended.
STAY_SECONDS = 30.0
#: Why it was ended then.
STAYED = f"it was still there {STAY_SECONDS:.0f} s after its final event, and was ended"


class AgentLauncher:
    """Implements `domain.ports.Launcher` on another one."""

    def __init__(
        self,
        home: Path,
        launcher: Launcher,
        agents: Agents,
        store: Store,
        clock: Clock,
        guard: BudgetGuard,
    ) -> None:
        self._home = str(home)
        self._launcher = launcher
        self._agents = agents
        self._store = store
        self._clock = clock
        self._guard = guard
        #: Those of agents, until they are forgotten.
        self._attempts: dict[tuple[str, int], AgentAttempt] = {}

    @property
    def heard_at(self) -> float:
        return self._launcher.heard_at

    def ping(self) -> None:
        self._launcher.ping()

    def launch(self, order: LaunchOrder) -> RunningAttempt:
        if not isinstance(order, AgentOrder):
            return self._launcher.launch(order)
        running = self._launcher.launch(order.plain())
        spec = self._store.spec(order.job)
        output = self._output(spec, order.run, order.job, order.attempt)
        return self._attempt(running, spec, output, order.job, order.attempt)

    def adopt(self, job: str, attempt: int) -> RunningAttempt | None:
        running = self._launcher.adopt(job, attempt)
        if running is None:
            return None
        spec = self._store.spec(job)
        if spec.agent is None:
            return running
        output = self._output(spec, None, job, attempt)
        return self._attempt(running, spec, output, job, attempt)

    def _output(
        self, spec: JobSpec, run: AgentRun | None, job: str, attempt: int
    ) -> AgentOutput | None:
        now, used = self._clock.wall(), self._store.session_usage
        return self._agents.output(spec, run, job, attempt, now, used)

    def _attempt(
        self,
        running: RunningAttempt,
        spec: JobSpec,
        output: AgentOutput | None,
        job: str,
        attempt: int,
    ) -> AgentAttempt:
        known = self._attempts.get((job, attempt))
        if known is None:
            assert spec.agent is not None, "it is the job of one"
            base = log_base(self._home, job, attempt)
            proves = output is not None and not self._agents.ends_after_stop(spec)
            known = AgentAttempt(
                (job, attempt), self._launcher, running, spec.agent.name, output, base
            )
            known.late_end_proves = proves
            known.budget = AttemptBudget(self._guard, job, spec)
            self._attempts[job, attempt] = known
        return known

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        return self._launcher.still_alive(identities)

    def forget(self, job: str, attempt: int) -> None:
        if self._attempts.pop((job, attempt), None) is not None:
            telemetry.remove(log_base(self._home, job, attempt))
        self._launcher.forget(job, attempt)

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        await self._launcher.wait_output(job, attempt, known)


class AgentAttempt:
    """One attempt of an agent; implements `domain.ports.RunningAttempt`."""

    def __init__(
        self,
        key: tuple[str, int],
        launcher: Launcher,
        running: RunningAttempt,
        agent: str,
        output: AgentOutput | None,
        log: str,
    ) -> None:
        self._key = key
        self._launcher = launcher
        self._running = running
        self._agent = agent
        self._output = output
        self._log = log
        #: A good end proves something also where nobody knows when the stop was.
        self.late_end_proves = False
        #: What it may use.
        self.budget: AttemptBudget | None = None
        self._spent: str | None = None
        self._asked_to_stop = False
        self._stayed = False
        self._receipt: Receipt | None = None

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt or self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        return await self._running.started()

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self._asked_to_stop = True
        if self._output is not None:
            self._output.stopped(logs.size(self._log, "stdout"))
        self._running.stop(grace=grace, ending=ending)

    def pause(self) -> None:
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()

    async def exited(self) -> Receipt:
        if self._receipt is None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow)
                receipt = await self._running.exited()
                nursery.cancel_scope.cancel()
            await self._read()
            if self._output is not None:
                await telemetry.read(self._log, self._output)
            self._receipt = self._with_report(receipt)
        return self._receipt

    async def _follow(self) -> None:
        """Read what it prints, until it has ended or stays too long after its end."""
        known = -1
        while True:
            # Before it is read: what comes in between must not be waited for.
            size = sum(logs.size(self._log, each) for each in ("stdout", "stderr"))
            if size == known:
                return  # nothing came, so it is over
            known = size
            await self._read()
            if self._output is not None and self._output.told_end:
                break
            self._heed_budget()
            await self._launcher.wait_output(*self._key, known)
            await trio.sleep(LOOK_SECONDS)
        await trio.sleep(STAY_SECONDS)
        self._stayed = True
        self.stop()

    def _heed_budget(self) -> None:
        """End it politely once a budget is spent, where that is asked for."""
        if self._output is None or self.budget is None or self._spent is not None:
            return
        self._spent = self.budget.spent_while_running(self._output.usage)
        if self._spent is not None:
            self.stop()

    async def _read(self) -> None:
        """Take in what there is of its output by now."""
        output = self._output
        while output is not None:
            try:
                chunk = logs.read(self._log, "stdout", output.offset, PIECE)
            except OSError:
                return  # what it told is not known then
            if not chunk.data and not chunk.missing:
                return
            output.feed(chunk.data, chunk.missing)
            await trio.lowlevel.checkpoint()

    def _with_report(self, receipt: Receipt) -> Receipt:
        if receipt.started_at is None and receipt.identity is None:
            return receipt  # it never began
        told = AgentReport(self._agent)
        if self._output is not None:
            told = self._output.end(receipt.stderr_tail)
        ours = receipt.ending in OURS
        if ours and not (self._asked_to_stop or self.late_end_proves):
            told = structs.replace(told, in_time=False)
        stopped, spent = self._spent is not None, self._spent
        if spent is None and self.budget is not None:
            spent = self.budget.spent(told.usage)
        told = structs.replace(told, spent=spent, stopped_for_budget=stopped)
        note = receipt.error
        if self._stayed and note is None:
            note = STAYED
        return structs.replace(receipt, agent=told, error=note)
