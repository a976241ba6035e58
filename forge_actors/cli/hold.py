"""`hold`: keep waiting jobs from starting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.selection import add_selectors
from forge_actors.cli.steering import steer_waiting

if TYPE_CHECKING:
    import argparse

HELP = (
    "Keep waiting jobs from starting, whatever else they wait for, until unhold. A\n"
    "job that runs cannot be held; pause suspends it. Selectors mean jobs that wait."
)
EXAMPLES = """\
  forge-actors hold 4f2k9x
  forge-actors hold --repo app --label nightly
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    return steer_waiting(args, "hold")
