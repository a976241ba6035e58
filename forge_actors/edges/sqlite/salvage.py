"""What can still be read of a store, damaged or not."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from forge_actors.domain.errors import StoreFailed
from forge_actors.edges.sqlite.checking import DAMAGE
from forge_actors.edges.sqlite.copying import check_ours, opened_to_read

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

#: The tables whose rows are taken over, each with what orders it.
TABLES = {
    "repository": "id",
    "job": "id",
    "history": "first",
    "pause": "scope",
    "account": "provider",
    "policy": "one",
    "inbox": "item",
    "quarantine": "job",
    "worktree": "id",
    "usage": "id",
    "schedule": "id",
    "occurrence": "id",
    "trust": "repo",
    "workflow": "id",
    "workflow_step": "id",
    "controller": "id",
    "wake": "id",
    "epic_run": "id",
    "forgotten": "job",
    "owner": "one",
}


class Salvaged(NamedTuple):
    """The rows of each table by their key, and whether they are all there are."""

    tables: dict[str, dict[object, Row]]
    whole: bool

    def rows(self, table: str) -> dict[object, Row]:
        return self.tables.get(table, {})


NOTHING = Salvaged({}, whole=False)

_page = msgspec.json.Decoder(list[msgspec.Raw]).decode


def last_event(store: Salvaged) -> int:
    """The largest number of an event that can still be read; 0 if there is none."""
    last = 0
    for first, row in store.rows("history").items():
        assert isinstance(first, int)
        with suppress(msgspec.DecodeError, RecursionError):
            last = max(last, first + len(_page(row["events"])) - 1)
    return last


def read_store(path: Path) -> Salvaged:
    """Read from both ends of each table what the damage has left.

    Raises:
        StoreFromTheFuture: a newer release wrote it, so what it says is not for us.
    """
    tables: dict[str, dict[object, Row]] = {}
    whole = True
    try:
        with opened_to_read(path) as db:
            check_ours(db, path)
            for table, key in TABLES.items():
                tables[table], complete = _read_table(db, table, key)
                whole = whole and complete
    except (*DAMAGE, apsw.Error):
        whole = False
    return Salvaged(tables, whole)


def marks_of(path: Path) -> list[tuple[str, str, float]]:
    """Of every repository a store ever had: its common directory, its id, and when it
    was added.

    Raises:
        StoreFailed: it cannot be read, whoever wrote it.
    """
    try:
        with opened_to_read(path) as db:
            query = "SELECT common_dir, id, added_at FROM repository"
            rows = db.execute(query).fetchall()
    except apsw.Error as error:
        raise StoreFailed(f"{path} cannot be read: {error}") from error
    return [(str(common), str(repo), float(str(at))) for common, repo, at in rows]


def _read_table(
    db: apsw.Connection, table: str, key: str
) -> tuple[dict[object, Row], bool]:
    rows: dict[object, Row] = {}
    for direction in ("ASC", "DESC"):
        query = f"SELECT * FROM {table} ORDER BY {key} {direction}"  # noqa: S608
        try:
            cursor = db.execute(query)
            names: list[str] | None = None
            for values in cursor:
                if names is None:
                    names = [column[0] for column in cursor.get_description()]
                row = dict(zip(names, values, strict=True))
                if row[key] in rows:
                    break
                rows[row[key]] = row
            if direction == "ASC":
                return rows, True
        except apsw.SQLError:
            # An older release had no such table.
            return rows, True
        except (*DAMAGE, apsw.Error):
            continue
    return rows, False
