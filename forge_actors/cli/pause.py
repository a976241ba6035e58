"""`pause`: start nothing more somewhere, or suspend jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.selection import add_selectors
from forge_actors.cli.steering import set_pauses, steer
from forge_actors.cli.verb import UsageError, repository

if TYPE_CHECKING:
    import argparse

HELP = (
    "Start nothing more: at all, in a repository, or of a provider; what runs goes on\n"
    "unless --jobs is given. Or suspend single jobs: every process of one that runs\n"
    "stands still, and so do its time budgets; one that waits is held. A pause lasts\n"
    "until resume, also over a restart of the service.\n"
    "--repo alone pauses the repository; with ids or other selectors it selects jobs."
)
EXAMPLES = """\
  forge-actors pause --all --jobs
  forge-actors pause --repo app --provider claude
  forge-actors pause 4f2k9x
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_scopes(parser, "pause", "suspend what runs there, too")
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    scopes = scopes_of(args, "pause")
    return set_pauses(args, "pause", scopes) if scopes else steer(args, "pause")


def add_scopes(parser: argparse.ArgumentParser, verb: str, jobs: str) -> None:
    add = parser.add_argument
    add("--all", action="store_true", help=f"{verb} everything")
    add(
        "--provider",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{verb} this agent provider; repeatable",
    )
    add("--jobs", action="store_true", dest="running", help=jobs)


def scopes_of(args: argparse.Namespace, verb: str) -> list[str]:
    """The scopes that the options name; none if they select jobs.

    Raises:
        UsageError: they do both, or neither.
    """
    lists = (args.jobs, args.state, args.kind, args.label, args.work)
    others = any(lists) or args.failed or args.mine
    scopes = [f"provider:{name}" for name in args.provider]
    if args.all:
        scopes.append("all")
    if not others:
        scopes += (f"repo:{repository(name)}" for name in args.repo)
    if scopes and (others or (args.all and len(scopes) > 1)):
        raise UsageError(
            "--all, --provider and --repo name a place, ids and selectors name jobs:"
            " give one of them"
        )
    if not (scopes or others):
        raise UsageError(
            f"nothing to {verb}: give --all, --repo or --provider, or select jobs"
        )
    if args.running and not scopes:
        raise UsageError("--jobs goes with --all, --repo or --provider")
    return scopes
