"""`events`: what happened, and what happens, a line an event."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from forge_actors.cli.event_text import Json, line
from forge_actors.cli.reading import read
from forge_actors.cli.text import fit, terminal_width
from forge_actors.cli.verb import UsageError, note, repository
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    Query = list[tuple[str, str | int | None]]

HELP = (
    "Print events, oldest first: every move of every job and repository, with its\n"
    "reason. The newest 100, or with --after or --since all from there on; with -f\n"
    "what comes from now on, or from there on."
)
EXAMPLES = """\
  forge-actors events --since 10m --repo app
  forge-actors events -f --kind job_failed --limit 1
  forge-actors events --json --after 0 > history.jsonl
"""
NEWEST = 100
PAGE = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-f", "--follow", action="store_true", help="print what comes, as it comes")
    add("--after", type=int, metavar="SEQ", help="only those behind this number")
    add(
        "--since",
        metavar="TIME",
        help="only since 2026-01-31T12:00:00Z, or since 90s, 10m, 2h or 3d ago",
    )
    add("--repo", action="append", default=[], help="only of this one; repeatable")
    add("--job", action="append", default=[], help="only of this one; repeatable")
    add("--kind", action="append", default=[], help="only of this kind; repeatable")
    add("--limit", type=int, metavar="N", help="at most N of them")


def run(args: argparse.Namespace) -> int:
    for name, least in (("after", 0), ("limit", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise UsageError(f"--{name}: must be at least {least}")
    service = Service(args.home)
    filters: Query = [
        *(("repo", repository(name)) for name in args.repo),
        *(("job", job) for job in args.job),
        *(("kind", kind) for kind in args.kind),
    ]
    if args.follow:
        _follow(service, args, filters)
    else:
        _list(service, args, filters)
    return 0


def _follow(service: Service, args: argparse.Namespace, filters: Query) -> None:
    query: Query = [*filters, ("after", args.after), ("since", args.since)]
    left = args.limit
    for raw in _lines(
        service.stream("GET", ("events",), query=[*query, ("follow", 1)])
    ):
        _print([raw], as_json=args.json)
        sys.stdout.flush()
        left = None if left is None else left - 1
        if left == 0:
            return
    note(f"the service on {service.home} ended, so nothing more comes")


def _list(service: Service, args: argparse.Namespace, filters: Query) -> None:
    after, since, limit = args.after, args.since, args.limit
    newest = after is None and since is None
    limit = (limit or NEWEST) if newest else limit
    while limit is None or limit > 0:
        size = PAGE if limit is None else limit if newest else min(PAGE, limit)
        query: Query = [*filters, ("after", after), ("since", since), ("limit", size)]
        if newest:
            query.append(("newest", 1))
        page = _page(service, query, may_be_offline=after == args.after)
        _print(page, as_json=args.json)
        if len(page) < size or newest:
            return
        after = json.loads(page[-1])["seq"]
        limit = None if limit is None else limit - len(page)


def _page(service: Service, query: Query, *, may_be_offline: bool) -> list[bytes]:
    def served() -> list[bytes]:
        return list(_lines(service.stream("GET", ("events",), query=query)))

    def kept() -> list[bytes]:
        from forge_actors.client import offline_events

        return offline_events.lines(service.home, query)

    return read(service, served, kept) if may_be_offline else served()


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _print(lines: Iterable[bytes], *, as_json: bool) -> None:
    columns = None if as_json else terminal_width()
    for raw in lines:
        event: Json | None = None if as_json else json.loads(raw)
        text = raw.decode("utf-8") if event is None else line(event)
        print(text if columns is None else fit(text, columns))
