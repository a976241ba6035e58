"""The half of a store that knows whose it is."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import apsw
import trio
from trio_util import AsyncValue

from forge_actors.domain.errors import StoreFailed, WriterFenced
from forge_actors.edges.sqlite import history
from forge_actors.edges.sqlite.connection import cause
from forge_actors.edges.sqlite.guard import Guard
from forge_actors.edges.sqlite.reading import StoreReader

if TYPE_CHECKING:
    from forge_actors.domain.capacity import RepositoryLimits
    from forge_actors.domain.launch import ProcessIdentity
    from forge_actors.domain.ownership import Owner

#: What goes away when there is room again, or when whoever else has the file is done.
DISK_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.BusyError,
)


class OwnedStore(StoreReader):
    """A store that one runtime at a time may write to."""

    def __init__(
        self,
        writer: apsw.Connection,
        reader: apsw.Connection,
        limits: RepositoryLimits,
    ) -> None:
        super().__init__(writer, reader, limits)
        self._guard = Guard(writer, self._sql)
        #: Set once another runtime has the store: nothing is saved here ever again.
        self._fenced = trio.Event()
        self._fence: WriterFenced | None = None
        #: The `seq` of the last event that is durable.
        self.committed = AsyncValue(history.last(reader, self._sql))

    @abstractmethod
    def _count(self) -> None:
        """Count the jobs anew."""

    @abstractmethod
    def _give_up(self, error: WriterFenced) -> None:
        """Refuse all that is not durable, and everything from now on."""

    def last_event(self) -> int:
        """The number of the last event that is durable."""
        return int(self.committed.value)

    @property
    def owner(self) -> Owner | None:
        """As whom it writes; None before `take_over`."""
        return self._guard.owner

    def take_over(
        self, instance: str, process: ProcessIdentity, release: str, now: float
    ) -> Owner:
        """See the port.

        Raises:
            StoreFailed: it could not be saved.
        """
        try:
            owner = self._guard.take_over(instance, process, release, now)
        except DISK_ERRORS as error:
            raise StoreFailed(f"nothing can be saved now: {cause(error)}") from error
        last = history.last(self.reader, self._sql)
        if last != self.committed.value:
            # Whoever had it went on between our look at it and the take-over.
            self.committed.value = last
            self._count()
        return owner

    def check_owner(self) -> None:
        """Look whether another runtime has the store, before anything is to be saved.

        Raises:
            WriterFenced: one has.
        """
        try:
            self._guard.check(self.reader)
        except WriterFenced as error:
            self._give_up(error)
            raise

    async def wait_fenced(self) -> None:
        """Wait until another runtime has the store.

        Raises:
            WriterFenced: one has; what was not durable was refused.
        """
        await self._fenced.wait()
        assert self._fence is not None
        raise self._fence
