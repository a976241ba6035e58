"""`jobs`: list jobs, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forge_actors.cli.color import Painter, add_color
from forge_actors.cli.job_text import TAIL, Json, reason, title
from forge_actors.cli.reading import read
from forge_actors.cli.selection import add_filters, parameters
from forge_actors.cli.text import span, table, terminal_width
from forge_actors.cli.verb import UsageError, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Query = list[tuple[str, str | int | None]]

HELP = "List jobs, the newest first. The printed tail of an id selects the job."
EXAMPLES = """\
  forge-actors jobs
  forge-actors jobs --failed --repo app --limit 20
  forge-actors jobs --active --json
"""
HEAD = ("ID", "STATE", "KIND", "PRI", "REPO", "NAME", "AGE", "REASON")
PAGE = 1000
LIMIT = 100


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_filters(parser)
    add("--active", action="store_true", help="only jobs that have not ended")
    add("--limit", type=int, metavar="N", help="at most N jobs (default: 100)")
    add("--before", metavar="JOB", help="only jobs older than this: the next page")
    add("--all", action="store_true", help="all of them")
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    if args.before == "":
        raise UsageError("--before: an empty word is no id")
    if args.limit is not None and args.limit < 1:
        raise UsageError("--limit: must be at least 1")
    if args.limit is not None and args.all:
        raise UsageError("--all: cannot be combined with --limit")
    limit = None if args.all else (args.limit or LIMIT)
    service = Service(args.home)

    def served() -> list[Json]:
        before = args.before and service.get("jobs", args.before)["id"]

        def page(query: Query) -> list[Json]:
            found: list[Json] = service.get("jobs", query=query)["jobs"]
            return found

        return _fetch(page, args, limit, before)

    def kept() -> list[Json]:
        from forge_actors.client import offline

        home = service.home
        before = args.before and offline.job(home, args.before)["id"]
        return _fetch(lambda query: offline.jobs(home, query), args, limit, before)

    jobs = read(service, served, kept)
    if limit is not None and len(jobs) > limit:
        jobs = jobs[:limit]
        last = jobs[-1]["id"][-TAIL:]
        note(f"there are more: --before {last} goes on, --all shows all of them")
    if args.json:
        print_json(jobs)
        return 0
    now = datetime.now(UTC)
    rows = [_row(job, now) for job in jobs]
    # NAME gives way first, then REASON and REPO; the rest is short.
    lines = table(
        HEAD,
        rows,
        columns=terminal_width(),
        flexible=(4, 5, 7),
        paint=(1, Painter(args.color).state),
    )
    print("\n".join(lines))
    return 0


def _fetch(
    read_page: Callable[[Query], list[Json]],
    args: argparse.Namespace,
    limit: int | None,
    before: str | None,
) -> list[Json]:
    """The jobs that are wanted, and one more if there are more."""
    most = None if limit is None else limit + 1
    wanted = parameters(args)
    if args.active:
        wanted.append(("active", 1))
    jobs: list[Json] = []
    while most is None or len(jobs) < most:
        size = PAGE if most is None else min(PAGE, most - len(jobs))
        query: Query = [
            *wanted,
            ("limit", size),
            ("before", jobs[-1]["id"] if jobs else before),
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
