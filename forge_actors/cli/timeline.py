"""`timeline`: what ran when, on which tokens, as a chart, a page or a trace."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from forge_actors.cli.color import Painter, add_color
from forge_actors.cli.out_file import STDOUT, write_out
from forge_actors.cli.reading import read
from forge_actors.cli.text import DEFAULT_WIDTH, terminal_width
from forge_actors.cli.verb import UsageError, print_json, repository
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show what ran when: the attempts of each repository as a chart, with what waited\n"
    "meanwhile. Times are those of UTC. --html writes a page that any browser opens,\n"
    "with the tokens too; --trace a file for ui.perfetto.dev or chrome://tracing.\n"
    "Neither holds commands or their output."
)
EXAMPLES = """\
  forge-actors timeline --since 8h
  forge-actors timeline --since 2026-01-31 --repo app --html timeline.html
  forge-actors timeline --since 1d --trace trace.json
"""
#: The domain's numbers, without loading it.
SINCE, LIMIT, MOST = "1h", 2000, 20_000


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--since",
        default=SINCE,
        metavar="WHEN",
        help="from 2026-01-02, 2026-01-02T03:04:05Z, or 90m ago on (default: 1h)",
    )
    add("--until", metavar="WHEN", help="up to then (default: now)")
    add("--repo", action="append", default=[], help="only of this one; repeatable")
    add(
        "--limit",
        type=int,
        default=LIMIT,
        metavar="N",
        help=f"the last N attempts at most (default: {LIMIT})",
    )
    add("--html", metavar="FILE", help="write a page; - for the output")
    add("--trace", metavar="FILE", help="write a trace; - for the output")
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.limit <= MOST:
        raise UsageError(f"--limit: must be from 1 to {MOST}")
    if args.html == args.trace == STDOUT or (
        args.json and STDOUT in (args.html, args.trace)
    ):
        raise UsageError("only one thing can be written to the output")
    service = Service(args.home)
    repos = [repository(name) for name in args.repo]
    told = read(
        service,
        lambda: _served(service, args, repos),
        lambda: _kept(service.home, args, repos),
    )
    wanted = [(args.html, _html), (args.trace, _trace)]
    for file, make in wanted:
        if file is not None:
            write_out(file, make(told))
    if args.json:
        print_json(told)
    elif args.html is None and args.trace is None:
        from forge_actors.cli.timeline_text import lines

        columns = terminal_width() or DEFAULT_WIDTH
        print("\n".join(lines(told, columns, Painter(args.color))))
    return 0


def _served(
    service: Service, args: argparse.Namespace, repos: list[str]
) -> dict[str, Any]:
    query: list[tuple[str, str | int | None]] = [
        ("since", args.since),
        ("until", args.until),
        ("limit", args.limit),
        *(("repo", name) for name in repos),
    ]
    told: dict[str, Any] = service.get("timeline", query=query)
    return told


def _kept(home: str, args: argparse.Namespace, repos: list[str]) -> dict[str, Any]:
    from forge_actors.client import offline_timeline
    from forge_actors.runtime.moments import window

    since, until = window(args.since, args.until, time.time())
    return offline_timeline.told(
        home, since, until, repos, args.limit, live=args.until is None
    )


def _html(told: dict[str, Any]) -> str:
    from forge_actors.domain.picture.page import page
    from forge_actors.domain.requests import convert
    from forge_actors.domain.timeline import Timeline

    return page(convert(told, Timeline))


def _trace(told: dict[str, Any]) -> str:
    import json

    from forge_actors.domain.picture.trace import trace
    from forge_actors.domain.requests import convert
    from forge_actors.domain.timeline import Timeline

    return json.dumps(trace(convert(told, Timeline)))
