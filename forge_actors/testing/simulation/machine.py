"""The simulated machine: job processes, and the journal of the node agents.

It is the truth of a run: which processes there are, whoever knows of them.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.testing.simulation.agents import is_check, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forge_actors.domain.agents import LimitHit
    from forge_actors.domain.launch import Receipt
    from forge_actors.testing.simulation.timers import Timer
    from forge_actors.testing.simulation.world import World

Key = tuple[str, int]

#: Seconds between a kill and the proof that nothing is left.
DEATH_SECONDS = 0.005


class Run(Struct, frozen=True):
    """What an attempt does if nobody interferes."""

    seconds: float = 0.1
    exit_code: int | None = 0
    #: Somebody else ends it with this signal, instead of its own exit.
    signal: str | None = None
    #: Seconds that it takes to act on the stop signal; beyond its grace it is killed.
    obeys: float = 0.01
    #: It cannot be started at all.
    missing: bool = False
    #: The system has room for it only when nothing else runs.
    crowded: bool = False
    #: It lives on when the agent dies, and cannot be found then until it ends.
    hides: bool = False
    #: An agent asks something at its good end; a check fails as others that are alike.
    asks: bool = False
    alike: bool = False


#: What a provider makes of an attempt that it refuses.
REFUSED = Run(seconds=0.02, exit_code=1)


class Ended(Struct, frozen=True):
    """How a process ended."""

    at: float
    exit_code: int | None
    signal: str | None
    #: Because somebody asked for it.
    asked: bool = False
    forced: bool = False


class Process:
    """The tree of one attempt, from its start until nothing is left of it."""

    def __init__(
        self,
        machine: Machine,
        key: Key,
        order: dict[str, Any],
        run: Run,
        identity: ProcessIdentity,
        now: float,
    ) -> None:
        self.key = key
        self.repo: str = order["env"]["FORGE_REPO_ID"]
        self.fence: int = order["fence"]
        self.grace: float = order["grace"]
        #: A command comes after it; here it takes no time and succeeds.
        self.follows: bool = order.get("after_job") is not None
        #: Files of it are collected, which takes no time either.
        self.leaves_files: bool = order.get("artifacts") is not None
        self.stop_signal: str = order["stop_signal"]
        #: It is asked to end, and never made to.
        self.lasts: bool = order.get("lasting", False)
        #: It is that of a check.
        self.checks = is_check(order["argv"])
        self.wall: float | None = order["wall"]
        self.cwd: str = order["cwd"]
        #: Seconds that it was there, paused or not, whatever became of the wall clock.
        self.ran = 0.0
        self.run = run
        #: What refused it.
        self.limit: LimitHit | None = None
        self.identity = identity
        self.started_at = now
        self.ended: Ended | None = None
        self.paused_seconds = 0.0
        #: Told of the end; None if nobody watches.
        self.watcher: Callable[[Process], None] | None = None
        self._machine = machine
        self._timer: Timer | None = None
        self._left = run.seconds
        self._since = self._began = trio.current_time()
        self._paused_at: float | None = None
        self._stopping: float | None = None
        machine.world.statuses.change(self.repo)
        self._go_on()

    @property
    def paused(self) -> bool:
        return self._paused_at is not None

    @property
    def stopping(self) -> bool:
        """Somebody asked it to end."""
        return self._stopping is not None

    def pause(self) -> None:
        paused = self.paused or self.lasts
        if self.ended is None and not paused and self._stopping is None:
            now = trio.current_time()
            self._paused_at = now
            self._left -= now - self._since
            self._cancel()

    def resume(self) -> None:
        if self._paused_at is not None:
            now = trio.current_time()
            self.paused_seconds += now - self._paused_at
            self._paused_at = None
            if self.ended is None:
                self._since = now
                self._go_on()

    def stop(self, grace: float) -> None:
        """Signal it; what has not ended after the grace is killed."""
        if self.ended is not None:
            return
        self.resume()
        if self.lasts:
            grace = inf
        due = trio.current_time() + min(self.run.obeys, grace) + DEATH_SECONDS
        if self._stopping is not None and self._stopping <= due:
            return
        self._stopping = due
        forced = self.run.obeys > grace
        signal = "SIGKILL" if forced else self.stop_signal
        timers = self._machine.world.timers
        timers.at(due, lambda: self._end(None, signal, asked=True, forced=forced))

    def kill(self) -> None:
        """Let it be gone now."""
        self._end(None, "SIGKILL", forced=True)

    def _go_on(self) -> None:
        self._timer = self._machine.world.timers.after(self._left, self._by_itself)

    def _by_itself(self) -> None:
        signal = self.run.signal
        self._end(None if signal else self.run.exit_code, signal)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(
        self,
        exit_code: int | None,
        signal: str | None,
        *,
        asked: bool = False,
        forced: bool = False,
    ) -> None:
        if self.ended is not None:
            return
        self._cancel()
        now = self._machine.world.clock.wall()
        self.ran = trio.current_time() - self._began
        self.ended = Ended(now, exit_code, signal, asked, forced)
        self._machine.gone(self)
        if self.watcher is not None:
            self.watcher(self)


class Machine:
    """The processes that run, and what agents wrote down."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.boot_id = "simulated-boot"
        #: Those that run.
        self.processes: dict[Key, Process] = {}
        #: Every one that ever began, the last for each attempt.
        self.history: dict[Key, Process] = {}
        self.journal: dict[Key, bytes] = {}
        #: The largest that an agent has served.
        self.epoch = 0
        self._started = 0

    def start(self, key: Key, order: dict[str, Any], run: Run) -> Process:
        self._started += 1
        identity = ProcessIdentity(self.boot_id, 1000 + self._started, self._started)
        now = self.world.clock.wall()
        job = self.world.rows.jobs.get(key[0])
        limit = None
        if job is not None and not is_check(order["argv"]):
            limit = self.world.providers.refusal(job.tokens)
        process = Process(self, key, order, REFUSED if limit else run, identity, now)
        process.limit = limit
        self.world.referee.began(process)
        self.processes[key] = self.history[key] = process
        self.world.note("begins", *key, process.fence)
        return process

    def gone(self, process: Process) -> None:
        if self.processes.get(process.key) is process:
            del self.processes[process.key]
        ended = process.ended
        assert ended is not None
        self.world.note("gone", *process.key, ended.exit_code, ended.signal)

    def reported(self, receipt: Receipt) -> Receipt:
        """The receipt with what the program told."""
        process = self.history.get((receipt.job, receipt.attempt))
        if process is None:
            return receipt
        spec = self.world.rows.specs.get(receipt.job)
        return told(process, receipt, agent=spec is not None and bool(spec.agent))

    def sweep(self, key: Key) -> tuple[ProcessIdentity, ...]:
        """Kill what is left of an attempt; what hides cannot be proven gone."""
        process = self.processes.get(key)
        if process is None:
            return ()
        if process.run.hides or process.lasts:
            return (process.identity,)
        process.kill()
        return ()

    def lose_power(self) -> None:
        """Nothing runs any more, and of what was written last a part is not there."""
        for process in list(self.processes.values()):
            process.watcher = None
            process.kill()
        chance = self.world.random
        self.journal = {k: v for k, v in self.journal.items() if chance.random() < 0.5}
        self.boot_id += "'"

    def end_stopped(self) -> None:
        """A person ends what stands still and has no agent to let it go on."""
        for process in list(self.processes.values()):
            if process.paused and process.watcher is None:
                process.kill()
