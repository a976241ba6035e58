"""The half of a store that a clean-up needs: what may go, and giving up free pages.

Whatever takes long is done by a connection of its own in a thread. Only a vacuum holds
up those who save, so it is done while no job waits or runs, and broken off as soon as
anybody saves anything. The loop never waits for it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import apsw
import msgspec
import trio

from forge_actors.domain.changes import (
    ForgottenJob,
    JobAnswered,
    JobEdited,
    JobIsolated,
    JobRedirected,
    JobRequeued,
)
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.maintenance_view import run_from, visits_from
from forge_actors.domain.policies import in_force
from forge_actors.edges.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    number_of,
    open_reader,
)
from forge_actors.edges.sqlite.owned import OwnedStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from forge_actors.domain.changes import JobAdded, RepositoryChanged
    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.maintenance import ClassVisit, CleanRun
    from forge_actors.domain.policies import Policy
    from forge_actors.domain.policy_changes import PolicySet
    from forge_actors.edges.sqlite.move import Move
    from forge_actors.edges.sqlite.tally import Tally

#: A vacuum is worth it from so many free bytes on, if they are so large a part of it.
WORTH_BYTES = 64 << 20
WORTH_SHARE = 0.2
#: Steps of SQLite between two looks whether a vacuum was broken off.
PROGRESS_STEPS = 10_000

#: The changes that may alter what a job is.
Respecifying = JobAnswered | JobEdited | JobIsolated | JobRedirected | JobRequeued
RESPECIFY: tuple[type[Respecifying], ...] = get_args(Respecifying)

_encode = msgspec.json.Encoder().encode
_events = msgspec.json.Decoder(list[Event]).decode


class UpkeptStore(OwnedStore):
    """A store out of which things may go."""

    #: Jobs without a durable end, those included that are not durable yet.
    active: int
    tally: Tally
    #: What jobs run after that have not ended, as long as somebody wants to know.
    _dependencies: set[str] | None = None
    _vacuum: Vacuum | None = None
    #: The policy, also if it is not durable yet; None if it is normal.
    policy: Policy | None
    #: How often jobs were removed; whoever looked at one before may look again.
    forgettings = 0

    def last_end(self) -> float | None:
        """See the port."""
        return self.tally.last_end

    def clean_run(self) -> CleanRun | None:
        """See the port."""
        return run_from(self.read("clean_run"))

    def class_visits(self) -> dict[CleanClass, ClassVisit]:
        """See the port."""
        return dict(visits_from(self.read("clean_visits")))

    # -- jobs ------------------------------------------------------------------------

    @asynccontextmanager
    async def forgetting(self) -> AsyncIterator[None]:
        """See the port."""
        # Those of jobs that are accepted from now on are added when they are saved.
        found: set[str] = set()
        self._dependencies = found
        try:
            found.update(map(str, await self._looking("dependencies")))
            yield
        finally:
            self._dependencies = None

    def _accepted(self, change: JobAdded) -> None:
        self.active += 1
        if self._dependencies is not None:
            self._dependencies.update(change.job.after)

    def _look_at_policy(self) -> None:
        self.policy = in_force(self.read_policy())

    def _policy_set(self, change: PolicySet) -> None:
        self.policy = in_force(change.policy)

    def _policed(self, change: PolicySet) -> None:
        """It is durable."""
        for notify in self._of_policy:
            notify()

    def when_policy_changes(self, notify: Callable[[], object]) -> None:
        """Tell of every policy from now on, once it is durable."""
        self._of_policy.append(notify)

    def _specified(self, change: Respecifying) -> None:
        self._specs.pop(change.job, None)

    def _changed(self, change: RepositoryChanged) -> None:
        if change.moved is not None:
            self._specs.clear()

    def forgettable(
        self, jobs: Sequence[str], ended_before: float
    ) -> tuple[ForgottenJob, ...]:
        """See the port."""
        needed = self._dependencies
        assert needed is not None, "ask only within `forgetting`"
        free = _encode([job for job in jobs if job not in needed]).decode()
        rows = self.read_pending("forgettable", free, ended_before)
        self.forgettings += bool(rows)
        return tuple(ForgottenJob(*row) for row in rows)

    # -- events ----------------------------------------------------------------------

    async def oldest_active(self) -> float | None:
        """See the port."""
        [oldest] = await self._looking("oldest_active")
        assert oldest is None or isinstance(oldest, float)
        return oldest

    def old_history(
        self, after: int, before: int, rows: int
    ) -> list[tuple[int, int, float]]:
        """See the port."""
        found = []
        for first, page in self.read("history_rows", after, before, rows):
            events = _events(page)
            latest = max((event.at for event in events), default=0.0)
            found.append((first, first + len(events), latest))
        return found

    def history_range(self) -> tuple[int, int]:
        """See the port."""
        [(first, last)] = self.read("history_range")
        return first or 1, last or 1

    # -- the file --------------------------------------------------------------------

    async def upkeep(self, *, may_vacuum: bool) -> int:
        """See the port."""
        self.check_owner()
        path = Path(self._db.filename)
        try:
            await trio.to_thread.run_sync(_checkpoint, path)
            # Without its log: that is as long as it was needed once, and used again.
            before = path.stat().st_size
            if may_vacuum and self._is_worth_it():
                await self._make_vacuum(path)
        except apsw.Error as error:
            raise StoreFailed(f"the upkeep of the store failed: {error}") from error
        return max(0, before - path.stat().st_size)

    def _is_worth_it(self) -> bool:
        free = number_of(self.reader, "PRAGMA freelist_count")
        pages = number_of(self.reader, "PRAGMA page_count")
        size = number_of(self.reader, "PRAGMA page_size")
        return free * size >= WORTH_BYTES and free >= WORTH_SHARE * pages

    async def _make_vacuum(self, path: Path) -> None:
        if self._db.in_transaction:
            return
        vacuum = self._vacuum = Vacuum(path)
        try:
            await trio.to_thread.run_sync(vacuum.run, abandon_on_cancel=True)
        finally:
            vacuum.break_off()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(vacuum.ended.wait)
            self._vacuum = None
            self._let_in(vacuum.held)
            vacuum.over.set()

    def _let_in(self, held: Sequence[Move]) -> None:
        """Take what was saved while nothing could be written."""
        for move in held:
            try:
                self._take(move)
            except StoreFailed as error:
                move.settle(error)
            except Exception as error:  # noqa: BLE001 - of whoever saved it
                move.settle(StoreFailed(f"it could not be saved: {error}"))

    @abstractmethod
    def _take(self, move: Move) -> None:
        """Write a move, or see to it that it is written later."""

    async def quiet(self) -> None:
        """Return when what is saved is written at once, and so seen by whoever looks.

        A vacuum that goes on is broken off.
        """
        if self._vacuum is not None:
            self._vacuum.break_off()
            await self._vacuum.over.wait()

    async def _looking(self, query: str) -> list[object]:
        """The first column of a named query, found in a thread."""
        path = Path(self._db.filename)
        return await trio.to_thread.run_sync(partial(_look, path, self._sql[query]))


class Vacuum:
    """One vacuum, in a thread, that can be broken off by another one.

    While it copies what it made back into the file it cannot be, which takes as long as
    writing that much; so whoever saves does not wait, but is held.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: apsw.Connection | None = None
        self._broken_off = False
        self._lock = threading.Lock()
        #: What was saved meanwhile, in its order.
        self.held: list[Move] = []
        #: It holds nothing in the file any more, and then: nor anybody who saves.
        self.ended = threading.Event()
        self.over = trio.Event()

    def hold(self, move: Move) -> None:
        """Keep a move until it is over, which is soon from now on."""
        self.held.append(move)
        self.break_off()

    def run(self) -> None:
        """Give the free pages of the store back to the disk, unless broken off."""
        try:
            with self._lock:
                if self._broken_off:
                    return
                db = self._db = apsw.Connection(str(self._path))
            try:
                db.set_busy_timeout(0)  # whoever writes now is more important
                # An interrupt that comes before the statement would be lost.
                db.set_progress_handler(lambda: self._broken_off, PROGRESS_STEPS)
                with suppress(apsw.BusyError, apsw.InterruptError):
                    db.execute("VACUUM")
                    # The file gets shorter when the log is folded back into it.
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                with self._lock:
                    self._db = None
                db.close()
        finally:
            self.ended.set()

    def break_off(self) -> None:
        """Have it end, if it still can without being complete."""
        with self._lock:
            self._broken_off = True
            if self._db is not None:
                self._db.interrupt()


def _look(path: Path, query: str) -> list[object]:
    try:
        reader = open_reader(path)
        try:
            return [row[0] for row in reader.execute(query)]
        finally:
            reader.close()
    except apsw.Error as error:
        raise StoreFailed(f"the store cannot be read: {error}") from error


def _checkpoint(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    finally:
        db.close()
