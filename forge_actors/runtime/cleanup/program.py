"""One run of the clean-up: visits the classes, the one that waited longest first.

A visit is written down before it begins. So a class that hangs, or ends the program, is
the last one in the next run, and no class can keep the others waiting for ever.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.domain.errors import StoreFailed, StoreFromTheFuture
from forge_actors.domain.maintenance import CleanResult, oldest_first
from forge_actors.edges.cleanup import wire
from forge_actors.edges.cleanup.folders import Unsafe
from forge_actors.edges.sqlite.looking import opened_look
from forge_actors.runtime.cleanup.classes import CLEANERS
from forge_actors.runtime.cleanup.desk import RunDesk
from forge_actors.runtime.cleanup.talk import RunOver
from forge_actors.runtime.homes import STORE_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.cleaning import CleanClass, Cleaner
    from forge_actors.domain.maintenance import CleanOrder
    from forge_actors.runtime.cleanup.talk import Talk

log = logging.getLogger(__name__)


def clean(
    order: CleanOrder, talk: Talk, cleaners: Mapping[CleanClass, Cleaner] = CLEANERS
) -> None:
    """Visit what the order names, and tell of it.

    Raises:
        RunOver: as soon as nothing more may be removed.
    """
    error: str | None = None
    path = Path(order.request.home) / STORE_FILE
    try:
        with opened_look(path, touching=order.claim is not None) as store:
            desk = RunDesk(order, store, talk)
            rows = desk.read("clean_classes")
            visited_at = {name: at for name, at, _ in rows}
            cursors = {name: cursor for name, _, cursor in rows}
            for name in oldest_first(visited_at, order.request.classes):
                if desk.out_of_time:
                    break
                desk.check_claim()
                _visit(cleaners.get(name), name, desk, talk, cursors.get(name))
    except (StoreFailed, StoreFromTheFuture) as failure:
        error = str(failure)
    talk.tell(wire.Done(error))


def _visit(
    cleaner: Cleaner | None,
    name: CleanClass,
    desk: RunDesk,
    talk: Talk,
    cursor: str | None,
) -> None:
    if not desk.request.dry_run:
        cursor = talk.ask(wire.Visiting(name)).cursor
    desk.begin(name)
    report = desk.report
    try:
        if cleaner is not None:
            report = cleaner.run(desk, cursor)
    except Unsafe as problem:
        desk.failed("", str(problem))
    except Exception as error:
        log.exception("the class %s failed", name)
        desk.failed("", f"{type(error).__name__}: {error}")
    report = desk.end(report)
    talk.ask(wire.Visited(report))


class PlanTalk:
    """The other end of a dry run that belongs to nobody: it gathers what it is told."""

    def __init__(self, most: int) -> None:
        self.result = CleanResult(dry_run=True)
        self._most = most

    def ask(self, question: wire.Question) -> wire.Answer:
        """See `Talk`."""
        if not isinstance(question, wire.Visited):
            raise RunOver("a dry run asks for nothing")
        self.result.reports.append(question.report)
        return wire.Answer()

    def tell(self, told: wire.Told | wire.Done) -> None:
        """See `Talk`."""
        if isinstance(told, wire.Done):
            self.result.error = told.error
            return
        room = self._most - len(self.result.removals)
        self.result.removals += told.removals[:room]
        room = self._most - len(self.result.skips)
        self.result.skips += told.skips[:room]


def plan(order: CleanOrder, most: int) -> CleanResult:
    """What a run would remove, at most so many things by name. Touches nothing."""
    talk = PlanTalk(most)
    try:
        clean(order, talk)
    except RunOver as over:
        talk.result.error = str(over)
    return talk.result
