"""Agent runs: the launcher of a runtime, with the output of agents read as it comes.

What an agent told is part of the receipt of its attempt. The log is read while the
program runs, so that its end is known at once and nothing of the middle of a long log
is missed; one that an earlier runtime launched is read from its beginning.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.agent_verdicts import OURS
from forge_actors.domain.agents import AgentReport
from forge_actors.domain.changes import Noted
from forge_actors.domain.events import Event
from forge_actors.edges.node import logs
from forge_actors.runtime import telemetry
from forge_actors.runtime.agents import AgentOrder
from forge_actors.runtime.budget_guard import AttemptBudget
from forge_actors.runtime.checks import CheckAttempt
from forge_actors.runtime.effect_guard import GuardedAttempt
from forge_actors.runtime.input_folders import AttemptWithInputs, input_folder
from forge_actors.runtime.orders import CheckOrder, log_base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.agents import AgentRun
    from forge_actors.domain.descriptors import Descriptors
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

    def launch(
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> RunningAttempt:
        plain = order.plain() if isinstance(order, AgentOrder) else order
        if order.inputs is not None:
            plain = structs.replace(plain, inputs=None)
        running = self._launcher.launch(plain, descriptors)
        if order.inputs is not None:
            running = AttemptWithInputs(running, order.inputs.folder)
        if order.guarded:
            running = self._guarded(running, order.job, order.attempt)
        if not isinstance(order, AgentOrder):
            if isinstance(order, CheckOrder):
                return self._check(running, order.job, order.attempt)
            return running
        spec = self._store.spec(order.job)
        output = self._output(spec, order.run)
        known = self._attempt(running, spec, output, order.job, order.attempt)
        known.begins(order.run, partial(self._note, order))
        return known

    def _note(self, order: AgentOrder, session: str) -> None:
        """Tell of the session of an attempt, now that it is known."""
        run = order.run
        how = "resumed" if run.resume is not None else "anew" if run.anew else "new"
        data: dict[str, object] = {
            "attempt": order.attempt,
            "session": session,
            "how": how,
        }
        event = Event("agent_session", self._clock.now(), order.repo, order.job, data)
        self._store.save([Noted(event)], lazy=True)

    def session(self, job: str, attempt: int) -> str | None:
        """The session of an attempt that runs, if it is known."""
        known = self._attempts.get((job, attempt))
        return None if known is None else known.session

    def adopt(self, job: str, attempt: int) -> RunningAttempt | None:
        running = self._launcher.adopt(job, attempt)
        if running is None:
            return None
        spec = self._store.spec(job)
        if spec.inputs:
            folder = input_folder(self._home, job, attempt)
            running = AttemptWithInputs(running, folder)
        if spec.authority is not None:
            running = self._guarded(running, job, attempt)
        if spec.agent is None:
            return running
        if spec.verify is not None and spec.verify.is_check(attempt):
            return self._check(running, job, attempt)
        run = self._agents.run_of(spec, job, attempt)
        if run is None:
            return self._attempt(running, spec, None, job, attempt)
        found = self._attempt(running, spec, self._output(spec, run), job, attempt)
        found.begins(run)
        return found

    def _guarded(
        self, running: RunningAttempt, job: str, attempt: int
    ) -> RunningAttempt:
        return GuardedAttempt(running, log_base(self._home, job, attempt))

    def _check(self, running: RunningAttempt, job: str, attempt: int) -> CheckAttempt:
        spec = self._store.spec(job)
        budget = AttemptBudget(self._guard, job, spec)
        return CheckAttempt(
            self._home, running, self._store, spec, (job, attempt), budget
        )

    def _output(self, spec: JobSpec, run: AgentRun) -> AgentOutput | None:
        now, used = self._clock.wall(), self._store.session_usage
        return self._agents.output(spec, run, now, used)

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
        self._run: AgentRun | None = None
        self._note: Callable[[str], None] | None = None
        #: A good end proves something also where nobody knows when the stop was.
        self.late_end_proves = False
        #: What it may use.
        self.budget: AttemptBudget | None = None
        self._spent: str | None = None
        self._asked_to_stop = False
        self._stayed = False
        self._receipt: Receipt | None = None

    def begins(self, run: AgentRun, note: Callable[[str], None] | None = None) -> None:
        """What it is the run of, and whom to tell its session once it is known."""
        self._run = run
        self._note = note
        self._tell_session()

    @property
    def session(self) -> str | None:
        return None if self._output is None else self._output.session

    def _tell_session(self) -> None:
        if self._note is not None and (session := self.session) is not None:
            note, self._note = self._note, None
            note(session)

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt or self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        return await self._running.started()

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False  # more is to be done by the time it has ended

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
            self._tell_session()
            await trio.lowlevel.checkpoint()

    def _with_report(self, receipt: Receipt) -> Receipt:
        if receipt.started_at is None and receipt.identity is None:
            return receipt  # it never began
        told = AgentReport(self._agent)
        if self._output is not None:
            told = self._output.end(receipt.stderr_tail)
        if self._run is not None:
            # That it is gone may be why it looks as if it had begun anew.
            gone = told.session_gone
            resumed = gone or self._run.resume is not None
            anew = self._run.anew and not gone
            told = structs.replace(told, resumed=resumed, anew=anew)
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
