"""`python -m benchmarks chaos`: kill service, agent and jobs, and see what was lost."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.chaos.run import SCENARIOS, Sizes, run

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks chaos", description=__doc__
    )
    parser.add_argument("--scenario", choices=SCENARIOS, default="random")
    parser.add_argument("--jobs", type=int, default=1000, metavar="N")
    parser.add_argument("--kills", type=int, default=50, metavar="N")
    parser.add_argument(
        "--agent-kills", type=int, default=10, metavar="N", help="so many of the kills"
    )
    parser.add_argument("--repositories", type=int, default=5, metavar="N")
    parser.add_argument("--seed", type=int, help="a random one if it is not given")
    parser.add_argument(
        "--home", type=Path, metavar="DIR", help="a new folder for all of it, kept"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args(arguments)
    if min(options.jobs, options.repositories) < 1 or options.kills < 0:
        parser.error("sizes are at least 1")
    if options.agent_kills > options.kills:
        parser.error("there are not so many kills")
    if options.home is not None and options.home.exists():
        parser.error(f"{options.home} is there already")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if something was wrong; what was made is then kept and named."""
    options = parse(arguments)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    folder = options.home or Path(tempfile.mkdtemp(prefix="fc-"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sizes = Sizes(
        options.jobs, options.kills, options.agent_kills, options.repositories
    )
    report = None
    try:
        report = run(folder.resolve(), sizes, seed, options.scenario, say)
    finally:
        if report is None or report.violations or options.home:
            say(f"kept for a look: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(report.document(), indent=2) if options.json else report)
    return int(bool(report.violations))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
