"""`status`: the service, its limits and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.account_text import closed_lines, shown_providers, spent_lines
from forge_actors.cli.agent_text import program_lines
from forge_actors.cli.clean_text import clean_up_lines
from forge_actors.cli.color import Painter, add_color
from forge_actors.cli.disk_text import disk_lines
from forge_actors.cli.policy import policy_lines
from forge_actors.cli.quarantine import kept_line
from forge_actors.cli.reading import read
from forge_actors.cli.steering import pause_lines
from forge_actors.cli.text import clean
from forge_actors.cli.verb import TIMED_OUT, UsageError, note, print_json
from forge_actors.client.errors import NoService
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show the service, its limits and what it does. Without one: what the store of\n"
    "its home holds, and the exit status is 4. With --wait, once it is ready, or\n"
    "idle: when nothing waits or runs. Exits with 5 if the time ran out first."
)
EXAMPLES = """\
  forge-actors status
  forge-actors status --wait --timeout 30s
  forge-actors status --wait idle
"""
READY, IDLE = "ready", "idle"


def configure(parser: argparse.ArgumentParser) -> None:
    add_color(parser)
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
    service = Service(args.home)
    query = [("wait", args.wait), ("timeout", args.timeout)]

    def served() -> tuple[dict[str, Any], int]:
        return service.get("status", query=query), 0

    def kept() -> tuple[dict[str, Any], int]:
        from forge_actors.client import offline_home

        return offline_home.status(service.home), NoService.exit_code

    if args.wait:
        _say_stage(service)
    status, code = served() if args.wait else read(service, served, kept)
    timed_out = status.pop("timed_out", False)
    if args.json:
        print_json(status)
    else:
        print("\n".join(_lines(status, Painter(args.color))))
    if timed_out:
        note(f"not {args.wait} within {args.timeout}")
        return TIMED_OUT
    return code


def _say_stage(service: Service) -> None:
    """Of a service that still starts, say what it does before waiting for it."""
    now = service.get("status")
    if now.get("stage", READY) != READY:
        note(clean("; ".join(now["degraded"]) or f"it starts: {now['stage']}"))


def _lines(status: dict[str, Any], painter: Painter) -> list[str]:
    service = status.get("service", {})
    state = painter.state("ready" if status.get("ready") else "not ready")
    if status.get("draining"):
        state += ", draining"
    if status.get("stage", READY) != READY:
        state += f", {status['stage']}"
    lines = [f"service   {state}", clean(f"home      {service.get('home')}")]
    if service.get("pid") is not None:
        lines[0] += clean(f", pid {service['pid']}, version {service.get('version')}")
    if service.get("endpoint") is not None:
        lines.append(clean(f"endpoint  {service['endpoint']}"))
        lines.append(clean(f"since     {service.get('started_at')}"))
    if release := service.get("release"):
        number = f"revision {release.get('revision')}"
        lines.append(clean(f"release   {release.get('id')} ({number})"))
    degraded = status.get("degraded") or []
    if degraded:
        lines.append(clean(f"degraded  {'; '.join(map(str, degraded))}"))
    lines += _section("capacity", status.get("capacity") or {})
    providers = status.get("providers") or {}
    lines += _section("providers", shown_providers(providers))
    lines += closed_lines(providers)
    lines += spent_lines(status.get("budgets") or [])
    lines += _section("agents", program_lines(status.get("agents") or []))
    pauses = status.get("pauses") or []
    if pauses:
        lines += ["paused", *(clean(f"  {line}") for line in pause_lines(pauses))]
    policy = status.get("policy") or {}
    if policy.get("note"):
        lines += ["policy", *(clean(f"  {line}") for line in policy_lines(policy))]
    waiting = (status.get("inbox") or {}).get("items")
    if waiting:
        lines.append(f"inbox     {waiting} need a person: forge-actors inbox")
    lines += _kept(status.get("quarantined") or [])
    lines += _aside(status.get("poisoned") or [])
    lines += _section("jobs", status.get("counts") or {}, painter)
    lines += _section("pressure", status.get("pressure") or {})
    lines += disk_lines(status.get("disk") or {})
    lines += clean_up_lines(status.get("maintenance") or {})
    files = status.get("open_files") or {}
    if files.get("short_of"):
        lines += _section("open files (ulimit -n)", files)
    return lines


def _kept(quarantined: list[dict[str, Any]]) -> list[str]:
    if not quarantined:
        return []
    return ["kept claims", *(clean(f"  {kept_line(left)}") for left in quarantined)]


def _aside(poisoned: list[dict[str, Any]]) -> list[str]:
    if not poisoned:
        return []
    lines = (
        f"  {each['repo']}  {each['job'] or 'all of it'}: {each['error']},"
        f" since {each['since']}; forge-actors repo enable {each['repo']} tries again"
        for each in poisoned
    )
    return ["set aside", *map(clean, lines)]


def _section(
    name: str, values: dict[str, Any], painter: Painter | None = None
) -> list[str]:
    if not values:
        return []
    size = max(map(len, values))
    lines = [name]
    for key, value in values.items():
        word = clean(f"{key:<{size}}")
        shown = painter.state(word) if painter else word
        lines.append(f"  {shown}  {clean(_value(value))}")
    return lines


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
