"""`clean`: remove what retention lets go, or say what that would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean as shown
from forge_actors.cli.text import table, terminal_width
from forge_actors.cli.verb import UsageError, note, print_json
from forge_actors.client.errors import NoService
from forge_actors.client.sync import Service
from forge_actors.domain.errors import CleanUpFailed
from forge_actors.domain.sizes import size_text

if TYPE_CHECKING:
    import argparse

HELP = (
    "Remove what retention lets go: ended jobs and their logs, old events, worktrees\n"
    "whose work is safe, what crashes left. The service does it by itself; this does\n"
    "it now, and waits. Without a service it works on the home directly. With\n"
    "--dry-run nothing is removed: it prints what would go, and why."
)
EXAMPLES = """\
  forge-actors clean --dry-run
  forge-actors clean --class logs --class temporary
"""
HEAD = ("CLASS", "WHAT", "SIZE", "WHY")
#: Those that a request may name; the domain's list, without loading it.
CLASSES = (
    "jobs",
    "logs",
    "events",
    "artifacts",
    "worktrees",
    "preserved",
    "temporary",
    "backups",
    "repositories",
    "store",
    "other",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dry-run", action="store_true", help="remove nothing, print the plan")
    add(
        "--class",
        action="append",
        dest="classes",
        default=[],
        metavar="NAME",
        help=f"only this one, as often as wanted: {', '.join(CLASSES)}",
    )


def run(args: argparse.Namespace) -> int:
    for name in args.classes:
        if name not in CLASSES:
            raise UsageError(f"--class: {name!r} is none of {', '.join(CLASSES)}")
    service = Service(args.home)
    try:
        body = {"dry_run": args.dry_run, "classes": args.classes}
        result = service.post("clean", body=body)
    except NoService:
        result = _directly(service.home, args)
    if args.json:
        print_json(result)
    else:
        _tell(result)
    if result["error"] is not None:
        raise CleanUpFailed(result["error"])
    return int(any(report["failed"] for report in result["reports"]))


def _directly(home: str, args: argparse.Namespace) -> dict[str, Any]:
    from pathlib import Path

    from forge_actors.domain.cleaning import CleanRequest
    from forge_actors.runtime.cleaning import clean_home

    request = CleanRequest(home, 0.0, dry_run=args.dry_run, classes=tuple(args.classes))
    return clean_home(Path(home), request).view()


def _tell(result: dict[str, Any]) -> None:
    rows = [
        (each["clean_class"], each["what"], size_text(each["bytes"]), each["reason"])
        for each in result["removals"]
    ]
    if rows:
        lines = table(HEAD, rows, columns=terminal_width(), flexible=[1, 3])
        print("\n".join(lines))
    rest = result["removed"] - len(rows)
    if rest > 0:
        note(f"and {rest} more")
    for report in result["reports"]:
        for reason, count in report["skipped"].items():
            note(shown(f"{report['clean_class']}: {count} stay, {reason}"))
        if report["failed"]:
            name, count = report["clean_class"], report["failed"]
            note(shown(f"{name}: {count} failed, {report['error']}"))
    would = "would be removed" if result["dry_run"] else "removed"
    note(f"{result['removed']} {would}, {size_text(result['bytes'])}")
