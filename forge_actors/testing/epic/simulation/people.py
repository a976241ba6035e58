"""Those who do things to a run: people, other programs, the machine."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal

from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import Busy
from forge_actors.domain.epic.graph import CLOSED, OPEN, BlockerNode
from forge_actors.domain.epic.records import (
    EngineState,
    RunKey,
    StopRequest,
    checked,
    decode,
)
from forge_actors.domain.github.places import IssueAt, Place
from forge_actors.testing.epic.graph import HOME
from forge_actors.testing.epic.locks import FakeLocks
from forge_actors.testing.epic.records import OTHER_EPIC, made_binding
from forge_actors.testing.epic.simulation.book import is_ready
from forge_actors.testing.epic.simulation.plan import EPIC, OTHER
from forge_actors.testing.epic.workers import NO_DIGEST

if TYPE_CHECKING:
    from forge_actors.domain.epic.graph import Snapshot
    from forge_actors.testing.epic.simulation.plan import Child, Operation
    from forge_actors.testing.epic.simulation.workers import SimulatedWorker
    from forge_actors.testing.epic.simulation.world import World

JUNK = (*places.ISSUES, "007")
STOP = places.stop(EPIC)
#: What may have nothing to act on by then.
VERBS = (
    *("close", "reopen", "block", "unblock", "give away", "take back", "recreate"),
    *("remove", "title"),
)
ELSEWHERE = Place("github.com", "octo", "elsewhere")


class People:
    """What they do, one thing at a moment."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._graph = world.graph
        self._ids = 50_000
        self._breaks_record = False
        self._pid = 90_000

    def begin(self) -> None:
        """The graph and the disk as they are before anything runs."""
        for child in self._world.plan.children:
            self._add(child)

    def do(self, operation: Operation) -> None:
        """Do it, if it still makes sense."""
        world = self._world
        if world.calm:
            return
        world.tell(f"people: {operation}")
        issue, more = operation.issue, operation.more
        there = issue in self._graph.issues
        match operation.verb:
            case "close" if there:
                self._graph.finish(issue, more)
            case "reopen" if there:
                if self._graph.issues[issue].state == CLOSED:
                    self._graph.reopen(issue)
            case "block" if there and more in self._graph.issues:
                if self._graph._at(more) not in self._graph.blocked_by[issue]:
                    self._graph.block(issue, more)
            case "unblock" if there:
                if self._graph._at(more) in self._graph.blocked_by[issue]:
                    self._graph.unblock(issue, more)
            case "give away" if there:
                self._graph.give_away(issue, OTHER)
            case "take back" if there:
                root = self._graph.root
                self._graph.change(issue, parent=root.at, parent_id=root.id)
            case "shuffle":
                order = sorted(self._graph.issues)
                Random(str(more)).shuffle(order)  # noqa: S311 - chance, no secret
                self._graph.order(*order)
            case "rename":
                self._graph.rename(more)
            case "recreate" if there:
                self._ids += 1
                self._graph.change(issue, id=self._ids)
            case "remove" if there:
                self._graph.remove(issue)
            case "title" if there:
                self._graph.change(issue, title="Another title")
            case "add":
                free = [n for n in (8, 9, 10, 11) if n not in self._graph.issues]
                if free:
                    self._graph.add(free[0])
            case "drain" | "now":
                self._ask_to_stop(operation.verb, more)
            case "garbage":
                world.files.remove(STOP)
                world.files.write(STOP, b'{"mode": "never"')
                self._requested()
            case "odd request":
                world.files.plant(STOP, "a FIFO")
                self._requested()
            case _:
                self._do_to_machine(operation)

    def _do_to_machine(self, operation: Operation) -> None:
        world, issue, more = self._world, operation.issue, operation.more
        match operation.verb:
            case "signal":
                if world.process is not None:
                    world.process.signal()
            case "kill scheduler":
                if world.process is not None:
                    world.process.kill()
            case "kill worker":
                for worker in world.alive:
                    if worker.issue == issue:
                        worker.die(-9)
            case "probe":
                self._probe(issue, more)
            case "junk":
                world.files.plant(JUNK, "a folder of somebody")
            case "clear junk":
                world.files.remove(JUNK)
            case "full" | "space":
                world.full = operation.verb == "full"
            case "clock":
                world.clock.set_wall(more)
            case "break record":
                self._breaks_record = True
            case _:
                assert operation.verb in VERBS, operation

    def settle(self) -> None:
        """They stop: what they left lying about is cleared."""
        world = self._world
        world.files.remove(JUNK)
        world.files.remove(STOP)
        world.full = False
        if world.process is not None:
            world.process.request_changed()

    def between(self) -> None:
        """What they do while no scheduler runs."""
        there = places.scheduler(EPIC) in self._world.files.files
        if self._breaks_record and there and not self._world.calm:
            self._breaks_record = False
            self._world.files.write(places.scheduler(EPIC), b"{")
            self._world.tell("people: the record is broken")
            self._world.did("a broken record")

    def standalone(self, place: Place) -> int | None:
        """The issue of a repository that a run of its own works on."""
        found = self._world.files.files.get(places.STANDALONE)
        if found is None or place != HOME:
            return None
        return decode(EngineState, found).run_key.issue_number

    # -- graph -----------------------------------------------------------------------

    def change_one(self, snapshot: Snapshot) -> None:
        """Change an issue that had nothing to wait for, at once."""
        for child in snapshot.home_children:
            ready = is_ready(child, snapshot, self._world.plan.satisfied_by)
            if ready and child.number in self._graph.issues:
                self._world.tell(f"people: close #{child.number} just now")
                self._graph.finish(child.number)
                return

    def work_ended(self, worker: SimulatedWorker) -> None:
        """A person may merge what is ready."""
        after, world = worker.work.merged, self._world
        saved = world.records.look(worker.issue).saved
        if after is None or saved is None or saved.state.phase != "ready_for_merge":
            return

        def merge() -> None:
            node = self._graph.issues.get(worker.issue)
            if not world.calm and node is not None and node.state == OPEN:
                world.tell(f"people: merge #{worker.issue}")
                self._graph.finish(worker.issue)

        world.timers.after(after, merge)

    def _add(self, child: Child) -> None:
        graph, number = self._graph, child.number
        more: dict[str, object] = {}
        match child.kind:
            case "issue":
                pass
            case "closed":
                more = {"state": CLOSED, "reason": "completed"}
            case "pull-request":
                more = {"pull_request": True}
            case "nested":
                more = {"children": 2}
            case "elsewhere":
                more = {"at": IssueAt(ELSEWHERE, number)}
            case "self":
                more = {"id": graph.root.id}
        graph.add(number, blocked_by=child.blocked_by, **more)
        if child.stranger is not None:
            reason = "completed" if child.stranger == CLOSED else None
            at = IssueAt(ELSEWHERE, 70 + number)
            graph.block(number, BlockerNode(at, 70_000, child.stranger, reason))
        self._keep(child)

    def _keep(self, child: Child) -> None:
        files, number = self._world.files, child.number
        match child.kept:
            case None:
                pass
            case "other-epic":
                binding = made_binding(number, epic=OTHER_EPIC)
                files.write(places.binding(number), checked(binding))
            case "spoiled":
                files.write(places.state(number), b'{"schema": 99}')
            case "standalone":
                files.write(places.STANDALONE, checked(self._state(number)))

    def _state(self, number: int) -> EngineState:
        return EngineState(
            run_key=RunKey(101, number),
            issue_url=f"https://github.com/Octo/Demo/issues/{number}",
            run_id="r-00000001",
            phase="review",
            config_digest=NO_DIGEST,
            branch="x",
            base_commit=None,
            tries={},
            updated_at=self._world.moment,
        )

    # -- requests and locks ----------------------------------------------------------

    def _ask_to_stop(self, mode: Literal["drain", "now"], whose: str) -> None:
        process = self._world.process
        this = None if process is None else process.invocation
        invocation = {"any": None, "this": this}.get(whose, "i-0000000000")
        request = StopRequest(mode=mode, invocation_id=invocation)
        self._world.files.remove(STOP)
        self._world.records.write_stop(EPIC, request)
        self._requested()

    def _requested(self) -> None:
        process = self._world.process
        if process is not None:
            self._world.referee.requested(process)
            process.request_changed()

    def _probe(self, issue: int, seconds: float) -> None:
        """Somebody looks at an issue, for longer than they should."""
        self._pid += 1
        try:
            lock = FakeLocks(self._world.kernel, pid=self._pid).take_run(issue)
        except Busy:
            return
        self._world.did("somebody else has an issue")
        self._world.timers.after(seconds, lock.close)
