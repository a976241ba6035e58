"""`stop`: stop the service."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.errors import NoService
from forge_actors.client.home import published
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse

HELP = (
    "Stop the service of a home in order, and return when it has ended. Jobs that run\n"
    "go on without it, with their output and their time budgets, and the next service\n"
    "takes them over; what waits stays queued. With --jobs they are ended: those that\n"
    "are safe to repeat run again with the next service, the others want attention.\n"
    "drain --stop waits for them first. Without a service --jobs ends what an earlier\n"
    "one left running."
)
EXAMPLES = """\
  forge-actors stop
  forge-actors stop --jobs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-wait", action="store_true", help="return when it has begun to stop"
    )
    parser.add_argument(
        "--jobs", action="store_true", help="end the jobs that run, and every process"
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    try:
        answer = stop(service, wait=not args.no_wait, jobs=args.jobs)
    except NoService as error:
        if _others_stop(service, args):
            return 0
        if not args.jobs or not _end_left_jobs(service, args, error):
            raise
        return 0
    if args.json:
        print_json(answer)
    else:
        done = "stops" if args.no_wait else "ended"
        jobs = "" if args.jobs else go_on(answer["running"])
        print(clean(f"the service on {service.home} {done}{jobs}"))
    return 0


def _others_stop(service: Service, args: argparse.Namespace) -> bool:
    """Wait for the end of a service that somebody else stops; whether there is one."""
    told = published(service.home)
    pid = told.get("pid")
    # What it does with its jobs is decided.
    if args.jobs or told.get("stage") != "stopping" or not isinstance(pid, int):
        return False
    process = None if args.no_wait else _open(pid)
    if process is not None:
        with open(process, "rb"):
            select.select([process], [], [])
    ended = process is not None
    if args.json:
        print_json({"stopping": True, "jobs": False, "pid": pid, "ended": ended})
    else:
        done = "ended" if ended else "ends"
        print(clean(f"the service on {service.home} {done}: it was stopped already"))
    return True


def _end_left_jobs(
    service: Service, args: argparse.Namespace, no_service: NoService
) -> bool:
    """End what an earlier service left running; False if there is nothing.

    Raises:
        NoService: one has the home and answers nobody, as one that ends does.
    """
    from pathlib import Path

    from forge_actors.runtime.left_jobs import end_left_jobs

    if not os.path.isdir(service.home):
        return False
    try:
        pid = end_left_jobs(Path(service.home))
    except Refused:
        raise no_service from None
    if pid is None:
        return False
    if args.json:
        print_json({"stopping": False, "jobs": True, "agent_pid": pid, "ended": True})
    else:
        print(clean(f"the jobs that ran on in {service.home} without a service ended"))
    return True


def go_on(count: int) -> str:
    """What is to be said of the jobs that outlive a service; nothing if none do."""
    if count == 0:
        return ""
    jobs = "1 job runs" if count == 1 else f"{count} jobs run"
    return f"; {jobs} on, and the next service takes over"


def stop(service: Service, *, wait: bool, jobs: bool = False) -> dict[str, Any]:
    """Stop the service; with `wait` return when it has ended, if one can tell."""
    pid = service.get("status")["service"]["pid"]
    # Opened before the service is told, so that the number cannot mean another one.
    process = _open(pid) if wait else None
    answer = service.post("stop", body={"jobs": jobs})
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
