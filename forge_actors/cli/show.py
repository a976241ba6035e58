"""`show`: everything about one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.job_text import Json, command
from forge_actors.cli.selection import add_selectors, names_one, selected
from forge_actors.cli.text import clean, clean_lines
from forge_actors.cli.verb import note, print_json
from forge_actors.client.home import has_store
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Unavailable

if TYPE_CHECKING:
    import argparse

HELP = "Show everything about one job, or about several."
EXAMPLES = """\
  forge-actors show 4f2k9x
  forge-actors show 4f2k9x --json
  forge-actors show --failed --repo app
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    try:
        views = [service.get("jobs", job) for job in selected(service, args)]
    except Unavailable:
        if not has_store(service.home):
            raise
        # Only now: reading a store costs imports that a client must not pay for.
        from forge_actors.client import offline

        found = selected(service, args, select=offline.selector(service.home))
        views = [offline.job(service.home, job) for job in found]
        note(f"no service runs on {service.home}; this is what its store holds")
    if args.json:
        print_json(views[0] if names_one(args) else views)
    else:
        print("\n\n".join("\n".join(page(job)) for job in views))
    return 0


def page(job: Json) -> list[str]:
    """The job as lines of `name value`; what it does not have is left out."""
    shown: dict[str, object] = {**job, "command": command(job)}
    # The command stands for its arguments, and the error gets lines of its own.
    for name in ("argv", "error"):
        del shown[name]
    shown = {name: value for name, value in shown.items() if _says_something(value)}
    size = max(map(len, shown))
    lines = [f"{name:<{size}}  {clean(_text(value))}" for name, value in shown.items()]
    if job["error"]:
        code, message = job["error"]["code"], clean_lines(job["error"]["message"])
        lines.append(f"{'error':<{size}}  {code}: {message}")
    return lines


def _says_something(value: object) -> bool:
    # An exit code of 0 does.
    return bool(value) or (value == 0 and value is not False)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        pairs = (f"{key} {_text(inner)}" for key, inner in value.items())
        return ", ".join(pairs)
    return str(value)
