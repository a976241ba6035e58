"""`why`: why a job is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = "Say in a sentence why a job waits, runs or ended as it did."
EXAMPLES = """\
  forge-actors why 4f2k9x
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="id, or part of one")


def run(args: argparse.Namespace) -> int:
    answer = Service(args.home).get("jobs", args.job, "why")
    if args.json:
        print_json(answer)
    else:
        print(clean(f"{answer['job']}: {answer['sentence']}"))
    return 0
