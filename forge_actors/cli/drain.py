"""`drain`: let what runs go on to its end, and nothing else begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.job_text import TAIL, Json, title
from forge_actors.cli.stop import stop
from forge_actors.cli.text import clean
from forge_actors.cli.verb import TIMED_OUT, UsageError, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Start nothing more, and return when what runs has ended. The service goes on,\n"
    "drained, until it is stopped or told to work again. Exits with 5, and names what\n"
    "still runs, if the time ran out first; then and when interrupted it still drains."
)
EXAMPLES = """\
  forge-actors drain
  forge-actors drain --timeout 10m --stop
  forge-actors drain --cancel
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--timeout", metavar="TIME", help="wait so long at most, for example 10m")
    add("--stop", action="store_true", help="stop the service once nothing runs")
    add("--cancel", action="store_true", help="work again")


def run(args: argparse.Namespace) -> int:
    if args.cancel and (args.stop or args.timeout is not None):
        raise UsageError("--cancel: goes with no other option")
    service = Service(args.home)
    if args.cancel:
        answer = service.delete("drain")
        _tell(args, answer, f"the service on {service.home} works again")
        return 0
    answer = service.post("drain", body={"timeout": args.timeout})
    if answer["timed_out"]:
        _name(args, answer)
        return TIMED_OUT
    if args.stop:
        ended = stop(service, wait=True)
        _tell(args, {**answer, **ended}, f"the service on {service.home} ended")
        return 0
    _tell(args, answer, f"nothing runs on {service.home}, and nothing new starts")
    return 0


def _tell(args: argparse.Namespace, answer: Json, text: str) -> None:
    if args.json:
        print_json(answer)
    else:
        print(clean(text))


def _name(args: argparse.Namespace, answer: Json) -> None:
    """What still runs when the time is over."""
    if args.json:
        print_json(answer)
    else:
        for job in answer["running"]:
            name = f"{job['id'][-TAIL:]}  {job['repo']}  {title(job)}"
            print(clean(f"{name}  since {job['started_at'] or 'just now'}"))
    note(f"not drained within {args.timeout}; it goes on draining")
