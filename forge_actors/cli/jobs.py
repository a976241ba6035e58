"""`jobs`: list jobs, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forge_actors.cli.job_text import TAIL, Json, reason, title
from forge_actors.cli.selection import add_filters, parameters
from forge_actors.cli.text import span, table, terminal_width
from forge_actors.cli.verb import UsageError, note, print_json
from forge_actors.client.home import has_store
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Unavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

HELP = "List jobs, the newest first. The printed tail of an id selects the job."
EXAMPLES = """\
  forge-actors jobs
  forge-actors jobs --state failed --repo app --limit 20
  forge-actors jobs --active --json
"""
HEAD = ("ID", "STATE", "KIND", "PRI", "REPO", "NAME", "AGE", "REASON")
PAGE = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_filters(parser)
    add("--active", action="store_true", help="only jobs that have not ended")
    add("--limit", type=int, metavar="N", help="at most N jobs (default: 100)")
    add("--all", action="store_true", help="all of them")


def run(args: argparse.Namespace) -> int:
    if args.limit is not None and args.limit < 1:
        raise UsageError("--limit: must be at least 1")
    limit = None if args.all else (args.limit or 100)
    service = Service(args.home)
    try:
        jobs = _fetch(
            lambda query: service.get("jobs", query=query)["jobs"], args, limit
        )
    except Unavailable:
        if not has_store(service.home):
            raise
        # Only now: reading a store costs imports that a client must not pay for.
        from forge_actors.client import offline

        jobs = _fetch(lambda query: offline.jobs(service.home, query), args, limit)
        note(f"no service runs on {service.home}; this is what its store holds")
    if args.json:
        print_json(jobs)
        return 0
    now = datetime.now(UTC)
    rows = [_row(job, now) for job in jobs]
    # NAME gives way first, then REASON and REPO; the rest is short.
    lines = table(HEAD, rows, columns=terminal_width(), flexible=(4, 5, 7))
    print("\n".join(lines))
    if limit is not None and args.limit is None and len(jobs) == limit:
        note(f"only the newest {limit} jobs; --all shows all of them")
    return 0


def _fetch(
    read_page: Callable[[list[tuple[str, str | int | None]]], list[Json]],
    args: argparse.Namespace,
    limit: int | None,
) -> list[Json]:
    wanted = parameters(args)
    if args.active:
        wanted.append(("active", 1))
    jobs: list[Json] = []
    while limit is None or len(jobs) < limit:
        size = PAGE if limit is None else min(PAGE, limit - len(jobs))
        query: list[tuple[str, str | int | None]] = [
            *wanted,
            ("limit", size),
            ("before", jobs[-1]["id"] if jobs else None),
        ]
        page = read_page(query)
        jobs += page
        if len(page) < size:
            break
    return jobs


def _row(job: Json, now: datetime) -> tuple[str, ...]:
    age = (now - datetime.fromisoformat(job["created_at"])).total_seconds()
    return (
        job["id"][-TAIL:],
        job["state"],
        job["kind"],
        job["priority"],
        job["repo"],
        title(job),
        span(age),
        reason(job),
    )
