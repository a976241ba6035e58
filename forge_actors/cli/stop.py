"""`stop`: stop the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = "Stop the service of a home in order. Returns when it has begun to stop."
EXAMPLES = """\
  forge-actors stop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Only the options that every verb has."""


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    answer = service.post("stop")
    if args.json:
        print_json(answer)
    else:
        print(f"the service on {service.home} stops")
    return 0
