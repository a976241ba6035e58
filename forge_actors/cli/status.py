"""`status`: the service, its limits and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.steering import pause_lines
from forge_actors.cli.text import clean
from forge_actors.cli.verb import TIMED_OUT, UsageError, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show the service, its limits and what it does. With --wait, once it is ready, or\n"
    "idle: when nothing waits or runs. Exits with 5 if the time ran out first."
)
EXAMPLES = """\
  forge-actors status
  forge-actors status --wait --timeout 30s
  forge-actors status --wait idle
"""
READY, IDLE = "ready", "idle"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        nargs="?",
        const=READY,
        choices=(READY, IDLE),
        help="return when it is ready, or idle",
    )
    parser.add_argument("--timeout", metavar="TIME", help="for example 90s or 2h")


def run(args: argparse.Namespace) -> int:
    if args.timeout is not None and args.wait is None:
        raise UsageError("--timeout: belongs to --wait")
    query = [("wait", args.wait), ("timeout", args.timeout)]
    status = Service(args.home).get("status", query=query)
    timed_out = status.pop("timed_out", False)
    if args.json:
        print_json(status)
    else:
        for line in _lines(status):
            print(clean(line))
    if timed_out:
        note(f"not {args.wait} within {args.timeout}")
        return TIMED_OUT
    return 0


def _lines(status: dict[str, Any]) -> list[str]:
    service = status.get("service", {})
    state = "ready" if status.get("ready") else "not ready"
    if status.get("draining"):
        state += ", draining"
    version = service.get("version")
    lines = [
        f"service   {state}, pid {service.get('pid')}, version {version}",
        f"home      {service.get('home')}",
        f"since     {service.get('started_at')}",
    ]
    degraded = status.get("degraded") or []
    if degraded:
        lines.append(f"degraded  {'; '.join(map(str, degraded))}")
    lines += _section("capacity", status.get("capacity") or {})
    lines += _section("providers", status.get("providers") or {})
    pauses = status.get("pauses") or []
    if pauses:
        lines += ["paused", *(f"  {line}" for line in pause_lines(pauses))]
    lines += _section("jobs", status.get("counts") or {})
    lines += _section("pressure", status.get("pressure") or {})
    return lines


def _section(name: str, values: dict[str, Any]) -> list[str]:
    if not values:
        return []
    size = max(map(len, values))
    return [
        name,
        *(f"  {key:<{size}}  {_value(value)}" for key, value in values.items()),
    ]


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return " ".join(map(str, value))
    if not isinstance(value, dict):
        return str(value)
    value = {key: inner for key, inner in value.items() if inner != []}
    if {"used", "limit"} <= value.keys():
        rest = {key: value[key] for key in value if key not in ("used", "limit")}
        text = f"{value['used']} of {value['limit']}"
        return f"{text}, {_value(rest)}" if rest else text
    return ", ".join(f"{key} {_value(inner)}" for key, inner in value.items())
