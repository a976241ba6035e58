"""Reads the jobs in the store of a home that nothing serves.

The answers are the JSON of the HTTP routes, without what only a running service knows
of a waiting job. The store is opened for reading alone.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import apsw
import msgspec

from forge_actors.client.errors import no_service
from forge_actors.client.home import STORE, has_store
from forge_actors.client.offline_agents import agent_of, verify_of
from forge_actors.client.offline_effects import effects
from forge_actors.domain.claims import Claim
from forge_actors.domain.damage import MARKER, read_marker, told
from forge_actors.domain.errors import (
    NotFound,
    Refused,
    StoreDamaged,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.domain.inputs import Input, input_text
from forge_actors.domain.jobs import JobView
from forge_actors.domain.maintenance import removed_by_retention
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.redaction import private_roots, redact, scrub
from forge_actors.domain.requests import convert
from forge_actors.domain.selection import (
    BLOCKED,
    FAILED,
    MAX_SELECTED,
    JobFilter,
    Selection,
    check_selection,
)
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.worktrees import Isolation, Worktree, worktree_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from forge_actors.domain.redaction import Roots

#: The newest schema this release can read.
SCHEMA = 14
BUSY_TIMEOUT_MS = 5000
SHORTEST_SELECTOR = 4
#: An id, or a part of one.
_SELECTOR = re.compile(r"[0-9a-z]{1,19}")
#: Where the words of a filter are looked for.
_COLUMNS = {
    "repo": ("repository.name", "repository.path"),
    "state": ("state",),
    "kind": ("kind",),
    "origin": ("origin",),
    "work": ("json_extract(CAST(spec AS TEXT), '$.work')",),
}

# An older release had no column `refused`: there the name is that of the joined zero.
_SELECT = """\
SELECT job.id, state, kind, repository.name AS repo, job.name, spec, priority, attempt,
    max_attempts, job.fence, claims, after, provider, replay, retry_of, labels, origin,
    request_id, created_at, queued_at, started_at, finished_at, error, receipt,
    (SELECT refused FROM job AS same WHERE same.id = job.id) AS refused
FROM job JOIN repository ON repository.id = job.repo
    JOIN (SELECT 0 AS refused)"""


def jobs(home: str, filters: Sequence[tuple[str, object]]) -> list[dict[str, Any]]:
    """The jobs that a `GET /v1/jobs` with these parameters would list.

    Raises:
        Unavailable: the home holds no store. StoreFromTheFuture: a newer one.
    """
    single = dict(filters)
    lists: dict[str, list[object]] = {
        name: [value for given, value in filters if given == name]
        for name in (*_COLUMNS, "label")
    }
    # Words that mean nothing are refused as the service would.
    convert({name: lists[name] for name in ("state", "kind")}, JobFilter)
    conditions, values = _conditions({**single, **lists})
    if single.get("before") is not None:
        conditions.append("job.id < ?")
        values.append(single["before"])
    return _newest(home, conditions, values, int(str(single.get("limit", 100))))


def selector(home: str) -> Callable[[dict[str, object]], list[str]]:
    """What answers a `POST /v1/select` from the store of `home`."""

    def select(body: dict[str, object]) -> list[str]:
        selection = convert(body, Selection)
        check_selection(selection)
        conditions, values = _conditions(body)
        if selection.jobs:
            ids = [job(home, text)["id"] for text in selection.jobs]
            conditions.append(f"job.id IN ({', '.join('?' * len(ids))})")
            values += ids
        found = _newest(home, conditions, values, MAX_SELECTED + 1)
        if len(found) > MAX_SELECTED:
            raise Refused(f"more than {MAX_SELECTED} jobs are selected; narrow it")
        return [view["id"] for view in found]

    return select


def _conditions(wanted: Mapping[str, object]) -> tuple[list[str], list[object]]:
    conditions = ["1"]
    values: list[object] = []
    for name, columns in _COLUMNS.items():
        words = wanted.get(name)
        if isinstance(words, list) and words:
            marks = ", ".join("?" * len(words))
            either = (f"{column} IN ({marks})" for column in columns)
            conditions.append(f"({' OR '.join(either)})")
            values += words * len(columns)
    labels = wanted.get("label")
    for label in labels if isinstance(labels, list) else []:
        conditions.append("EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)")
        values.append(label)
    if wanted.get("failed"):
        marks = ", ".join("?" * len(FAILED))
        blocked = "error IS NOT NULL AND json_extract(error, '$.code') = ?"
        conditions.append(f"(state IN ({marks}) OR ({blocked}))")
        values += (*FAILED, BLOCKED)
    if wanted.get("active"):
        conditions.append("finished_at IS NULL")
    return conditions, values


def _newest(
    home: str, conditions: Sequence[str], values: Sequence[object], limit: int
) -> list[dict[str, Any]]:
    where = " AND ".join(conditions)
    query = f"{_SELECT} WHERE {where} ORDER BY job.id DESC LIMIT ?"
    return _read(home, query, [*values, limit])


def job(home: str, selector: str) -> dict[str, Any]:
    """One job by its id, or by a unique prefix or tail of one.

    Raises:
        Unavailable: the home holds no store. NotFound, Refused: none, or several jobs.
    """
    if not _SELECTOR.fullmatch(selector):
        raise NotFound(f"{selector!r} is no job id, nor 4 characters of one")
    conditions = ["job.id = ?1"]
    if len(selector) >= SHORTEST_SELECTOR:
        conditions.append("substr(job.id, 1, length(?1)) = ?1")
        conditions.append("substr(job.id, -length(?1)) = ?1")
    for condition in conditions:
        found = _read(home, f"{_SELECT} WHERE {condition} LIMIT 2", [selector])
        if len(found) > 1:
            raise Refused(f"{selector!r} could be any of several jobs")
        if found:
            return found[0]
    for (job_id,) in _forgotten(home, selector):
        raise removed_by_retention(str(job_id))
    raise NotFound(f"no job has the id {selector!r}")


def _forgotten(home: str, selector: str) -> list[tuple[Any, ...]]:
    """The job of that id, or with that beginning, if retention has removed one."""
    query = "SELECT job FROM forgotten WHERE substr(job, 1, length(?1)) = ?1 LIMIT 1"
    with opened(home) as store:
        try:
            return store.execute(query, [selector]).fetchall()
        except apsw.SQLError:
            return []  # an older release made it, which removed nothing


def rows(home: str, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """What a query finds in the store of `home`."""
    with opened(home) as store:
        return store.execute(query, tuple(map(findable, values))).fetchall()


def findable(value: object) -> Any:
    """The value as SQLite can look for it: bytes that are no text are nowhere."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _read(home: str, query: str, values: Sequence[object]) -> list[dict[str, Any]]:
    names = _names()
    return [
        _view(home, dict(zip(names, row, strict=True)))
        for row in rows(home, query, values)
    ]


