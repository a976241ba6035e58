"""Looking into a store that another process owns: named queries, and nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import apsw

from forge_actors.domain.errors import StoreFailed
from forge_actors.edges.sqlite.copying import check_ours, opened_to_read
from forge_actors.edges.sqlite.statements import queries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class StoreLook:
    """The store as it is at each question."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._sql = queries()

    def read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a named query.

        Raises:
            StoreFailed: they cannot be read.
        """
        try:
            return self._db.execute(self._sql[query], values).fetchall()
        except apsw.Error as error:
            raise StoreFailed(f"the store cannot be read: {error}") from error


@contextmanager
def opened_look(path: Path, *, touching: bool = True) -> Iterator[StoreLook]:
    """A look into the store at `path`. Not `touching`, no file beside it is made.

    Raises:
        StoreFailed: it cannot be read. StoreFromTheFuture: it is a newer release's.
    """
    try:
        with opened_to_read(path, touching=touching) as db:
            check_ours(db, path)
            yield StoreLook(db)
    except apsw.Error as error:
        raise StoreFailed(f"the store {path} cannot be read: {error}") from error
