"""`approve`: let a job go on that asks something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

#: By what it was approved, as it is saved.
HOW = "command line"

HELP = (
    "Let a job go on whose agent asks something: it is told to go on, in its session.\n"
    "A job that waits to be allowed what it does to the outside may start: a person\n"
    "decides that, never a job."
)
EXAMPLES = """\
  forge-actors approve 4f2k9x
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    view = service.post("jobs", args.job, "approve", body={"how": HOW})
    if args.json:
        print_json(view)
    else:
        print(clean(view["id"]))
    return 0
