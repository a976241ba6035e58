"""`resume`: end a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.pause import add_scopes, scopes_of
from forge_actors.cli.selection import add_selectors
from forge_actors.cli.steering import set_pauses, steer

if TYPE_CHECKING:
    import argparse

HELP = (
    "End a pause: of everything, of a repository or of a provider, with all that it\n"
    "suspended; or let single jobs go on that were paused or held. --provider also\n"
    "opens an account that a limit, a wrong login or a spent budget has closed.\n"
    "--repo alone resumes the repository; with ids or other selectors it selects jobs."
)
EXAMPLES = """\
  forge-actors resume --all
  forge-actors resume --provider claude
  forge-actors resume 4f2k9x
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_scopes(parser, "resume", "let jobs there go on that were paused by themselves")
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    scopes = scopes_of(args, "resume")
    return set_pauses(args, "resume", scopes) if scopes else steer(args, "resume")
