"""`purge`: remove everything that is ours, from users' repositories too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.home import resolve_home

if TYPE_CHECKING:
    import argparse

    from forge_actors.runtime.purge import Plan

HELP = (
    "Remove everything that is ours: the home with all of its jobs, their output and\n"
    "secrets, its sockets, and the folder forge-actors in the git directories of its\n"
    "repositories. Nothing else is touched. Without --yes it only lists what would\n"
    "go, and exits with 3."
)
EXAMPLES = """\
  forge-actors purge
  forge-actors purge --yes
"""
#: Exit status of a call that removed nothing.
ONLY_LISTED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--yes", action="store_true", help="remove it, for good")
    add("--worktrees", action="store_true", help="remove worktrees of jobs with it")


def run(args: argparse.Namespace) -> int:
    from forge_actors.runtime.purge import plan, purge

    home = Path(resolve_home(args.home))
    found = purge(home, worktrees=args.worktrees) if args.yes else plan(home)
    if args.json:
        strangers = [str(path) for path in found.strangers]
        worktrees = [str(path) for path in found.worktrees]
        about = {"paths": found.paths(), "kept": strangers, "worktrees": worktrees}
        print_json({"removed": args.yes, **about})
    else:
        for path in found.paths():
            print(clean(path))
    _tell(found)
    if args.yes:
        return 0
    note("nothing was removed; purge --yes removes all of this for good")
    return ONLY_LISTED


def _tell(found: Plan) -> None:
    if found.unread:
        note(
            "a store cannot be read: repositories may have a folder forge-actors in"
            " their git directory that is not listed"
        )
    for path in found.worktrees:
        note(f"{path} is a worktree of a job, or lies among them")
    for path in found.strangers:
        note(f"{path} is not ours and stays")
