"""Who may write: the epoch of the owner, looked at within every transaction.

A lock of the kernel keeps a second runtime away from a home. Where it does not hold, on
a shared folder or after somebody removed it, a late writer is refused here: from the
moment a younger runtime took the store over nothing of an older one is saved any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.ownership import Owner, fenced

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from forge_actors.domain.changes import Change


class Guard:
    """Begins the transactions of one writer, as long as the store is its own."""

    def __init__(self, db: apsw.Connection, sql: dict[str, str]) -> None:
        self._db = db
        self._begin = f"BEGIN IMMEDIATE; {sql['owner_now']}"
        self._look = sql["owner_now"]
        self._find = sql["owner"]
        self._take_over = sql["take_over"]
        #: As whom it took the store over, if it did.
        self.owner: Owner | None = None
        self._now: tuple[int | None, str | None] = (None, None)

    def take_over(
        self, instance: str, process: ProcessIdentity, release: str, now: float
    ) -> Owner:
        """Become the owner, with an epoch one larger than the last; durable at once."""
        with_identity = (
            instance,
            process.pid,
            process.start_ticks,
            process.boot_id,
            process.namespace,
            release,
            now,
        )
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute(self._take_over, with_identity)
            self.owner = self._found(self._db)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        assert self.owner is not None, "its row was just written"
        self._now = (self.owner.epoch, self.owner.instance)
        return self.owner

    def begin(self, first: Sequence[Change]) -> None:
        """Begin a transaction, for these changes and what comes along with them.

        Raises:
            WriterFenced: somebody else has the store by now; there is no transaction.
        """
        [now] = self._db.execute(self._begin)
        if now == self._now:
            return
        found = self._found(self._db)
        self._db.execute("ROLLBACK")
        raise fenced(self.owner, found, first)

    def check(self, reader: apsw.Connection) -> None:
        """Look without a transaction of our own, so that nobody is waited for.

        Raises:
            WriterFenced: somebody else has the store by now.
        """
        [now] = reader.execute(self._look)
        if now != self._now:
            raise fenced(self.owner, self._found(reader), ())

    def _found(self, db: apsw.Connection) -> Owner | None:
        rows = db.execute(self._find).fetchall()
        return owner_from(rows[0]) if rows else None


def owner_from(row: tuple[Any, ...]) -> Owner:
    """A row of the query `owner`."""
    epoch, instance, pid, start_ticks, boot_id, namespace, release, at = row
    process = ProcessIdentity(boot_id, pid, start_ticks, namespace)
    return Owner(epoch, instance, process, release, at)
