"""`fence`: whether an attempt still holds its job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.errors import NoService
from forge_actors.client.home import has_store
from forge_actors.client.sync import Service
from forge_actors.domain.errors import ForgeError, Refused, Unavailable

if TYPE_CHECKING:
    import argparse

HELP = (
    "Check, within a job, that this attempt is still the current one of the job: not\n"
    "replaced by another attempt, not over, not being stopped, not paused. Exits with\n"
    "0 if so, with 3 if not, and with 4 if that cannot be known. Works without a\n"
    "service too. Put it before what nobody can take back."
)
EXAMPLES = """\
  forge-actors fence check && git push origin main
  forge-actors fence check --job 4f2k9x0q1v7m3n8p2rs --attempt 2 --fence 17
"""
#: Options, and the variables of every job that are meant without them.
VARIABLES = {"job": "FORGE_JOB_ID", "attempt": "FORGE_ATTEMPT", "fence": "FORGE_FENCE"}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check an attempt, by default our own")
    for name, variable in VARIABLES.items():
        text = f"default: ${variable}; all three are given, or none"
        check.add_argument(f"--{name}", metavar=name[0].upper(), help=text)
    add_common(check, again=True)


def run(args: argparse.Namespace) -> int:
    job, attempt, fence = _attempt(args)
    service = Service(args.home)
    found = _found(service, job, attempt, fence)
    if args.json:
        print_json(found)
    elif found["current"]:
        line = f"attempt {attempt} of job {job} is the current one (fence {fence})"
        print(clean(line))
    else:
        code = found["code"]
        prefix = f"{code}: " if code == "FENCING_TOKEN_STALE" else ""
        note(f"{prefix}{found['reason']}")
    return 0 if found["current"] else Refused.exit_code


def _attempt(args: argparse.Namespace) -> tuple[str, int, int]:
    """Which attempt is meant: that of the options, or that of our environment.

    Raises:
        UsageError: neither names one, or they would be mixed.
    """
    given: dict[str, Any] = {name: getattr(args, name) for name in VARIABLES}
    named = {name: f"--{name}" for name in VARIABLES}
    if not any(value is not None for value in given.values()):
        given = {name: os.environ.get(word) for name, word in VARIABLES.items()}
        named = VARIABLES
    missing = [named[name] for name, value in given.items() if not value]
    if missing == list(VARIABLES.values()):
        raise UsageError("this is no job: give --job, --attempt and --fence")
    if missing:
        raise UsageError(f"{' and '.join(missing)}: is missing; all three name one")
    numbers = [_number(given[name], named[name]) for name in ("attempt", "fence")]
    return str(given["job"]), numbers[0], numbers[1]


def _number(text: str, name: str) -> int:
    # ASCII alone, and no longer than any number of ours can be.
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text)):
        raise UsageError(f"{name}: {text!r} is no whole number from 1 on")
    return int(text)


def _found(service: Service, job: str, attempt: int, fence: int) -> dict[str, Any]:
    """What the service says, or the store of a home that nothing serves.

    Raises:
        Unavailable: neither can be asked; nothing is guessed.
    """
    query = [("attempt", attempt), ("fence", fence)]
    try:
        found: dict[str, Any] = service.get("jobs", job, "fence", query=query)
    except NoService:
        if not has_store(service.home):
            raise
    except ForgeError as error:
        raise Unavailable(str(error)) from error
    else:
        return found
    # Only here: reading a store costs imports that most calls need not pay for.
    from forge_actors.client import offline_home

    try:
        return offline_home.check_fence(service.home, job, attempt, fence)
    except ForgeError as error:
        raise Unavailable(str(error)) from error
