"""`restore`: give a home another store, and run nothing twice for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.backup import summary
from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, note, print_json
from forge_actors.client.home import resolve_home

if TYPE_CHECKING:
    import argparse

    from forge_actors.runtime.restore import How, Restored

HELP = (
    "Give a home that nothing serves another store: a backup, what can still be read\n"
    "of a damaged one, or an empty one. The store that was there is kept. What has\n"
    "happened since the backup counts, as far as the home still shows it: jobs that\n"
    "have ended stay so, and jobs that may have run do not run again by themselves."
)
EXAMPLES = """\
  forge-actors restore /var/backups/forge.sqlite
  forge-actors restore --salvage
  forge-actors restore --empty
"""
#: What became of jobs, by the field that counts them.
_WORDS = {
    "added": "were taken over from the store that was there",
    "moved": "had moved on since",
    "reserved": "had begun since: the next start decides about them",
    "doubtful": "had begun since and ended nobody knows how: they want attention",
    "held": "may have begun since: they are held, and unhold lets them start",
    "forgotten": "had ended, and were removed by retention since",
    "unreadable": "cannot be read any more",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a backup")
    parser.add_argument(
        "--salvage",
        action="store_true",
        help="take what can still be read of the store that is there",
    )
    parser.add_argument(
        "--empty",
        action="store_true",
        help="begin without jobs; repositories stay known as far as they can be read",
    )


def run(args: argparse.Namespace) -> int:
    if (args.file is not None) + args.salvage + args.empty != 1:
        raise UsageError("give one of FILE, --salvage and --empty")
    how: How = "salvage" if args.salvage else "empty" if args.empty else "backup"
    from time import time

    from forge_actors.runtime.restore import restore

    home = Path(resolve_home(args.home))
    file = None if args.file is None else Path(os.path.abspath(args.file))
    restored = restore(home, how, file, time())
    if args.json:
        print_json(_table(home, restored))
        return 0
    print(clean(f"{home}: {summary(restored.contents)}"))
    for name, count in restored.settled._asdict().items():
        if count:
            note(f"{count} jobs {_WORDS[name]}")
    if restored.replaced is not None:
        note(clean(f"the store that was there is kept as {restored.replaced}"))
    if not restored.whole:
        note("not everything of it can be read: some jobs may be missing")
    return 0


def _table(home: Path, restored: Restored) -> dict[str, object]:
    return {
        "home": str(home),
        **restored.contents._asdict(),
        "settled": restored.settled._asdict(),
        "replaced": restored.replaced,
        "whole": restored.whole,
    }
