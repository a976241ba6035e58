"""Bringing a restored store up to what is known to have happened since."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from forge_actors.domain.claims import Claim
from forge_actors.domain.jobs import JobError, JobSpec
from forge_actors.domain.restoration import Standing, doubt, settle
from forge_actors.domain.trust import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.restoration import Trace
    from forge_actors.edges.sqlite.salvage import Row, Salvaged

_encode = msgspec.json.Encoder().encode
#: What a row must hold to be a job that can be loaded again.
_PARTS: tuple[tuple[str, Any], ...] = (
    ("spec", msgspec.json.Decoder(JobSpec)),
    ("claims", msgspec.json.Decoder(tuple[Claim, ...])),
    ("after", msgspec.json.Decoder(tuple[str, ...])),
    ("labels", msgspec.json.Decoder(tuple[str, ...])),
)


class _Definition(msgspec.Struct):
    source: str | None = None


class _Schedule(msgspec.Struct):
    definition: _Definition


_source = msgspec.json.Decoder(_Schedule)


class Settled(NamedTuple):
    """How many jobs became what, other than what the backup has them as."""

    #: Only in the store that is replaced, and taken over.
    added: int = 0
    #: Moved on since, and taken as they are now.
    moved: int = 0
    #: Begun since: the next start decides.
    reserved: int = 0
    #: Begun since, with an unknown end: a person has to look.
    doubtful: int = 0
    #: Nobody can tell whether they began: held until somebody says go.
    held: int = 0
    #: Had ended, and were removed by retention since.
    forgotten: int = 0
    #: Rows that were there and are no jobs any more.
    unreadable: int = 0


class Merge:
    """One transaction's worth of changes to a store that nobody else has open."""

    def __init__(self, db: apsw.Connection, now: float) -> None:
        self._db = db
        self._now = now
        self._counts = dict.fromkeys(Settled._fields, 0)
        self._columns = {
            table: [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
            for table in (
                "repository",
                "job",
                "pause",
                "account",
                "policy",
                "inbox",
                "quarantine",
                "worktree",
                "usage",
                "schedule",
                "occurrence",
                "trust",
                "workflow",
                "workflow_step",
                "controller",
                "wake",
                "epic_run",
                "forgotten",
                "owner",
            )
        }

    # -- what a home as a whole has --------------------------------------------------

    def repositories(self, latest: Salvaged, others: Iterable[Salvaged]) -> None:
        """Those of the latest store as they are there; no fence goes back."""
        fences = self._fences("SELECT id, fence FROM repository")
        for repo, row in latest.rows("repository").items():
            if repo in fences:
                self._update("repository", "id", row)
            else:
                self._insert("repository", row)
        for store in (latest, *others):
            told = list(store.rows("repository").items())
            told += [(row["repo"], row) for row in store.rows("job").values()]
            for repo, row in told:
                fences[repo] = max(fences.get(repo, 0), _whole(row["fence"]))
        for repo, fence in fences.items():
            self._raise_fence(repo, fence)

    def owner(self, stores: Iterable[Salvaged]) -> None:
        """The epoch of the last owner, so that the next one's is larger."""
        rows = [row for store in stores for row in store.rows("owner").values()]
        if not rows:
            return
        newest = max(rows, key=lambda row: _whole(row["epoch"]))
        held = self._db.execute("SELECT epoch FROM owner").fetchall()
        if not held:
            self._insert("owner", newest)
        elif _whole(held[0][0]) < _whole(newest["epoch"]):
            self._update("owner", "one", newest)

    def pauses(self, latest: Salvaged) -> None:
        """Nothing starts where either store says so."""
        held = {row[0] for row in self._db.execute("SELECT scope FROM pause")}
        for scope, row in latest.rows("pause").items():
            if scope not in held:
                self._insert("pause", row)

    def policy(self, latest: Salvaged) -> None:
        """The one that was changed last."""
        [(known,)] = self._db.execute("SELECT coalesce(max(revision), 0) FROM policy")
        for row in latest.rows("policy").values():
            if _whole(row["revision"]) > known:
                self._db.execute("DELETE FROM policy")
                self._insert("policy", row)

    def accounts(self, latest: Salvaged) -> None:
        """As the last one has them: they are of the providers, not of the home."""
        self._db.execute("DELETE FROM account")
        for row in latest.rows("account").values():
            self._insert("account", row)

    def marks(self, latest: Salvaged) -> None:
        """Nobody is told again of what they were told of since."""
        for item, row in latest.rows("inbox").items():
            self._db.execute("DELETE FROM inbox WHERE item = ?", (item,))
            self._insert("inbox", row)

    def schedules(self, latest: Salvaged) -> None:
        """How far each has come as the last one has it, or windows would run again; and
        so workflows, controllers and runs of EPICs."""
        for table in (
            *("schedule", "occurrence", "workflow", "workflow_step"),
            *("controller", "wake", "epic_run"),
        ):
            for key, row in latest.rows(table).items():
                self._db.execute(f"DELETE FROM {table} WHERE id = ?", (key,))  # noqa: S608
                self._insert(table, row)

    def trust(self, latest: Salvaged) -> None:
        """What is trusted now, and no more: a person may have taken it back since."""
        if latest.whole:
            self._db.execute("DELETE FROM trust")
        for repo, row in latest.rows("trust").items():
            self._db.execute("DELETE FROM trust WHERE repo = ?", (repo,))
            self._insert("trust", row)
        kept = {row[0] for row in self._db.execute("SELECT repo FROM trust")}
        for key, body in self._db.execute("SELECT id, body FROM schedule").fetchall():
            assert isinstance(body, bytes), "the schema says so"
            repo = _trusting(body)
            if repo is not None and repo not in kept:
                self._db.execute("DELETE FROM schedule WHERE id = ?", (key,))

    def worktrees(self, stores: Sequence[Salvaged]) -> None:
        """As the first of the stores that tells of each has them: a restore changes no
        folder, so what a backup says of one may be long past."""
        known = {row[0] for row in self._db.execute("SELECT id FROM repository")}
        told: dict[object, Row] = {}
        for store in stores:
            for worktree, row in store.rows("worktree").items():
                if row["repo"] in known:
                    told.setdefault(worktree, row)
        for worktree, row in told.items():
            self._db.execute("DELETE FROM worktree WHERE id = ?", (worktree,))
            self._insert("worktree", row)

    def usage(self, stores: Sequence[Salvaged]) -> None:
        """What was used stays so, whatever becomes of the jobs that did."""
        for store in reversed(stores):  # the first is right, so it comes last
            for used, row in store.rows("usage").items():
                self._db.execute("DELETE FROM usage WHERE id = ?", (used,))
                self._insert("usage", row)

    def history(self, latest: Salvaged) -> None:
        """What has been told since."""
        [(last,)] = self._db.execute("SELECT max(first) FROM history").fetchall()
        for first, row in sorted(latest.rows("history").items(), key=_first):
            if last is None or _whole(first) > _whole(last):
                values = (row["first"], row["events"])
                self._db.execute("INSERT INTO history VALUES (?, ?)", values)

    # -- jobs ------------------------------------------------------------------------

    def jobs(
        self,
        latest: Salvaged,
        others: Sequence[Salvaged],
        traces: Mapping[str, Trace],
        *,
        lived: bool,
    ) -> Settled:
        """Settle every job of the backup, and take over those that came later.

        `lived` says that something may have happened since the backup was made.
        """
        query = "SELECT id, state, attempt, replay, repo FROM job"
        saved = {
            str(row[0]): (Standing(row[1], row[2], row[3]), str(row[4]))
            for row in self._db.execute(query)
        }
        gone = self._forgotten((latest, *others))
        for job, (standing, repo) in saved.items():
            if job in gone and self._run("DELETE FROM job WHERE id = ?", (job,)):
                self._counts["forgotten"] += 1
                continue
            self._settle(job, repo, standing, latest, others, traces, lived=lived)
        for key, row in latest.rows("job").items():
            if key not in saved:
                self._add(str(key), row, traces)
        for row in latest.rows("quarantine").values():
            self._insert("quarantine", row)
        return Settled(**self._counts)

    def _forgotten(self, stores: Iterable[Salvaged]) -> set[str]:
        """What retention has removed stays so, and is known to have been there."""
        gone: set[str] = set()
        for store in stores:
            for job, row in store.rows("forgotten").items():
                gone.add(str(job))
                self._insert("forgotten", row)
        return gone

    def _settle(
        self,
        job: str,
        repo: str,
        saved: Standing,
        latest: Salvaged,
        others: Sequence[Salvaged],
        traces: Mapping[str, Trace],
        *,
        lived: bool,
    ) -> None:
        rows = [
            row for store in (latest, *others) if (row := store.rows("job").get(job))
        ]
        row = max(rows, key=_progress, default=None)
        newer = None if row is None else _standing(row)
        trace = traces.get(job)
        current = not lived or job in latest.rows("job")
        match settle(saved, newer, trace, current=current):
            case "keep":
                pass
            case "take":
                assert row is not None
                if self._readable(row) and self._update("job", "id", row):
                    self._counts["moved"] += 1
                else:
                    self._counts["unreadable"] += 1
            case "reserve":
                assert trace is not None
                self._reserve(job, repo, trace)
            case "ask":
                assert trace is not None
                self._ask(job, doubt(trace))
            case "hold":
                self._hold(job)

    def _add(self, job: str, row: Row, traces: Mapping[str, Trace]) -> None:
        """A job that only the later store has; its row may be older than its end."""
        if not (self._readable(row) and self._insert("job", row)):
            self._counts["unreadable"] += 1
            return
        self._counts["added"] += 1
        trace = traces.get(job)
        match settle(_standing(row), None, trace, current=True):
            case "reserve" if trace is not None:
                self._reserve(job, str(row["repo"]), trace)
            case "ask" if trace is not None:
                self._ask(job, doubt(trace))
            case _:
                pass

    def _reserve(self, job: str, repo: str, trace: Trace) -> None:
        self._db.execute(
            "UPDATE job SET state = 'dispatched', attempt = ?, fence = ?,"
            " dispatched_at = ?, started_at = NULL, identity = NULL, error = NULL,"
            " receipt = NULL WHERE id = ?",
            (trace.attempt, trace.fence, self._now, job),
        )
        self._raise_fence(repo, trace.fence)
        self._counts["reserved"] += 1

    def _ask(self, job: str, error: JobError) -> None:
        self._db.execute(
            "UPDATE job SET state = 'human_attention_required', error = ?,"
            " finished_at = ? WHERE id = ?",
            (_encode(error).decode(), self._now, job),
        )
        self._counts["doubtful"] += 1

    def _hold(self, job: str) -> None:
        hold = "UPDATE job SET held_at = coalesce(held_at, ?) WHERE id = ?"
        self._db.execute(hold, (self._now, job))
        self._counts["held"] += 1

    # -- rows ------------------------------------------------------------------------

    def _readable(self, row: Row) -> bool:
        try:
            for name, decoder in _PARTS:
                decoder.decode(row[name])
        except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
            return False
        found = "SELECT 1 FROM repository WHERE id = ?"
        return bool(self._db.execute(found, (row["repo"],)).fetchall())

    def _insert(self, table: str, row: Row) -> bool:
        """Insert a row; False if the schema forbids it."""
        names = [name for name in self._columns[table] if name in row]
        marks = ", ".join("?" * len(names))
        columns = ", ".join(names)
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
        return self._run(statement, [row[name] for name in names])

    def _update(self, table: str, key: str, row: Row) -> bool:
        names = [name for name in self._columns[table] if name in row and name != key]
        fields = ", ".join(f"{name} = ?" for name in names)
        statement = f"UPDATE {table} SET {fields} WHERE {key} = ?"  # noqa: S608
        return self._run(statement, [*(row[name] for name in names), row[key]])

    def _run(self, statement: str, values: Sequence[object]) -> bool:
        try:
            self._db.execute(statement, values)
        except (apsw.ConstraintError, apsw.MismatchError):
            return False
        return True

    def _raise_fence(self, repo: object, fence: int | None) -> None:
        raised = "UPDATE repository SET fence = max(fence, ?) WHERE id = ?"
        self._db.execute(raised, (fence or 0, repo))

    def _fences(self, query: str) -> dict[object, int]:
        return {row[0]: row[1] for row in self._db.execute(query)}


def _trusting(body: bytes) -> str | None:
    """The repository whose trust a schedule came from."""
    with suppress(msgspec.DecodeError, RecursionError):
        source = _source.decode(body).definition.source or ""
        if source.startswith(SOURCE):
            return source.removeprefix(SOURCE)
    return None


def _standing(row: Row) -> Standing:
    return Standing(row["state"], row["attempt"], row["replay"])


def _progress(row: Row) -> tuple[bool, int]:
    return row["finished_at"] is not None, _whole(row["attempt"])


def _first(item: tuple[object, Row]) -> int:
    return _whole(item[0])


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
