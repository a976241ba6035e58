"""The changes of a clean-up as rows: what goes, and what is known of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.maintenance import CleanRun

if TYPE_CHECKING:
    import apsw

    from forge_actors.domain.changes import (
        ClassVisited,
        CleanRunChanged,
        EventsForgotten,
        JobsForgotten,
    )

#: Of so many removed jobs it is known that they were there.
KEPT_IN_MIND = 100_000

_encode = msgspec.json.Encoder().encode


def forget_jobs(
    db: apsw.Connection, sql: dict[str, str], change: JobsForgotten
) -> None:
    ids = _encode([each.job for each in change.jobs]).decode()
    db.execute(sql["keep_in_mind"], (change.forgotten_at, ids))
    db.execute(sql["forget_jobs"], (ids,))


def forget_events(
    db: apsw.Connection, sql: dict[str, str], change: EventsForgotten
) -> None:
    db.execute(sql["forget_history"], (change.until,))


def keep_visit(db: apsw.Connection, sql: dict[str, str], change: ClassVisited) -> None:
    visit = change.visit
    report = None if visit.report is None else _encode(visit.report)
    values = (visit.clean_class, visit.visited_at, visit.cursor, report, visit.size)
    db.execute(sql["keep_visit"], values)


def keep_run(db: apsw.Connection, sql: dict[str, str], change: CleanRunChanged) -> None:
    run = change.run
    values = [getattr(run, name) for name in CleanRun.__struct_fields__]
    db.execute(sql["keep_run"], values)
    if run.ended_at is not None:
        db.execute(sql["forget_forgotten"], (KEPT_IN_MIND,))
