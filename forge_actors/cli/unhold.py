"""`unhold`: let held jobs go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.selection import add_selectors
from forge_actors.cli.steering import steer_waiting

if TYPE_CHECKING:
    import argparse

HELP = (
    "Let jobs that are held start when their turn comes. Selectors mean jobs that wait."
)
EXAMPLES = """\
  forge-actors unhold 4f2k9x
  forge-actors unhold --repo app --label nightly
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    return steer_waiting(args, "unhold")
