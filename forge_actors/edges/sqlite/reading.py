"""What can be asked of a store: committed rows for readers, all of them for actors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import convert, json

from forge_actors.domain.causes import Traits
from forge_actors.domain.clock_steps import take_in
from forge_actors.domain.day_budgets import DayUse
from forge_actors.domain.errors import NotFound, Refused, StoreDamaged, Unavailable
from forge_actors.domain.inbox import Mark
from forge_actors.domain.jobs import TERMINAL, Job, JobSpec, State
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.looking import look_from
from forge_actors.domain.maintenance import removed_by_retention
from forge_actors.domain.policies import Policy
from forge_actors.domain.repositories import Repository
from forge_actors.domain.schedules import Occurrence
from forge_actors.domain.spending import used_before
from forge_actors.domain.webhooks import HookMark
from forge_actors.edges.sqlite import history
from forge_actors.edges.sqlite.checking import DAMAGE, found_in_use
from forge_actors.edges.sqlite.ends import Ends
from forge_actors.edges.sqlite.rows import (
    account_from,
    claims_from,
    job_from,
    pause_from,
    poison_from,
    quarantine_from,
    spec_from,
    worktree_from,
)
from forge_actors.edges.sqlite.spending import usage_from
from forge_actors.edges.sqlite.statements import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.accounts import Account
    from forge_actors.domain.agentless import AgentProblem
    from forge_actors.domain.agents import Usage
    from forge_actors.domain.capacity import RepositoryLimits
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.events import Event
    from forge_actors.domain.looking import Look
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.worktrees import Worktree

#: An id has 19 characters; at least 4 of them select.
_SELECTOR = re.compile(r"[0-9a-z]{4,19}")


class StoreReader:
    """The reading half of a store."""

    def __init__(
        self,
        writer: apsw.Connection,
        reader: apsw.Connection,
        limits: RepositoryLimits,
    ) -> None:
        self._db = writer
        #: Sees only what is committed; for everybody who reads to tell others.
        self.reader = reader
        self._sql = queries()
        #: What ledgers go by that are loaded from now on.
        self.limits = limits
        #: The clock of the runtime; without one moments are stored as they come.
        self.clock: Clock | None = None
        #: Says why the program of an agent cannot run; without it all of them can.
        self.agent_problem: AgentProblem | None = None
        #: Specs of the jobs accepted last, so that most starts need not read theirs.
        self._specs: dict[str, JobSpec] = {}
        #: For those who know that a job has not ended yet; for others `when_ended`.
        self.ends = Ends()
        #: Whom to tell of a policy.
        self._of_policy: list[Callable[[], object]] = []

    def damaged(self, error: BaseException) -> StoreDamaged:
        """What is raised when a page turns out not to be what was written."""
        return found_in_use(error)

    def read(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        """The committed rows of a named query."""
        return self._rows(self.reader, name, values)

    def events(self, after: int, limit: int) -> list[Event]:
        """The first durable events with a larger `seq` than `after`."""
        try:
            return history.read(self.reader, self._sql, after, limit)
        except apsw.ConnectionClosedError:
            raise Unavailable("the runtime has ended") from None
        except DAMAGE as error:
            raise self.damaged(error) from error

    def find_events(
        self, after: int, until: int, fields: Mapping[str, Sequence[str]]
    ) -> list[Event]:
        """The durable events up to `until` whose `fields` have one of the values."""
        try:
            return history.find(self.reader, self._sql, after, until, fields)
        except apsw.ConnectionClosedError:
            raise Unavailable("the runtime has ended") from None
        except DAMAGE as error:
            raise self.damaged(error) from error

    def read_pending(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a named query, those included that are not durable yet."""
        return self._rows(self._db, name, values)

    def _rows(
        self, db: apsw.Connection, name: str, values: tuple[object, ...]
    ) -> list[tuple[Any, ...]]:
        try:
            return db.execute(self._sql[name], values).fetchall()
        except apsw.ConnectionClosedError:
            raise Unavailable("the runtime has ended") from None
        except DAMAGE as error:
            raise self.damaged(error) from error

    def match(self, selector: str) -> str:
        """The id that a selector means: itself, or a unique prefix or tail of one.

        Raises:
            NotFound: no job, or the selector is too short to be one.
            Refused: several jobs; some of them are named.
        """
        if not _SELECTOR.fullmatch(selector):
            raise NotFound(f"{selector!r} is no job id, nor 4 characters of one")
        for query in ("match_job", "match_job_tail"):
            found = [str(row[0]) for row in self.read(query, selector)]
            if selector in found or len(found) == 1:
                return selector if selector in found else found[0]
            if found:
                raise Refused(f"{selector!r} could be any of {', '.join(found)}, ...")
        raise self.not_found(selector)

    def not_found(self, selector: str) -> NotFound:
        """That there is no such job, or that there is none any more."""
        for (job,) in self.read("was_forgotten", selector):
            return removed_by_retention(str(job))
        return NotFound(f"no job has the id {selector!r}")

    def load(self, repo: str) -> Ledger:
        """See the port."""
        [row] = self.read_pending("load_repository", repo)
        fence, enabled, removed, keeps, avoids, scope = row[:6]
        left = self.read_pending("quarantines_of", repo) if keeps else ()
        aside = self.read_pending("poisons_of", repo) if avoids else ()
        return Ledger(
            repo,
            fence=fence,
            enabled=bool(enabled) and removed is None,
            workers=self.limits.workers,
            overtake_after=self.limits.overtake_after,
            known=self.limits.known,
            pause=None if scope is None else pause_from(row[5:]),
            backoff=self.limits.backoff,
            isolates=self.limits.isolates,
            agent_problem=self.agent_problem,
            quarantined=map(quarantine_from, left),
            poisoned=map(poison_from, aside),
        )

    def load_jobs(self, repo: str) -> list[Job]:
        """The jobs of a repository that have not ended, oldest first."""
        rows = self.read_pending("load_jobs", repo)
        return self._taken_in([job_from(repo, row) for row in rows])

    def load_readable_jobs(
        self, repo: str
    ) -> tuple[list[Job], dict[str, tuple[State, Exception]]]:
        """See the port."""
        jobs: list[Job] = []
        unreadable: dict[str, tuple[State, Exception]] = {}
        for row in self.read_pending("load_jobs", repo):
            try:
                jobs.append(job_from(repo, row))
            except Exception as error:  # noqa: BLE001 - whoever asked decides
                unreadable[row[0]] = (row[2], error)
        return self._taken_in(jobs), unreadable

    def _taken_in(self, jobs: list[Job]) -> list[Job]:
        if self.clock is not None:
            ahead, now = self.clock.ahead(), self.clock.now()
            for job in jobs:
                take_in(job, ahead, now)
        return jobs

    def repositories(self) -> list[Repository]:
        """Every repository that is not removed."""
        names = Repository.__struct_fields__
        rows = self.read("all_repositories")
        return [
            convert(dict(zip(names, row, strict=True)), Repository, strict=False)
            for row in rows
        ]

    def claims(self, repo: str) -> dict[str, tuple[Claim, ...]]:
        """See the port."""
        rows = self.read_pending("claims_of", repo)
        return {job: claims_from(text) for job, text in rows}

    def session_usage(self, agent: str, session: str) -> Usage | None:
        """See the port."""
        rows = self.read_pending("usage_of_session", agent, session)
        return used_before(map(usage_from, rows))

    def used_since(self, at: float) -> list[DayUse]:
        """See the port."""
        return [DayUse(*row) for row in self.read_pending("used_since", at)]

    def spec(self, job: str) -> JobSpec:
        spec = self._specs.pop(job, None)
        if spec is not None:
            return spec
        return spec_from(self.read_pending("job_spec", job)[0])

    def child_of(self, job: str) -> str | None:
        """See the port."""
        rows = self.read_pending("job_child", job)
        return rows[0][0] if rows else None

    def worktree(self, job: str) -> Worktree | None:
        """See the port."""
        rows = self.read_pending("worktree", job)
        return worktree_from(rows[0]) if rows else None

    def accounts(self) -> tuple[Account, ...]:
        """Those of the providers that were closed once."""
        return tuple(map(account_from, self.read_pending("accounts")))

    def read_policy(self) -> Policy:
        """The policy that was saved last."""
        rows = self.read_pending("policy")
        return Policy(*rows[0]) if rows else Policy()

    def inbox_marks(self) -> list[Mark]:
        """See the port."""
        return [Mark(*row) for row in self.read_pending("inbox_marks")]

    def schedules(self) -> list[tuple[str, str, bytes]]:
        """See the port."""
        return self.read_pending("schedules")

    def trusted(self, repo: str) -> tuple[bytes, bytes | None] | None:
        """See the port."""
        rows = self.read_pending("trusted", repo)
        return rows[0] if rows else None

    def trusting(self) -> list[str]:
        """See the port."""
        return [row[0] for row in self.read_pending("trusting")]

    def occurrences(self, schedule: str, limit: int) -> list[Occurrence]:
        """What became of the windows of a schedule, newest first."""
        rows = self.read("occurrences", schedule, limit)
        return [Occurrence(*row) for row in rows]

    def workflow(self, workflow: str) -> tuple[tuple[bytes, bytes], list[bytes]] | None:
        """See the port."""
        rows = self.read_pending("workflow", workflow)
        if not rows:
            return None
        steps = self.read_pending("workflow_steps", workflow)
        return rows[0], [row[0] for row in steps]

    def active_workflows(self) -> list[str]:
        """See the port."""
        return [row[0] for row in self.read_pending("active_workflows")]

    def workflow_of_request(self, request: str) -> str | None:
        """See the port."""
        rows = self.read_pending("workflow_of_request", request)
        return rows[0][0] if rows else None

    def controllers(self) -> list[tuple[str, str, bytes]]:
        """See the port."""
        return self.read_pending("controllers")

    def wake(self, wake: str) -> bytes | None:
        """See the port."""
        rows = self.read_pending("wake", wake)
        return rows[0][0] if rows else None

    def open_wakes(self, controller: str) -> list[bytes]:
        """See the port."""
        return [row[0] for row in self.read_pending("open_wakes", controller)]

    def epic(self, run: str) -> bytes | None:
        """See the port."""
        rows = self.read_pending("epic", run)
        return rows[0][0] if rows else None

    def active_epics(self) -> list[str]:
        """See the port."""
        return [row[0] for row in self.read_pending("active_epics")]

    def epic_of_request(self, request: str) -> str | None:
        """See the port."""
        rows = self.read_pending("epic_of_request", request)
        return rows[0][0] if rows else None

    def job_known(self, job: str) -> State | None:
        """See the port."""
        rows = self.read_pending("job_state", job)
        return rows[0][0] if rows else None

    def job_of_request(self, request_id: str) -> str | None:
        """See the port."""
        rows = self.read_pending("request_job", request_id)
        return rows[0][0] if rows else None

    def decided(self, occurrence: str) -> bool:
        """See the port."""
        return bool(self.read_pending("occurrence", occurrence))

    def ran(self, job: str) -> float:
        """See the port."""
        rows = self.read_pending("job_ran", job)
        return rows[0][0] if rows else 0.0

    def webhooks(self) -> list[HookMark]:
        """See the port."""
        return [HookMark(*row) for row in self.read_pending("webhooks")]

    def look(self, repo: str) -> Look | None:
        """See the port."""
        rows = self.read_pending("look", repo)
        return self.look_of(rows[0]) if rows else None

    def unfinished_looks(self) -> list[Look]:
        """See the port."""
        rows = self.read_pending("unfinished_looks")
        return list(map(self.look_of, rows))

    def oldest_look(self) -> str | None:
        """See the port."""
        rows = self.read_pending("oldest_look")
        return rows[0][0] if rows else None

    def look_of(self, row: tuple[Any, ...]) -> Look:
        """A row of the query `looks`, with the moments of this runtime."""
        look = look_from(row)
        if self.clock is None:
            return look
        return look.taken_in(self.clock.ahead(), self.clock.now())

    def hear_ends(self, repo: str, notify: Callable[[], object] | None) -> None:
        """See the port."""
        self.ends.hear(repo, notify)

    def state(self, job: str) -> State | None:
        """See the port."""
        rows = self.read("job_state", job)
        return rows[0][0] if rows else None

    def traits(self, job: str) -> Traits | None:
        """See the port."""
        for kind, name, labels, *begin in self.read("job_traits", job):
            return Traits(job, kind, name, tuple(json.decode(labels)), *begin)
        return None

    def window_of(self, job: str) -> str | None:
        """See the port."""
        rows = self.read("window_of", job)
        return rows[0][0] if rows else None

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        rows = self.read("job_state", job)
        if rows and rows[0][0] in TERMINAL:
            notify(rows[0][0])
        elif not rows and self.read("job_forgotten", job):
            notify("stale")
        else:
            self.ends.add(job, notify)
