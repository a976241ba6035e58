"""`edit`: change a job that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Change the priority, claims, labels or time budgets of a job that waits: all of\n"
    "what is given, or nothing. Claims and labels replace those it has; a time budget\n"
    "of none is no limit."
)
EXAMPLES = """\
  forge-actors edit 4f2k9x --priority P0
  forge-actors edit 4f2k9x --claim read:path:src --label quick --timeout 20m
  forge-actors edit 4f2k9x --queue-timeout none
"""
_PLAIN = (
    "priority",
    "timeout",
    "queue_timeout",
    "admission_timeout",
    "idle_timeout",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "id, or at least 4 characters of its start or its end"
    add("job", metavar="JOB", help=text)
    add("--priority", help="P0, most urgent, to P4")
    add(
        "--claim",
        action="append",
        metavar="MODE:FAMILY[:REST]",
        help="what the job touches, in place of its claims; repeatable",
    )
    add("--label", action="append", help="in place of its labels; repeatable")
    add("--no-labels", action="store_true", help="take its labels away")
    add("--timeout", metavar="TIME", help="how long it may run")
    add("--queue-timeout", metavar="TIME", help="how long it may wait from now on")
    add("--admission-timeout", metavar="TIME", help="how long until it is looked at")
    add("--idle-timeout", metavar="TIME", help="how long it may print nothing")


def run(args: argparse.Namespace) -> int:
    if args.no_labels and args.label:
        raise UsageError("--no-labels and --label exclude each other")
    body: dict[str, object] = {name: getattr(args, name) for name in _PLAIN}
    body["claims"] = args.claim
    body["labels"] = [] if args.no_labels else args.label
    given = {name: value for name, value in body.items() if value is not None}
    if not given:
        raise UsageError("nothing to change: give at least one option, as --priority")
    job = Service(args.home).post("jobs", args.job, "edit", body=given)
    if args.json:
        print_json(job)
    else:
        print(clean(f"{job['id']} changed: {', '.join(given)}"))
    return 0
