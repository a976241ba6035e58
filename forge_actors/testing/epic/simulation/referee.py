"""The referee: judges every write, every worker and every end by books of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.graph import node_digest
from forge_actors.domain.epic.namespace import Expected, classify
from forge_actors.domain.epic.records import (
    SETTLED,
    Binding,
    Claim,
    Scheduler,
    decode,
    digest_of,
)
from forge_actors.domain.epic.workers import NO_LOG, NO_WORKER
from forge_actors.testing.epic.simulation.book import is_ready, left_of
from forge_actors.testing.epic.simulation.pace import Pace
from forge_actors.testing.epic.simulation.plan import EPIC

if TYPE_CHECKING:
    from forge_actors.domain.epic.graph import Reread, Snapshot
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.testing.epic.simulation.book import Left, Try
    from forge_actors.testing.epic.simulation.process import Process
    from forge_actors.testing.epic.simulation.workers import SimulatedWorker
    from forge_actors.testing.epic.simulation.world import World


class Referee(Pace):
    """Asks the product for nothing that it could be wrong about."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: What was on the disk of each issue when that was judged last.
        self._seen: dict[int, list[bytes]] = {}

    # -- locks -----------------------------------------------------------------------

    def tried(self, process: Process, issue: int, how: Try) -> None:
        """It tried to take the lock of an issue."""
        book = self.book(process)
        book.tries.setdefault(issue, []).append((self.now, how))
        if how == "taken":
            left = self._left(issue)
            self.world.did(f"found: {left}")
            if book.reads == 0:
                book.left[issue] = left

    def look(self) -> None:
        """Every worker that lives has both its locks."""
        held = self.world.kernel.held
        for worker in self.world.workers:
            if worker.alive and held.get("controller") is not worker.controls:
                self.fail("a worker keeps the controller's lock", f"{worker}")
            if worker.locked and held.get(str(worker.issue)) is not worker.runs:
                self.fail("a worker keeps the lock of its issue", f"{worker}")

    # -- writes ----------------------------------------------------------------------

    def was_failed(self, process: Process, place: Place) -> None:
        """The disk did not do what was asked of it."""
        if len(place) > 2 and place[:2] == places.ISSUES:
            self.book(process).failures.add(int(place[2]))
        else:
            self.book(process).untold = True

    def writes(
        self, process: Process, point: str, place: Place, after: bytes | None
    ) -> None:
        """It is about to write this, or to remove what is there."""
        self.world.tell(f"{process} writes {point}: {places.told(place[1:])}")
        self.look()
        mine = self.world.kernel.held.get("controller")
        if mine is None or mine.pid != process.pid:
            self.fail("nobody writes but the controller", f"{process}: {point}")
        if place[:2] == places.ISSUES:
            self._writes_issue(process, point, place, after)
        elif place == places.scheduler(EPIC) and after is not None:
            self._writes_scheduler(process, after)

    def _writes_issue(
        self, process: Process, point: str, place: Place, after: bytes | None
    ) -> None:
        world, issue, lock = self.world, int(place[2]), process.locks.open_run
        if lock is None or lock.issue != issue or not lock.held:
            self.fail("an issue is written to under its lock", f"{process}: {point}")
        left = left_of(world.files, issue, self.epic, self._known_id(process, issue))
        if left in ("uncertain", "other-epic"):
            self.fail("what is uncertain is left alone", f"{point} of #{issue}: {left}")
        assert after is not None, "nothing of an issue is removed"
        if point == "binding":
            binding = decode(Binding, after)
            if places.binding(issue) in world.files.files:
                self.fail("an issue is bound once", f"#{issue}")
            if binding.run_key.issue_number != issue or binding.epic != self.epic:
                self.fail("an issue is bound to its EPIC", f"#{issue}: {binding}")
        elif point == "claim":
            self._opens(process, issue, decode(Claim, after))
        elif point.startswith("claim "):
            self._changes(process, issue, decode(Claim, after))

    def _known_id(self, process: Process, issue: int) -> int | None:
        """The id of an issue, if the last snapshot counts for anything."""
        book = self.book(process)
        if book.snapshot is None or book.stops or book.statuses[-1] != "open":
            return None
        return book.snapshot.ids.get(issue)

    def _opens(self, process: Process, issue: int, claim: Claim) -> None:
        world, book = self.world, self.book(process)
        told = f"#{issue}, claim {claim.generation} of {process}"
        data = world.files.files.get(places.binding(issue))
        if data is None:
            self.fail("there is no claim without a binding", told)
            return
        if decode(Binding, data).issue_id != claim.issue_id:
            self.fail("a claim is about the issue that is bound", told)
        claims = self._claims(issue)
        before = claims[-1] if claims else None
        if claim.generation != (0 if before is None else before.generation) + 1:
            self.fail("generations grow one by one", told)
        open_one = None if before is None or before.closed else before.ref
        if claim.supersedes != open_one:
            self.fail("a claim names the open one it takes over from", told)
        if claim.invocation_id != process.invocation:
            self.fail("a claim is of the run that opens it", told)
        if claim.closed or issue in book.begun:
            self.fail("a run begins an issue once", told)
        saved = world.files.files.get(places.state(issue))
        named = claim.state_ref.digest
        if named != (None if saved is None else digest_of(saved)):
            self.fail("a claim names the state that is there", told)
        if self._left(issue) == "settled":
            self.fail("what is settled is left alone", told)
        self._is_admissible(process, issue, claim, told)
        if any(at < self.now for at, _ in book.stops) or book.refused:
            self.fail("nothing begins once it is to stop", told)

    def _is_admissible(
        self, process: Process, issue: int, claim: Claim, told: str
    ) -> None:
        world, book = self.world, self.book(process)
        again = book.again.get(issue)
        if again is None or again[0] is not process.locks.open_run:
            self.fail("an issue is read again under its lock", told)
            return
        _, snapshot, reread = again
        old = snapshot.child(issue)
        if old is None or node_digest(old) != node_digest(reread.node):
            self.fail("an issue that changed does not begin", told)
        if claim.admission.node_digest != node_digest(reread.node):
            self.fail("a claim says what was read again", told)
        current = book.snapshot
        if current is None or claim.admission.snapshot_digest != current.digest:
            self.fail("a claim names the snapshot that counts", told)
        if not is_ready(reread.node, snapshot, world.plan.satisfied_by):
            self.fail("only what is ready begins", told)
        if issue == process.standalone:
            self.fail("a run of its own keeps its issue", told)

    def _changes(self, process: Process, issue: int, claim: Claim) -> None:
        told = f"#{issue}, claim {claim.generation} of {process}"
        claims = {each.generation: each for each in self._claims(issue)}
        before = claims.get(claim.generation)
        if before is None or before.closed is not None:
            self.fail("a claim is closed once", told)
            return
        if claim.closed is None:
            return
        for worker in self.world.alive:
            if worker.order.claim.ref == claim.ref:
                self.fail("the claim of a worker that lives is open", told)
        later = claims.get(claim.generation + 1)
        taken_over = later is not None and later.supersedes == claim.ref
        kind = claim.closed.classification
        left: Left | str = "superseded" if taken_over else self._left(issue)
        expected = "abandoned" if left == "fresh" else left
        if claim.closed.detail.startswith((NO_LOG, NO_WORKER)):
            expected = "abandoned"
        if kind != expected:
            self.fail("a claim ends as its work did", f"{told}: {kind}, not {expected}")
        if (claim.closed.settlement in SETTLED) != (kind == "settled"):
            self.fail("what is settled says where", told)

    def _writes_scheduler(self, process: Process, after: bytes) -> None:
        book, record = self.book(process), decode(Scheduler, after)
        if process.invocation is None:
            process.invocation = record.invocation.id
        told = f"{process}: {record.admission}"
        if record.invocation.id != process.invocation:
            self.fail("a record is of the run that writes it", told)
        status = record.admission.status
        if book.statuses and book.statuses[-1] not in ("open", status):
            self.fail("admission never opens again", told)
        book.statuses.append(status)

    # -- the graph -------------------------------------------------------------------

    def has_read_again(
        self, process: Process, snapshot: Snapshot, found: Reread
    ) -> None:
        lock = process.locks.open_run
        if lock is None or lock.issue != found.node.number:
            self.fail("an issue is read again under its lock", f"{process}")
            return
        self.book(process).stale = not found.unchanged
        self.book(process).again[found.node.number] = (lock, snapshot, found)

    # -- workers ---------------------------------------------------------------------

    def starting(self, process: Process, order: WorkerOrder) -> None:
        """It is about to start a worker."""
        claim = order.claim
        issue = claim.run_key.issue_number
        told = f"#{issue}, claim {claim.generation} of {process}"
        book, claims = self.book(process), self._claims(issue)
        if not claims or claims[-1].ref != claim.ref or claims[-1].closed:
            self.fail("a worker has an open claim, the last one", told)
        if claim.invocation_id != process.invocation:
            self.fail("a worker has a claim of the run that starts it", told)
        if issue in book.begun:
            self.fail("a run begins an issue once", told)
        book.begun.add(issue)
        if len(self.followed(process)) >= self.world.plan.limit:
            self.fail("never more than the limit", told)
        if any(each.issue == issue and each.locked for each in self.world.workers):
            self.fail("never two workers of one issue", told)

    def started(self, worker: SimulatedWorker) -> None:
        self.was_busy(worker.parent)
        self.look()

    # -- ends ------------------------------------------------------------------------

    def ended(self, process: Process) -> None:
        """It has ended, whichever way; what it left is as it must be."""
        world = self.world
        self.look()
        if world.controlled != bool(world.alive):
            self.fail(
                "the controller's lock is kept as long as a worker lives",
                f"{world.controlled}, and {world.alive} live",
            )
        self._look_at_disk(process)
        if process.end is not None and process.end.reason is not None:
            self.ends(process, process.end)

    def _look_at_disk(self, process: Process) -> None:
        """What is left is what the next scheduler takes it for."""
        world, place = self.world, self.world.graph.home.place
        data = world.files.files.get(places.scheduler(EPIC))
        if data not in (None, b"{"):
            try:
                decode(Scheduler, data)
            except StateError as error:
                self.fail("the record of a run can be read", f"{process}: {error}")
        for issue in world.records.issues().issues:
            if not self._is_new(issue):
                continue
            found = world.records.look(issue)
            if found.is_of_another(self.epic):
                continue
            ids = {} if found.binding is None else {issue: found.binding.issue_id}
            kind = classify(found, Expected(101, place.owner, place.name, ids)).kind
            expected = left_of(world.files, issue, self.epic, None)
            if kind != expected:
                told = f"#{issue} is {kind}, not {expected}"
                self.fail("a crash leaves what can be told", f"{process}: {told}")

    def _is_new(self, issue: int) -> bool:
        """Whether something was written of an issue since this was asked last."""
        space = places.namespace(issue)
        files = self.world.files.files
        now = [data for place, data in files.items() if place[:3] == space]
        before = self._seen.get(issue)
        self._seen[issue] = now
        return before != now
