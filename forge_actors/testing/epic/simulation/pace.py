"""When a scheduler reads, looks, interrupts and ends: the half of the referee that has
a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic import places
from forge_actors.domain.epic.progress import STALE_IN_A_ROW
from forge_actors.domain.epic.record_ports import StopFound
from forge_actors.domain.epic.records import Scheduler, decode
from forge_actors.domain.epic.stopping import EXITS
from forge_actors.testing.epic.simulation.book import CLAIM, Book, is_ready, left_of
from forge_actors.testing.epic.simulation.plan import EPIC

if TYPE_CHECKING:
    from forge_actors.domain.epic.graph import ChildNode, Snapshot
    from forge_actors.domain.epic.records import Claim
    from forge_actors.domain.epic.stopping import End
    from forge_actors.testing.epic.simulation.book import Left, Stop
    from forge_actors.testing.epic.simulation.process import Process
    from forge_actors.testing.epic.simulation.workers import SimulatedWorker
    from forge_actors.testing.epic.simulation.world import World

#: Seconds within which the loop acts, and those that a start may take, in which it does
#: nothing else.
PROMPT = 0.3
START = 2.5
#: Admission and the end that goes with it.
ENDS = {
    ("nothing-admissible", "open", None),
    ("drained", "closed", "stop-requested"),
    ("stopped", "closed", "stop-requested"),
    ("interrupted", "closed", "stop-requested"),
    ("interrupted", "closed", "interrupted"),
    *(
        (end, "degraded", why)
        for end in ("degraded", "stopped", "interrupted")
        for why in ("snapshot-refused", "epic-not-admissible")
    ),
}


class Pace:
    """What is about moments and orders."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.epic = world.graph.root.ref
        self._grace = world.plan.grace
        self._books: dict[int, Book] = {}
        #: When each scheduler looked for a request last.
        self._looked_at: dict[int, float] = {}

    @property
    def now(self) -> float:
        return self.world.now

    def book(self, process: Process) -> Book:
        book = self._books.get(process.pid)
        if book is None:
            book = self._books[process.pid] = Book(free_since=self.now)
        return book

    def fail(self, rule: str, what: str) -> None:
        self.world.fail(rule, what)

    def followed(self, process: Process) -> list[SimulatedWorker]:
        """Its workers that live."""
        return [
            worker
            for worker in self.world.workers
            if worker.parent is process and worker.alive and worker.followed
        ]

    def _left(self, issue: int) -> Left:
        return left_of(self.world.files, issue, self.epic, None)

    def _claims(self, issue: int) -> list[Claim]:
        files, folder = self.world.files.files, places.claims(issue)
        found = [CLAIM.decode(data) for at, data in files.items() if at[:-1] == folder]
        return sorted(found, key=lambda claim: claim.generation)

    # -- reading ---------------------------------------------------------------------

    def reads(self, process: Process) -> None:
        """It begins to read the graph."""
        book, plan = self.book(process), self.world.plan
        told = f"{process}, read {book.reads + 1}"
        if len(self.followed(process)) >= plan.limit:
            self.fail("nothing is read while there is no slot", told)
        if book.refused:
            self.fail("what was refused is not tried again", told)
        if any(at < self.now for at, _ in book.stops):
            self.fail("nothing is read once it is to stop", told)
        if book.reads == 0:
            self._has_reconciled(process)
        else:
            if self.now < book.completed_at + plan.poll - 0.001:
                book.early += 1
                self._may_be_early(book, told)
            self._was_prompt(book, told)
            self._has_looked_again(book, told)
        book.reads += 1
        book.reading = True

    def _may_be_early(self, book: Book, told: str) -> None:
        others = sum(
            any(how == "busy" for _, how in tries) for tries in book.tries.values()
        )
        if book.early > STALE_IN_A_ROW * (1 + len(book.begun)) + others:
            self.fail("between two readings is a pause", told)

    def _was_prompt(self, book: Book, told: str) -> None:
        due = max(book.completed_at + self.world.plan.poll, book.free_since)
        if self.now > max(due, book.busy_until) + START:
            self.fail(
                "it reads while it has a slot", f"{told}: it was due at {due:.2f}"
            )

    def _has_looked_again(self, book: Book, told: str) -> None:
        """Issues that others had are tried again once the graph was read."""
        for issue in sorted(book.tries.keys() - book.begun):
            at, how = book.tries[issue][-1]
            if how != "busy" or at >= book.completed_at:
                continue
            bound = places.binding(issue) in self.world.files.files
            if bound and self._left(issue) != "other-epic":
                self.fail("what others had is looked at again", f"{told}: #{issue}")

    def has_read(self, process: Process, snapshot: Snapshot) -> None:
        book = self.book(process)
        book.snapshot, book.completed_at, book.reading = snapshot, self.now, False
        book.stale = False

    def was_refused(self, process: Process) -> None:
        book = self.book(process)
        book.refused, book.reading = True, False

    def reads_again(self, process: Process, issue: int) -> None:
        if len(self.followed(process)) >= self.world.plan.limit:
            self.fail("nothing begins while there is no slot", f"{process}: #{issue}")

    def _has_reconciled(self, process: Process) -> None:
        """Everything that was left is found out about before anything begins."""
        book, files = self.book(process), self.world.files
        for issue in self.world.records.issues().issues:
            now = self._left(issue)
            mine = files.files.get(places.binding(issue)) and now != "other-epic"
            if mine and issue not in book.tries:
                self.fail("what was left is looked at", f"{process}: #{issue}")
            if not mine or issue in book.failures or issue not in book.left:
                continue
            claims = self._claims(issue)
            still_open = [claim for claim in claims if claim.closed is None]
            told = f"{process}: #{issue} is {now}, open {len(still_open)}"
            left_open = 1 if now == "resumable" else 0
            if now != "uncertain" and len(still_open) > left_open:
                self.fail("what was left is closed as it ended", told)
            if now != book.left[issue]:
                self.fail("to find out changes nothing", told)
            if now == "resumable" and still_open:
                self.world.did("left: resumable, its claim open")

    def was_busy(self, process: Process) -> None:
        """Until now it did something that it does nothing else beside."""
        self.book(process).busy_until = self.now

    # -- the slots -------------------------------------------------------------------

    def passed(self, process: Process) -> None:
        """After each pass of its loop."""
        book = self.book(process)
        if len(self.followed(process)) >= self.world.plan.limit:
            book.free_since = float("inf")
            return
        book.free_since = min(book.free_since, self.now)
        book.passes += 1
        passes = book.passes
        if self._waits_in_vain(process) is None:
            return

        def look() -> None:
            """It may have been about to, and may be at another issue now."""
            issue = self._waits_in_vain(process)
            asleep = process.runs and process.locks.open_run is None
            if asleep and book.passes == passes and issue is not None:
                self.fail("what is ready is tried", f"{process}: #{issue}")

        self.world.timers.after(PROMPT, look)

    def _waits_in_vain(self, process: Process) -> int | None:
        """An issue that could begin: there is a slot, and nothing is known of it that
        keeps it back."""
        book, snapshot = self.book(process), self.book(process).snapshot
        if book.stops or book.reading or book.stale or book.untold or snapshot is None:
            return None
        if len(self.followed(process)) >= self.world.plan.limit:
            return None
        for child in snapshot.home_children if book.statuses[-1] == "open" else ():
            issue = child.number
            tried = book.last_try(issue)[0] >= book.completed_at
            if tried or issue in book.begun or not self._is_ready(child, snapshot):
                continue
            if issue == process.standalone or book.failed(issue):
                continue
            if process.shared and not process.shared.has_granted(issue):
                continue
            left = left_of(self.world.files, issue, self.epic, child.id)
            if left not in ("settled", "uncertain", "other-epic"):
                return issue
        return None

    def _is_ready(self, child: ChildNode, snapshot: Snapshot) -> bool:
        return is_ready(child, snapshot, self.world.plan.satisfied_by)

    # -- stopping --------------------------------------------------------------------

    def requested(self, process: Process) -> None:
        """A request was written while it runs: it looks at it soon."""
        stop = places.stop(EPIC)
        files = self.world.files
        there, odd, at = files.files.get(stop), files.odd.get(stop), self.now
        if process.signalled is None:
            return  # it begins, and removes what is there

        def look() -> None:
            same = there == files.files.get(stop) and odd == files.odd.get(stop)
            unseen = self._looked_at.get(process.pid, -1.0) < at
            if same and unseen and process.runs:
                self.fail("a request is looked at soon", f"{process}")

        self.world.timers.after(START + PROMPT, look)

    def looks_at_request(self, process: Process, *, fails: bool) -> None:
        self._looked_at[process.pid] = self.now
        found = self.world.records.read_stop(EPIC)
        if fails:
            found = StopFound("unreadable")
        if found.kind == "none":
            return
        request, book = found.request, self.book(process)
        if request is not None and request.invocation_id not in (
            None,
            process.invocation,
        ):
            self.world.did("a request to stop another run")
            return
        what: Stop = "drain" if request is None else request.mode
        if not book.has(what):
            self.told_to_stop(process, what)

    def told_to_stop(self, process: Process, what: Stop) -> None:
        book = self.book(process)
        book.stops.append((self.now, what))
        interrupts = book.interrupts
        if what == "drain" or len(interrupts) > 2:
            return
        grace = self._grace if len(interrupts) == 1 else 0.0

        def look() -> None:
            if process.runs:
                self.fail("an interrupt ends a run", f"{process}, told by {what}")

        self.world.timers.after(grace + START + PROMPT, look)

    def interrupted(self, worker: SimulatedWorker) -> None:
        """A worker is sent SIGINT."""
        told = f"{worker}, number {worker.interrupts}"
        book = self.book(worker.parent)
        if not book.interrupts:
            self.fail("nobody is interrupted unasked", told)
        elif worker.interrupts > 2:
            self.fail("nobody is interrupted more than twice", told)
        elif worker.interrupts == 2 and not self._may_leave(book):
            self.fail("nobody is interrupted again before the grace ends", told)

    def _may_leave(self, book: Book) -> bool:
        """Whether workers may be left alone: they had the grace, or a second word."""
        first = book.interrupts[0]
        return len(book.interrupts) > 1 or self.now > first + self._grace - 0.001

    # -- the end ---------------------------------------------------------------------

    def ends(self, process: Process, end: End) -> None:
        """It has ended by itself, and says why."""
        world, book = self.world, self.book(process)
        told = f"{process}: {end}"
        data = world.files.files.get(places.scheduler(EPIC))
        assert data is not None
        record = decode(Scheduler, data)
        ended = record.invocation.ended_at is not None
        if ended and record.invocation.id == process.invocation:
            admission = record.admission
            row = (end.reason, admission.status, admission.reason)
            world.did(f"row: {' '.join(map(str, row))}")
            if row not in ENDS:
                self.fail("it ends as it was told to", f"{told}: {row}")
            if record.invocation.end_reason != end.reason:
                self.fail("the record says how it ended", told)
        reasons = {
            "nothing-admissible": not book.stops and not book.refused,
            "drained": book.has("drain") and not book.interrupts,
            "stopped": book.has("now"),
            "interrupted": book.has("signal"),
            "degraded": not book.interrupts,
        }
        assert end.reason is not None
        if not reasons[end.reason] or end.status != EXITS[end.reason]:
            self.fail("it ends as it was told to", f"{told}, told {book.stops}")
        self._leaves_nobody(process, end, told)
        if end.reason == "nothing-admissible":
            self._nothing_was_left(process, told)

    def _leaves_nobody(self, process: Process, end: End, told: str) -> None:
        book, live = self.book(process), self.followed(process)
        if not {worker.issue for worker in live} <= set(end.left):
            self.fail("it tells of the workers that go on", told)
        if end.left and end.reason not in ("stopped", "interrupted"):
            self.fail("it waits for its workers", told)
        for worker in live:
            if worker.interrupts != 2:
                self.fail("who goes on was told twice to stop", f"{told}: {worker}")
        if live and not self._may_leave(book):
            self.fail("workers have the grace to end", told)

    def _nothing_was_left(self, process: Process, told: str) -> None:
        book, world = self.book(process), self.world
        snapshot = book.snapshot
        assert snapshot is not None
        self._was_prompt(book, told)
        self._has_looked_again(book, told)
        for child in snapshot.home_children:
            issue, tries = (
                child.number,
                [how for _, how in book.tries.get(child.number, ())],
            )
            if issue in book.begun or not self._is_ready(child, snapshot):
                continue
            if issue == process.standalone or book.failed(issue):
                continue
            if process.shared and issue in process.shared.lost_ones:
                continue
            if tries[-1:] == ["busy"]:
                if tries == ["busy"]:
                    self.fail("what others had is looked at again", f"{told}: #{issue}")
                continue
            left = left_of(world.files, issue, self.epic, child.id)
            if left not in ("settled", "uncertain", "other-epic"):
                self.fail("what is ready begins", f"{told}: #{issue} is {left}")
        self._closed_what_waits(process, snapshot, told)

    def _closed_what_waits(
        self, process: Process, snapshot: Snapshot, told: str
    ) -> None:
        """A claim of an earlier run is closed if its issue cannot be gone on with."""
        book = self.book(process)
        for issue in sorted(book.tries.keys() - book.begun):
            known = snapshot.ids.get(issue)
            left = left_of(self.world.files, issue, self.epic, known)
            if left != "resumable" or book.failed(issue):
                continue
            child, claims = snapshot.child(issue), self._claims(issue)
            ready = child is not None and self._is_ready(child, snapshot)
            if ready or book.last_try(issue)[1] == "busy":
                continue
            if claims and claims[-1].closed is None:
                self.fail(
                    "a claim that waits for people is closed", f"{told}: #{issue}"
                )
