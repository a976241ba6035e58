"""A home with a real store and real files, for the classes of the clean-up."""

from __future__ import annotations

import copy
import json
import time
from typing import TYPE_CHECKING, Any

from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.maintenance import CleanLimits, CleanOrder
from forge_actors.edges.cleanup import wire
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.runtime.cleanup.program import clean
from forge_actors.runtime.homes import STORE_FILE
from tests.runtime.cleanup_kit import Heard

if TYPE_CHECKING:
    from pathlib import Path

    from apsw import Connection

    from forge_actors.domain.cleaning import ClassReport, CleanClass

HOUR, DAY = 3600.0, 86_400.0


class Owner(Heard):
    """Forgets the rows of jobs that have ended, as the owner of the store does."""

    def __init__(self, db: Connection, cursors: dict[str, str | None]) -> None:
        super().__init__()
        self._cursors = cursors
        self._db = db
        self.removals: list[tuple[str, str]] = []
        self.skips: list[tuple[str, str]] = []

    def ask(self, question: wire.Question) -> wire.Answer:
        super().ask(question)
        if isinstance(question, wire.Visiting):
            return wire.Answer(cursor=self._cursors.get(question.clean_class))
        if isinstance(question, wire.Visited):
            self._cursors[question.report.clean_class] = question.report.cursor
        if not isinstance(question, wire.ForgetJobs):
            return wire.Answer()
        gone = []
        for job in question.jobs:
            self._db.execute(
                "DELETE FROM job WHERE id = ?1 AND finished_at IS NOT NULL"
                " AND id NOT IN (SELECT retry_of FROM job WHERE retry_of = ?1)",
                (job,),
            )
            if self._db.changes():
                gone.append(job)
        return wire.Answer(jobs=gone)

    def tell(self, told: wire.Told | wire.Done) -> None:
        super().tell(told)
        if isinstance(told, wire.Told):
            self.removals += [(each.what, each.reason) for each in told.removals]
            self.skips += [(each.what, each.reason) for each in told.skips]


class Home:
    """Files get the time of now, so a clean-up at another one is a later one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = time.time()
        for folder in ("logs", "receipts"):
            (path / folder).mkdir(parents=True)
        self.store = path / STORE_FILE
        self.owner = Owner
        #: Where the last visit of each class stopped.
        self.cursors: dict[str, str | None] = {}
        self.repository("r1")

    def at(self, path: Path) -> Home:
        """The same home, in another place to which its files were copied."""
        other: Home = copy.copy(self)
        other.path, other.store = path, path / STORE_FILE
        other.cursors = {}
        return other

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with opened_alone(self.store) as db:
            return db.execute(statement, values).fetchall()

    def repository(
        self, repo: str, *, path: str = "", removed_at: float | None = None
    ) -> None:
        self.execute(
            "INSERT INTO repository (id, name, path, common_dir, device, inode,"
            " enabled, added_at, removed_at)"
            " VALUES (?, ?, ?, '', 1, abs(random()), 1, 0, ?)",
            *(repo, repo, path, removed_at),
        )

    def job(
        self,
        job: str,
        ended: float | None = DAY,
        *,
        repo: str = "r1",
        after: list[str] | None = None,
        retry_of: str | None = None,
        output: int = 0,
    ) -> None:
        """One that ended so many seconds ago, or has not."""
        state = "queued" if ended is None else "succeeded"
        self.execute(
            "INSERT INTO job (id, repo, kind, state, priority, claims, after, replay,"
            " max_attempts, spec, labels, origin, retry_of, created_at, queued_at,"
            " finished_at) VALUES (?, ?, 'check', ?, 2, '[]', ?, 'never', 1, x'7b7d',"
            " '[]', '', ?, 0, 0, ?)",
            *(job, repo, state, json.dumps(after or []).replace(" ", ""), retry_of),
            None if ended is None else self.now - ended,
        )
        if output:
            self.log(job, output)

    def log(self, job: str, size: int = 4096, name: str = "1.stdout") -> Path:
        path = self.path / "logs" / f"{job}.{name}"
        path.write_bytes(bytes(size))
        return path

    def jobs(self) -> list[str]:
        return [job for (job,) in self.execute("SELECT id FROM job ORDER BY id")]

    def logs(self) -> list[str]:
        return sorted(path.name for path in (self.path / "logs").iterdir())

    def clean(
        self,
        *classes: CleanClass,
        later: float = 0.0,
        limits: CleanLimits | None = None,
        dry_run: bool = False,
        **rules: dict[str, Any],
    ) -> Owner:
        """One run of the clean-up, so many seconds from now."""
        owner = self.run(*classes, later=later, limits=limits, dry_run=dry_run, **rules)
        assert owner.done == [None]
        return owner

    def run(
        self,
        *classes: CleanClass,
        later: float = 0.0,
        limits: CleanLimits | None = None,
        dry_run: bool = False,
        **rules: dict[str, Any],
    ) -> Owner:
        """The same, which may find that it cannot do anything."""
        request = CleanRequest(
            str(self.path), self.now + later, dry_run=dry_run, classes=classes
        )
        order = CleanOrder(request, limits or CleanLimits(), rules=rules)
        with opened_alone(self.store) as db:
            owner = self.owner(db, self.cursors)
            clean(order, owner)
        return owner

    def report(self, name: CleanClass, **options: Any) -> ClassReport:
        found: ClassReport = self.clean(name, **options).reports[name]
        return found
