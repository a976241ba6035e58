"""`deny`: end a job that asks something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "End a job whose agent asks something, or that waits to be allowed what it does\n"
    "to the outside: it has failed, with the code DENIED."
)
EXAMPLES = """\
  forge-actors deny 4f2k9x
  forge-actors deny 4f2k9x --reason "not on a Friday"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("--reason", metavar="TEXT", help="why not")


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    view = service.post("jobs", args.job, "deny", body={"reason": args.reason})
    if args.json:
        print_json(view)
    else:
        print(clean(view["id"]))
    return 0
