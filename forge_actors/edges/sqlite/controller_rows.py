"""Controllers as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.controller_changes import (
    ControllerRemoved,
    ControllerSaved,
    WakeSaved,
)
from forge_actors.domain.controllers import MAX_WAKES

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

Queries = dict[str, str]


def _save(db: apsw.Connection, sql: Queries, change: ControllerSaved) -> None:
    row = (change.controller, change.name, change.state, change.body)
    db.execute(sql["save_controller"], row)


def _save_wake(db: apsw.Connection, sql: Queries, change: WakeSaved) -> None:
    row = (change.wake, change.controller, change.number, change.state, change.body)
    db.execute(sql["save_wake"], row)
    db.execute(sql["trim_wakes"], (change.controller, MAX_WAKES))


def _remove(db: apsw.Connection, sql: Queries, change: ControllerRemoved) -> None:
    db.execute(sql["remove_controller"], (change.controller,))
    db.execute(sql["remove_wakes"], (change.controller,))


#: See `forge_actors.edges.sqlite.writing`.
WRITERS: dict[type, Callable[[apsw.Connection, Queries, Any], None]] = {
    ControllerSaved: _save,
    WakeSaved: _save_wake,
    ControllerRemoved: _remove,
}
