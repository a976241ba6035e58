"""The store: jobs, repositories and events in SQLite, many moves to one commit.

A move is written into the open transaction at once and becomes durable with the next
commit: two turns of the loop later, or when it is hastened. Everybody whose move rode
along is told then. There is one writing connection, in the loop's own thread: a commit
takes a fraction of a millisecond on a common disk, less than a switch of threads would.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import trio
from trio_util import AsyncBool

from forge_actors.domain.backoff import DEFAULT, Backoff
from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.changes import (
    Change,
    JobAdded,
    JobEnded,
    Noted,
    RepositoryChanged,
)
from forge_actors.domain.clock_steps import shifted
from forge_actors.domain.errors import (
    StaleFence,
    StoreDamaged,
    StoreFailed,
    WriterFenced,
)
from forge_actors.domain.events import Event
from forge_actors.domain.policy_changes import PolicySet
from forge_actors.edges.sqlite.checking import DAMAGE
from forge_actors.edges.sqlite.commits import Commits
from forge_actors.edges.sqlite.connection import grow_log, has_room, open_connections
from forge_actors.edges.sqlite.move import Move
from forge_actors.edges.sqlite.owned import DISK_ERRORS
from forge_actors.edges.sqlite.tally import Tally
from forge_actors.edges.sqlite.upkeep import RESPECIFY, UpkeptStore
from forge_actors.edges.sqlite.writing import WRITERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from forge_actors.domain.ports import Clock

log = logging.getLogger(__name__)

#: Turns of the loop that an urgent commit waits for more moves to join it.
SETTLE_TURNS = 2
#: Seconds until a lazy move is committed if no other move comes along.
LAZY_SECONDS = 0.25
#: Specs of waiting jobs kept in memory, about 1 KB each.
SPECS_IN_MEMORY = 4096
#: Seconds between two tries to save what the disk would not take.
RETRY_SECONDS = 1.0


class SqliteStore(UpkeptStore):
    """The port `Store` on one SQLite file. Made by `open_store`."""

    def __init__(
        self,
        writer: apsw.Connection,
        reader: apsw.Connection,
        *,
        limits: RepositoryLimits,
    ) -> None:
        super().__init__(writer, reader, limits)
        #: The events of the open transaction.
        self._events: list[Event] = []
        self.commits = Commits()
        #: Why nothing can be saved now, or None; and whether something can.
        self.trouble: str | None = None
        self.saving = AsyncBool(True)
        self._damage: StoreDamaged | None = None
        #: Moves that are not durable yet, oldest first.
        self._moves: list[Move] = []
        self._pending = trio.Event()
        self._urgent = trio.Event()
        self._count()
        #: What its users do when they are cancelled is saved too.
        self._scope = trio.CancelScope(shield=True)

    def _count(self) -> None:
        #: How many jobs there are, by repository and state.
        self.tally = Tally(self.read("job_counts"), self.read("jobs_apart"))
        #: Whom to tell of the changes that became durable, by their type.
        self._published: dict[type, Callable[[Any], None]] = {
            **self.tally.counters,
            JobAdded: self._added,
            JobEnded: self._ended,
            RepositoryChanged: self._changed,
            PolicySet: self._policed,
        }
        #: Who heeds changes when they are written, by their type.
        self._heeded: dict[type, Callable[[Any], None]] = {
            JobAdded: self._accepted,
            **dict.fromkeys(RESPECIFY, self._specified),
            RepositoryChanged: self._changed,
            PolicySet: self._policy_set,
        }
        self._look_at_policy()
        self.active = self.tally.active

    # -- whose it is -----------------------------------------------------------------

    def _give_up(self, error: WriterFenced) -> None:
        """Refuse all that is not durable, and everything from now on."""
        self._fence = error
        self.trouble = str(error)
        self.saving.value = False
        self._events.clear()
        self.active = self.read("active_total")[0][0]
        moves, self._moves = self._moves, []
        for move in moves:
            move.settle(error)
        self._pending.set()
        self._urgent.set()
        self._fenced.set()

    # -- saving ----------------------------------------------------------------------

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Move:
        """See the port. While the disk is full, what accepts something new is refused
        and everything else is kept to be saved later.

        Raises:
            StoreFailed: nothing new can be accepted now.
            WriterFenced: another runtime has the store.
            StaleFence: it is of an attempt that is not the current one; the history
                says so.
        """
        move = Move(changes, then)
        if self._vacuum is None:
            self._take(move)
        else:
            self._vacuum.hold(move)
        if not self._pending.is_set():
            self._pending.set()
        if not lazy and not self._urgent.is_set():
            self._urgent.set()
        return move

    def hasten(self) -> None:
        """See the port. To wake our task instead would take three steps an exit."""
        if self._vacuum is not None:
            self._urgent.set()
        elif self._moves and not self._urgent.is_set():
            with suppress(StoreDamaged):  # `run` is woken, and ends with it
                self.commit()

    def _take(self, move: Move) -> None:
        if self.trouble is None:
            self._write_or_hold_back(move)
        elif self._fence is not None:
            raise self._fence
        elif move.refusable:
            raise self._refusal()
        else:
            self._moves.append(move)

    def _write_or_hold_back(self, move: Move) -> None:
        try:
            self._write(move.changes)
        except DISK_ERRORS as error:
            self._moves.append(move)
            self._hold_back(error)
            if move.error is not None:
                raise move.error from error
        except WriterFenced as error:
            self._give_up(error)
            raise
        except DAMAGE as error:
            raise self.damaged(error) from error
        except BaseException as error:
            # A part of it may be in the transaction. What is there besides is known, so
            # it is written anew; a savepoint for each move would cost more, every time.
            self._roll_back()
            for other in self._moves:
                self._write(other.changes)
            if isinstance(error, StaleFence):
                self._note(error, move)
            raise
        else:
            self._moves.append(move)

    def _note(self, error: StaleFence, move: Move) -> None:
        """Tell in the history that a late attempt was not listened to."""
        about = next(
            c.event for c in move.changes if c.event and c.event.job == error.job
        )
        data = {"reason": error.code, "attempt": error.attempt, "fence": error.fence}
        event = Event("write_refused", about.at, about.repo, error.job, data)
        self.save([Noted(event)])

    def _write(self, changes: Sequence[Change]) -> None:
        """Add the changes to the open transaction; after an error it must be undone."""
        if not self._db.in_transaction:
            self._guard.begin(changes)
        ahead = 0.0 if self.clock is None else self.clock.ahead()
        db, sql, events = self._db, self._sql, self._events
        for change in changes:
            if ahead:
                change = shifted(change, ahead)
            kind = type(change)
            WRITERS[kind](db, sql, change)
            if change.event is not None:
                events.append(change.event)
            heed = self._heeded.get(kind)
            if heed is not None:
                heed(change)

    def damaged(self, error: BaseException) -> StoreDamaged:
        """Whoever finds it: nothing more is promised on it, and `run` ends with it."""
        self._damage = super().damaged(error)
        self._pending.set()
        self._urgent.set()
        return self._damage

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Commit, whenever something was saved, until `close`.

        Raises:
            StoreDamaged: somebody found out that it is.
        """
        with self._scope:
            while True:
                await self._pending.wait()
                if not self._urgent.is_set():
                    with trio.move_on_after(LAZY_SECONDS):
                        await self._urgent.wait()
                for _ in range(SETTLE_TURNS):
                    await trio.lowlevel.cancel_shielded_checkpoint()
                await self.quiet()
                if self._damage is not None:
                    raise self._damage
                self._pending, self._urgent = trio.Event(), trio.Event()
                self.commit()
                while self.trouble is not None:
                    if self._fence is not None:
                        return
                    await trio.sleep(RETRY_SECONDS)
                    self._retry()

    def close(self) -> None:
        """Commit once more, then never again."""
        self._scope.cancel()
        self.commit()
        self.trouble = self.trouble or "the store is closed"

    def commit(self) -> None:
        """Make everything saved so far durable, and tell those who wait for it."""
        if self.trouble is not None or self._damage is not None:
            return
        try:
            self._end_transaction()
        except DISK_ERRORS as error:
            self._hold_back(error)
        except DAMAGE as error:
            raise self.damaged(error) from error
        else:
            self._publish()

    def _end_transaction(self) -> None:
        if self._db.in_transaction:
            first, moves = self.committed.value + 1, len(self._moves)
            self.commits.end(self._db, self._sql, first, self._events, moves)

    def _publish(self) -> None:
        moves, self._moves = self._moves, []
        last = self.committed.value + len(self._events)
        self._events = []
        published = self._published
        for move in moves:
            for change in move.changes:
                tell = published.get(type(change))
                if tell is not None:
                    tell(change)
        for move in moves:
            move.settle()
            if move.then is not None:
                move.then()
        self.committed.value = last

    def _added(self, change: JobAdded) -> None:
        self.tally.added(change)
        if len(self._specs) < SPECS_IN_MEMORY:
            self._specs[change.job.id] = change.spec

    def _ended(self, change: JobEnded) -> None:
        self.tally.ended(change)
        self.active -= 1
        self._specs.pop(change.job, None)
        self.ends.tell(change.job, change.state, change.event.repo)

    def once_ended(self, notify: Callable[[], object]) -> None:
        """See the port. Nobody pays for it while nobody waits."""

        def ended(change: JobEnded) -> None:
            self._published[JobEnded] = self._ended
            self._ended(change)
            notify()

        self._published[JobEnded] = ended

    def _hold_back(self, error: apsw.Error) -> None:
        """The disk takes nothing: refuse what is new, keep the rest for later."""
        self._roll_back()
        self.trouble = str(error) or type(error).__name__
        log.error("nothing can be saved now: %s", self.trouble)
        self.saving.value = False
        for move in self._moves:
            if move.refusable:
                move.settle(self._refusal())
        self._moves = [move for move in self._moves if move.error is None]
        self._pending.set()
        self._urgent.set()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._events.clear()
        self.active = self.read("active_total")[0][0]
        self._look_at_policy()

    def _refusal(self) -> StoreFailed:
        return StoreFailed(f"nothing can be saved now: {self.trouble}")

    def _retry(self) -> None:
        try:
            for move in self._moves:
                self._write(move.changes)
            self._end_transaction()
        except DISK_ERRORS:
            self._roll_back()
            return
        except WriterFenced as error:
            self._give_up(error)
            return
        except DAMAGE as error:
            raise self.damaged(error) from error
        self._publish()
        if has_room(Path(self._db.filename)):
            self.trouble = None
            log.info("everything is saved again")
            self.saving.value = True


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    repository_workers: int,
    overtake_after: float,
    known: frozenset[str] | None = None,
    backoff: Backoff = DEFAULT,
    isolates: bool = False,
    lasting: bool = False,
    clock: Clock | None = None,
) -> AsyncIterator[SqliteStore]:
    """The store at `path`, made if there is none; committing while the block lasts.

    One that is `lasting` is made ready for many commits, which takes a moment.

    Raises:
        StoreFromTheFuture: a newer version wrote it; nothing was touched.
        StoreFailed: it cannot be opened or is damaged.
    """
    writer, reader = open_connections(path)
    try:
        if lasting:
            with suppress(*DISK_ERRORS):
                grow_log(writer, path.parent)
        limits = RepositoryLimits(
            repository_workers, overtake_after, known, backoff, isolates
        )
        store = SqliteStore(writer, reader, limits=limits)
        store.clock = clock
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            try:
                yield store
            finally:
                store.close()
    finally:
        reader.close()
        writer.close()