@contextmanager
def opened(home: str) -> Iterator[apsw.Connection]:
    """The store of a home, for reading alone.

    Raises:
        Unavailable: the home holds no store. StoreFromTheFuture: a newer one.
        StoreDamaged: it was set aside. StoreFailed: it cannot be read, or is no store.
    """
    _refuse_marked(home)
    if not has_store(home):
        raise no_service(home)
    path = os.path.join(home, STORE)
    try:
        store = _connection(path)
        try:
            store.set_busy_timeout(BUSY_TIMEOUT_MS)
            version = store.pragma("user_version")
            if not isinstance(version, int) or version > SCHEMA:
                raise StoreFromTheFuture
            yield store
        finally:
            store.close()
    except apsw.Error as error:
        raise StoreFailed(f"the store {path} cannot be read: {error}") from error


def check(home: str) -> str:
    """Look through the store of a home, whether it is served or not; what it is.

    Raises:
        ForgeError: as `opened`, or it is damaged.
    """
    with opened(home) as store:
        found = str(store.execute("PRAGMA quick_check(1)").fetchall()[0][0])
        if found != "ok":
            raise StoreDamaged(found.strip().splitlines()[-1])
        jobs = store.execute("SELECT count(*) FROM job").fetchall()[0][0]
        return f"whole, schema {store.pragma('user_version')}, {jobs} jobs"


def _refuse_marked(home: str) -> None:
    with suppress(FileNotFoundError), open(os.path.join(home, MARKER), "rb") as file:
        raise StoreDamaged(told(home, read_marker(file.read(4096))))


def _connection(path: str) -> apsw.Connection:
    # By URI and read-only, so that a reader can never make or change a store.
    uri = f"file:{quote(path)}?mode=ro"
    # A reader makes the files beside a store anew, which it cannot where nothing can be
    # written; but there nobody else can change the store either.
    if not (os.access(os.path.dirname(path), os.W_OK) or os.path.exists(f"{path}-wal")):
        uri += "&immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def roots_of(home: str) -> Roots:
    """The folders whose paths are not shown in errors, as for the runtime."""
    forge, user, temporary = (
        (folder, os.path.realpath(folder))
        for folder in (home, os.path.expanduser("~"), tempfile.gettempdir())
    )
    return private_roots(user, forge, temporary)


