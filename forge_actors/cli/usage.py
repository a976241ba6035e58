"""`usage`: what agents used, in tokens and money."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from forge_actors.cli.job_text import TAIL
from forge_actors.cli.reading import read
from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "What agents used, added up. Days are those of UTC. Some programs do not tell\n"
    "everything: ? is unknown, and behind >= is what is known, so that at least.\n"
    "Costs are in US dollars, as the program reckons them; a subscription may differ."
)
EXAMPLES = """\
  forge-actors usage
  forge-actors usage --by repo --since 7d
  forge-actors usage --by job --since 2026-01-02 --json
"""
#: The domain's list, without loading it.
GROUPS = ("attempt", "job", "repo", "provider", "agent", "day")
COUNTED = ("input_tokens", "cached_tokens", "output_tokens", "cost")
CENT = 0.01
HEAD = ("ATTEMPTS", "INPUT", "CACHED", "OUTPUT", "COST")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", choices=GROUPS, default="day", help="what is added up (default: day)")
    add(
        "--since",
        metavar="WHEN",
        help="only what ended since 2026-01-02, 2026-01-02T03:04:05Z, or in 7d",
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)

    def served() -> dict[str, Any]:
        query = [("by", args.by), ("since", args.since)]
        report: dict[str, Any] = service.get("usage", query=query)
        return report

    def kept() -> dict[str, Any]:
        from forge_actors.client import offline_usage
        from forge_actors.runtime.moments import parse_day

        since = args.since
        if since is not None:
            since = parse_day(since, time.time(), field="since")
        return offline_usage.usage(service.home, args.by, since)

    report = read(service, served, kept)
    if args.json:
        print_json(report)
        return 0
    if not report["groups"]:
        note("no agent has used anything")
        return 0
    rows = [_row(_name(args.by, each["key"]), each) for each in report["groups"]]
    rows.append(_row("all", report["total"]))
    head = (args.by.upper(), *HEAD)
    print("\n".join(table(head, rows, columns=terminal_width(), flexible=(0,))))
    return 0


def _name(by: str, key: str | None) -> str:
    if key is None:
        return "none"
    if by == "attempt":
        job, _, attempt = key.rpartition(".")
        return clean(f"{job[-TAIL:]}.{attempt}")
    return key[-TAIL:] if by == "job" else clean(key)


def _row(name: str, sums: dict[str, Any]) -> tuple[str, ...]:
    told = (_told(sums, counted) for counted in COUNTED)
    return (name, str(sums["attempts"]), *told)


def _told(sums: dict[str, Any], counted: str) -> str:
    value = sums[counted]
    if value is None:
        return "?" if sums["attempts"] else "0"
    text = _dollars(value) if counted == "cost" else f"{value:,}"
    return f">={text}" if sums["unknown"].get(counted) else text


def _dollars(cost: float) -> str:
    """Little is shown as little, and not as nothing."""
    return f"${cost:.4f}" if 0 < cost < CENT else f"${cost:,.2f}"
