"""The simulated node agent: the decisions of the real one, over simulated processes.

`Desk` is the real agent's. Here are its hands and its book. Where the plan lets the
agent crash, nothing of it runs on: the crash goes through the desk as an exception.
"""

from __future__ import annotations

from errno import ENOSPC
from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from forge_actors.edges.node.agent.desk import Desk, Unwelcome
from forge_actors.edges.node.agent.lines import line_of
from forge_actors.edges.node.agent.order import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.testing.simulation.faults import Fault
    from forge_actors.testing.simulation.link import Link
    from forge_actors.testing.simulation.machine import Key, Process
    from forge_actors.testing.simulation.timers import Timer
    from forge_actors.testing.simulation.world import World

    Message = dict[str, Any]

#: Longest grace of what is ended because the owner of a bound agent is gone.
OWNER_GRACE = 5.0
#: A start is told only if the job runs at least this long, as the real agent does.
QUICK_SECONDS = 0.03

_identity = msgspec.to_builtins


class _Died(BaseException):
    """The agent crashed in the middle of what it did."""


class Agent:
    """One life of the agent."""

    def __init__(self, world: World, number: int) -> None:
        self.dead = False
        self.links: list[Link] = []
        self.instance = f"agent-{number}"
        self._world = world
        self._machine = world.machine
        about = {
            "instance": self.instance,
            "boot_id": self._machine.boot_id,
            "namespace": 0,
        }
        self._desk: Desk[Process] = Desk(self, self, about)
        # The next agent of a home serves nobody whom the last one would have refused.
        self._desk._epoch = self._machine.epoch
        self._link: Link | None = None
        #: How each attempt is to end, and its time budget.
        self._endings: dict[Key, str] = {}
        self._budgets: dict[Key, Timer] = {}

    # -- the link --------------------------------------------------------------------

    def take(self, link: Link, message: Message) -> None:
        if link is self._link:
            self._do(lambda: self._obey(message))
        else:
            self._do(lambda: self._greet(link, message))

    def _greet(self, link: Link, hello: Message) -> None:
        try:
            news = self._desk.greet(hello)
        except (Unwelcome, Malformed) as error:
            code = error.code if isinstance(error, Unwelcome) else "hello"
            self._refuse(link, code, str(error))
            return
        self._machine.epoch = hello["epoch"]
        if self._link is not None:
            self._refuse(self._link, "replaced", "a later connection took its place")
        self._link = link
        for line in news:
            self.say(line)

    def _refuse(self, link: Link, code: str, reason: str) -> None:
        link.report(line_of({"event": "refused", "code": code, "reason": reason}))
        link.hang_up()

    def _obey(self, message: Message) -> None:
        try:
            self._desk.obey(message)
        except (Malformed, KeyError, TypeError, ValueError) as error:
            self._desk.tell_problem(message.get("job"), str(error))

    def disconnected(self, link: Link) -> None:
        if link is self._link:
            self._link = None
            self._do(self._desk.service_gone)

    def _do(self, what: Callable[[], object]) -> None:
        """Something that may be the last thing the agent does."""
        try:
            what()
        except _Died:
            return
        if self._desk.leaving and not self._desk.jobs and not self.dead:
            self.die()

    def die(self) -> None:
        """End at once; what it ran is nobody's now."""
        if self.dead:
            return
        self.dead = True
        for timer in self._budgets.values():
            timer.cancel()
        for process in self._desk.jobs.values():
            process.watcher = None
        for link in self.links:
            link.hang_up()
        self._world.agent_ended(self)

    def _before(self, point: str) -> Fault | None:
        fault = self._world.faults.before(point)
        if self.dead:
            raise _Died
        return fault

    def _after(self, point: str) -> None:
        self._world.faults.after(point)
        if self.dead:
            raise _Died

    # -- the hands of the desk -------------------------------------------------------

    def begin(self, key: Key, message: Message) -> Process:
        run = self._world.run_of(message["argv"][-1], key[1])
        if run.missing:
            raise SpawnFailed("no such program")
        if run.crowded and self._desk.jobs:
            raise NoRoom("too many open files")
        self._before("start process")
        process = self._machine.start(key, message, run)
        process.watcher = self._ended
        self._after("start process")
        budgets = {"wall": message["wall"], "idle": message["idle"]}
        given = {name: value for name, value in budgets.items() if value is not None}
        if given and not process.lasts:
            ending = min(given, key=lambda name: given[name])
            self._budgets[key] = self._world.timers.after(
                given[ending],
                lambda: self._do(lambda: self.stop(process, None, ending)),
            )
        self.repeat_start(process)
        return process

    def repeat_start(self, job: Process) -> None:
        self._world.timers.after(QUICK_SECONDS, lambda: self._tell_start(job))

    def _tell_start(self, process: Process) -> None:
        if not self.dead and process.ended is None:
            self._do(lambda: self._desk.started(process.key))

    def stop(self, job: Process, grace: float | None, ending: str) -> None:
        if job.ended is None:
            self._endings.setdefault(job.key, ending)
            job.stop(job.grace if grace is None else grace)

    def end(self, job: Process) -> None:
        self.stop(job, min(job.grace, OWNER_GRACE), "owner")

    def suspend(self, job: Process, *, pause: bool) -> None:
        (job.pause if pause else job.resume)()

    def watch(self, job: Process, known: int) -> None:
        """Simulated jobs write nothing: the end answers."""

    def identity(self, job: Process) -> Message:
        found: Message = _identity(job.identity)
        return found

    def say(self, line: bytes) -> None:
        if self._link is not None and not self.dead:
            self._link.report(line)
            if self.dead:
                raise _Died

    def now(self) -> float:
        return self._world.clock.wall()

    # -- the book of the desk --------------------------------------------------------

    def append(self, key: Key, line: bytes) -> None:
        point = _point_of(line)
        if self._before(point) is not None:
            self._world.note("fail", point)
            raise OSError(ENOSPC, "No space left on device")
        self._machine.journal[key] = line
        self._after(point)

    def forget(self, key: Key) -> None:
        self._machine.journal.pop(key, None)

    def sync(self) -> None:
        """No power is cut in a simulation of crashes."""

    # -- ends ------------------------------------------------------------------------

    def _ended(self, process: Process) -> None:
        if not self.dead:
            self._do(lambda: self._finish(process))

    def _finish(self, process: Process) -> None:
        key, ended = process.key, process.ended
        assert ended is not None
        timer = self._budgets.pop(key, None)
        if timer is not None:
            timer.cancel()
        asked = self._endings.pop(key, "stop")
        receipt: Message = {
            "job": key[0],
            "attempt": key[1],
            "fence": process.fence,
            "ending": asked if ended.asked else "exit",
            "ended_at": ended.at,
            "started_at": process.started_at,
            "identity": self.identity(process),
        }
        if ended.signal is not None:
            receipt["signal"] = ended.signal
        else:
            receipt["exit_code"] = ended.exit_code
        if ended.forced:
            receipt["forced"] = True
        if process.follows:
            receipt["after_job"] = {"exit_code": 0}
        if process.leaves_files:
            receipt["artifacts"] = {}
        if process.paused_seconds:
            receipt["paused_seconds"] = process.paused_seconds
        self._desk.ended(key, receipt)


def _point_of(line: bytes) -> str:
    """`{"record":"starting",...` is a record of that name, all else a receipt."""
    if line.startswith(b'{"record":"'):
        name = line[11 : line.index(b'"', 11)]
        return f"journal {name.decode()}"
    return "journal receipt"