def _names() -> list[str]:
    columns = _SELECT.removeprefix("SELECT ").partition("\nFROM")[0].split(",")
    return [column.split()[-1].rpartition(".")[2] for column in columns]


def _problem(home: str, receipt: dict[str, Any]) -> str | None:
    if "error" not in receipt or receipt["ending"] in ("spawn", "lost"):
        return None
    return shown(home, receipt["error"])


def _usage(receipt: dict[str, Any]) -> dict[str, float]:
    if not receipt.get("identity"):
        return {}
    lost = {name: receipt[name] for name in _LOST if name in receipt}
    return {name: receipt.get(name, 0) for name in _USAGE} | lost


def _after_job(home: str, told: dict[str, Any] | None) -> dict[str, Any] | None:
    if told is None or "error" not in told:
        return told
    return {**told, "error": shown(home, told["error"])}


def _error(home: str, text: str | None) -> dict[str, str] | None:
    """An error as the runtime would have shown it."""
    if text is None:
        return None
    error: dict[str, str] = json.loads(text)
    return {**error, "message": shown(home, error["message"])}


def shown(home: str, message: str) -> str:
    """A message without secrets and private paths."""
    return scrub(redact(message), roots_of(home))


def _view(home: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as the JSON of a job, its fields in the order of `JobView`."""
    spec = json.loads(row["spec"])
    receipt = json.loads(row["receipt"] or "{}")
    claims = convert(json.loads(row["claims"]), list[Claim])
    started = receipt.get("started_at") or row["started_at"]
    finished = row["finished_at"]
    values = {
        **row,
        "argv": spec["argv"],
        "work": spec.get("work"),
        "cwd": spec["cwd"],
        "priority": PRIORITIES[row["priority"]],
        "exit_code": receipt.get("exit_code"),
        "signal": receipt.get("signal"),
        "forced": receipt.get("forced", False),
        "error": _error(home, row["error"]),
        "waiting": None,
        "claims": [str(claim) for claim in claims],
        "after": json.loads(row["after"]),
        "labels": json.loads(row["labels"]),
        "created_at": moment(row["created_at"]),
        "queued_at": moment(row["queued_at"]),
        "started_at": moment(started),
        "finished_at": moment(finished),
        "duration": _duration(started, finished),
        # Nothing serves this home, so no process of it can be ours any more.
        "pid": None,
        "paused": False,
        "usage": _usage(receipt),
        "leftovers": receipt.get("leftovers", []),
        "output_held": receipt.get("output_held", False),
        "budgets": spec.get("budgets", {}),
        "secrets": spec.get("secrets", []),
        "problem": _problem(home, receipt),
        "after_job": _after_job(home, receipt.get("after_job")),
        "artifacts": None,
        "inputs": [input_text(convert(one, Input)) for one in spec.get("inputs", ())],
        "outputs": None,
        "outputs_problem": None,
        "result": None,
        "paused_seconds": receipt.get("paused_seconds"),
        "agent": agent_of(spec, receipt, moment),
        "verify": verify_of(spec, row["attempt"]),
        "worktree": _worktree(home, row["id"], spec.get("isolation")),
        "effects": effects(spec, row["id"], receipt, moment),
    }
    return {name: values[name] for name in JobView.__struct_fields__}


def _worktree(
    home: str, job: str, isolation: dict[str, Any] | None
) -> dict[str, object] | None:
    if isolation is None:
        return None
    query = f"SELECT {', '.join(Worktree.__struct_fields__)} FROM worktree WHERE id = ?"  # noqa: S608
    names = Worktree.__struct_fields__
    owner = isolation.get("of") or job
    found = [dict(zip(names, row, strict=True)) for row in rows(home, query, [owner])]
    known = [msgspec.convert(row, Worktree, strict=False) for row in found]
    wanted = msgspec.convert(isolation, Isolation)
    return worktree_view(wanted, known[0] if known else None, os.path.abspath(home))


_USAGE = (
    "user_seconds",
    "system_seconds",
    "max_rss_kib",
    "stdout_bytes",
    "stderr_bytes",
)


_LOST = ("stdout_lost", "stderr_lost")


def _duration(started: float | None, finished: float | None) -> float | None:
    if started is None or finished is None:
        return None
    return round(max(0.0, finished - started), 3)


def moment(seconds: float | None) -> str | None:
    """A stored time as readers see it: RFC 3339, UTC, to the millisecond."""
    return None if seconds is None else timestamp(seconds)
