"""`cancel`: end jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.selection import add_selectors, selected
from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "End jobs. One that waits never starts; one that runs is asked to stop, and\n"
    "killed with everything it started when its grace is over. Selectors mean jobs\n"
    "that have not ended."
)
EXAMPLES = """\
  forge-actors cancel 4f2k9x
  forge-actors cancel --grace 1s 4f2k9x 7bq0aa
  forge-actors cancel --repo app --state queued
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)
    parser.add_argument(
        "--grace", metavar="TIME", help="time to stop by itself (the job's own, 10s)"
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    body = {"jobs": selected(service, args, active=True), "grace": args.grace}
    jobs = service.post("bulk", "cancel", body=body)["jobs"]
    if args.json:
        print_json(jobs)
        return 0
    for job in jobs:
        ended = job["state"] == "cancelled" or job["finished_at"] is not None
        rest = "" if ended else ", asked to stop"
        print(clean(f"{job['id']} {job['state']}{rest}"))
    return 0
