"""`watch`: the jobs of a service, live, in the whole terminal."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from forge_actors.cli.verb import UsageError
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show jobs, capacity and what needs a person, live, and steer jobs by keys:\n"
    "filter with /, a log with enter, cancel, retry, approve, pause; ? tells all.\n"
    "It needs a terminal and the extra tui: pip install 'forge-actors[tui]'."
)
EXAMPLES = """\
  forge-actors watch
  NO_COLOR=1 forge-actors watch
"""
#: What can be asked instead, where nothing can be drawn.
INSTEAD = "`forge-actors jobs --active` and `forge-actors events -f` print lines"


def configure(parser: argparse.ArgumentParser) -> None:
    del parser  # it has no options of its own


def run(args: argparse.Namespace) -> int:
    if args.json:
        raise UsageError("watch draws and prints no JSON; events -f --json does")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"watch needs a terminal; {INSTEAD}")
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise UsageError(f"this terminal cannot draw (TERM); {INSTEAD}")
    if find_spec("textual") is None:
        raise Refused(
            "watch needs the extra tui: pip install 'forge-actors[tui]'; without it"
            f" {INSTEAD}"
        )
    service = Service(args.home)
    service.get("status")  # a home that nothing serves is an error, told at once
    from forge_actors.cli.dashboard.app import Dashboard

    dashboard = Dashboard(service.home)
    # The mouse stays the terminal's: marking and copying text works as everywhere.
    status = dashboard.run(mouse=False)
    if dashboard.failure is not None:
        raise dashboard.failure
    return 0 if status is None else status
