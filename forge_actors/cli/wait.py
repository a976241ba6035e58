"""`wait`: wait until jobs have ended, in one request that the service holds."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from forge_actors.cli.job_text import Json, outcome
from forge_actors.cli.selection import add_selectors, selected
from forge_actors.cli.text import clean
from forge_actors.cli.verb import TIMED_OUT, UsageError, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Wait until every one of the jobs has ended. Exits with 0 if all succeeded, 1 if\n"
    "one did not, 5 if the time ran out first. Selectors mean jobs that have not ended."
)
EXAMPLES = """\
  forge-actors wait 4f2k9x
  forge-actors wait --timeout 10m --repo app --mine
  forge-actors wait --pass-code 4f2k9x; echo "its own exit code: $?"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)
    parser.add_argument("--timeout", metavar="TIME", help="for example 90s or 2h")
    parser.add_argument(
        "--pass-code", action="store_true", help="exit with the one job's own code"
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    selection = selected(service, args, active=True)
    if args.pass_code and len(selection) != 1:
        raise UsageError(f"--pass-code: belongs to one job, not to {len(selection)}")
    answer = service.post("wait", body={"jobs": selection, "timeout": args.timeout})
    jobs: list[Json] = answer["jobs"]
    if args.json:
        print_json(answer)
    else:
        for job in jobs:
            print(clean(outcome(job)))
    if answer["timed_out"]:
        note(f"not ended within {args.timeout}")
        return TIMED_OUT
    if args.pass_code:
        return own_code(jobs[0])
    return 0 if all(job["state"] == "succeeded" for job in jobs) else 1


def own_code(job: Json) -> int:
    """The exit status a shell would have seen; 1 for a job that has none."""
    if job["exit_code"] is not None:
        code: int = job["exit_code"]
        return code
    number = getattr(signal, job["signal"] or "", None)
    return 128 + number if isinstance(number, int) else 1
