"""`stop`: stop the service."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Stop the service of a home in order, and return when it has ended. Jobs that run\n"
    "are ended: those that are safe to repeat run again with the next service, the\n"
    "others want attention. What waits stays queued. drain --stop lets them go on to\n"
    "their end first."
)
EXAMPLES = """\
  forge-actors stop
  forge-actors stop --no-wait
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-wait", action="store_true", help="return when it has begun to stop"
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    answer = stop(service, wait=not args.no_wait)
    if args.json:
        print_json(answer)
    else:
        done = "stops" if args.no_wait else "ended"
        print(clean(f"the service on {service.home} {done}"))
    return 0


def stop(service: Service, *, wait: bool) -> dict[str, Any]:
    """Stop the service; with `wait` return when it has ended, if one can tell."""
    pid = service.get("status")["service"]["pid"]
    # Opened before the service is told, so that the number cannot mean another one.
    process = _open(pid) if wait else None
    answer = service.post("stop")
    if process is not None:
        with open(process, "rb"):
            select.select([process], [], [])
    elif wait:
        note(f"the service (pid {pid}) stops; when it has ended cannot be told here")
    return {**answer, "pid": pid, "ended": process is not None}


def _open(pid: int) -> int | None:
    """A descriptor that is readable once the process has ended, where there is one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
