"""`cancel`: end jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.selection import add_selectors, steer_each
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

    from forge_actors.cli.job_text import Json

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

    def act(job: str) -> Json:
        answer: Json = service.post("jobs", job, "cancel", body={"grace": args.grace})
        return answer

    return steer_each(service, args, act, _shown)


def _shown(job: Json) -> str:
    ended = job["state"] == "cancelled" or job["finished_at"] is not None
    return f"{job['state']}" if ended else f"{job['state']}, asked to stop"
