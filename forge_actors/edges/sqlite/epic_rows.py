"""Runs of EPICs as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.epic_changes import EpicSaved, EpicsForgotten

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

Queries = dict[str, str]


def _save(db: apsw.Connection, sql: Queries, change: EpicSaved) -> None:
    row = (
        *(change.epic, change.active, change.request),
        *(change.target, change.needs, change.body),
    )
    db.execute(sql["save_epic"], row)


def _forget(db: apsw.Connection, sql: Queries, change: EpicsForgotten) -> None:
    db.execute(sql["forget_epics"], (change.kept,))


#: See `forge_actors.edges.sqlite.writing`.
WRITERS: dict[type, Callable[[apsw.Connection, Queries, Any], None]] = {
    EpicSaved: _save,
    EpicsForgotten: _forget,
}
