"""Workers of an EPIC that do what a script says.

    workers = ScriptedWorkers(kernel, files)
    workers.script[12] = Script(phase="failed", status=1)
    workers.script[13] = Script(ends=False)  # until workers.end(13)

They have the locks that they inherit for as long as they live, whatever becomes of the
scheduler that started them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.records import (
    SETTLED,
    EngineState,
    RunKey,
    decode,
    encode,
)
from forge_actors.domain.epic.workers import NotStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.ports import Root
    from forge_actors.domain.epic.records import Phase
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.testing.epic.locks import FakeKernel, Inherited

NO_DIGEST = f"sha256:{'0' * 64}"
MOMENT = "2026-01-01T00:00:00Z"


@dataclass
class Script:
    """What one worker does."""

    #: What it saves before it ends; None: it saves nothing.
    phase: Phase | None = "ready_for_merge"
    status: int | None = 0
    #: Whether it ends by itself, at once.
    ends: bool = True
    #: What it does when it is interrupted for the nth time: save and end, or nothing.
    obeys: int = 1
    #: Something that it started keeps the lock of the issue.
    leaks: bool = False
    #: Starting it fails, and whether something runs all the same.
    failure: Literal["no-log", "nothing", "runs"] | None = None


@dataclass
class ScriptedWorker:
    """The port `Worker`."""

    order: WorkerOrder
    script: Script
    pid: int
    controller: Inherited
    run: Inherited
    save: Callable[[Phase], None]
    interrupts: int = 0
    status: int | None = None
    start_time: int | None = 1
    over: trio.Event = field(default_factory=trio.Event)

    @property
    def log(self) -> str:
        claim = self.order.claim
        return places.told(places.log(claim.run_key.issue_number, claim.generation))

    @property
    def alive(self) -> bool:
        return not self.over.is_set()

    def interrupt(self) -> None:
        """See the port."""
        if self.alive:
            self.interrupts += 1
            if self.interrupts == self.script.obeys:
                self.end(130)

    async def wait(self) -> int | None:
        """See the port."""
        await self.over.wait()
        return self.status

    def end(self, status: int | None = None, phase: Phase | None = None) -> None:
        """Have it save a phase and end."""
        saved = phase or (self.script.phase if status is None else "implement")
        if saved is not None:
            self.save(saved)
        self.die(self.script.status if status is None else status)

    def let_go(self) -> None:
        """Have what it leaked the lock to end."""
        self.run.end()

    def die(self, status: int | None = -9) -> None:
        """Have it end as it is."""
        self.status = status
        self.controller.end()
        if not self.script.leaks:
            self.run.end()
        self.over.set()


class ScriptedWorkers:
    """The port `Workers`."""

    def __init__(self, kernel: FakeKernel, root: Root) -> None:
        self._kernel = kernel
        self._root = root
        self.script: dict[int, Script] = {}
        #: In the order in which they were started.
        self.started: list[ScriptedWorker] = []
        #: Called with each that starts.
        self.when_started: Callable[[ScriptedWorker], object] = lambda _worker: None

    def of(self, issue: int) -> ScriptedWorker:
        """The last one of an issue."""
        return [each for each in self.started if _issue(each) == issue][-1]

    @property
    def issues(self) -> list[int]:
        """Those that had a worker, one after the other."""
        return [_issue(each) for each in self.started]

    @property
    def alive(self) -> list[int]:
        return [_issue(each) for each in self.started if each.alive]

    async def start(self, order: WorkerOrder) -> ScriptedWorker:
        """See the port."""
        issue = order.claim.run_key.issue_number
        script = self.script.get(issue, Script())
        if script.failure == "no-log":
            raise NotStarted("a link is in its place", no_process=True)
        if script.failure == "nothing":
            raise NotStarted("there is no memory left")
        worker = ScriptedWorker(
            order,
            script,
            1000 + len(self.started),
            self._kernel.inherit(order.controller),
            self._kernel.inherit(order.run),
            lambda phase: save_state(self._root, order, phase),
        )
        self.started.append(worker)
        if script.failure == "runs":
            raise NotStarted("it said so too late")
        self._kernel.used.add(issue)
        self.when_started(worker)
        if script.ends:
            worker.end()
        return worker


def save_state(root: Root, order: WorkerOrder, phase: Phase) -> None:
    """Save how far an issue is, as its worker does."""
    claim, place = order.claim, order.repository.place
    issue = claim.run_key.issue_number
    at = places.state(issue)
    before = root.read(at, 1 << 20)
    run_id = f"r-{claim.generation:08d}"
    if before is not None:
        run_id = decode(EngineState, before).run_id
    state = EngineState(
        run_key=RunKey(claim.run_key.repository_id, issue),
        issue_url=f"https://{place.host}/{place.repo}/issues/{issue}",
        run_id=run_id,
        phase=phase,
        config_digest=NO_DIGEST,
        branch=f"forge/issue-{issue}",
        base_commit=None,
        tries={},
        detail="" if phase not in SETTLED else phase,
        updated_at=MOMENT,
    )
    root.write(at, encode(state))


def _issue(worker: ScriptedWorker) -> int:
    return worker.order.claim.run_key.issue_number
