"""`backup`: copy the store of a home to a file, whether it is served or not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.home import resolve_home

if TYPE_CHECKING:
    import argparse

    from forge_actors.runtime.backup import Contents

HELP = (
    "Copy the store of a home, with all of its jobs and their history, to one file. A\n"
    "service may run meanwhile. The output of jobs is not in it: export takes that\n"
    "too. restore puts it back."
)
EXAMPLES = """\
  forge-actors backup /var/backups/forge.sqlite
  forge-actors backup --force nightly.sqlite
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where the copy is to be")
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there"
    )


def run(args: argparse.Namespace) -> int:
    home = resolve_home(args.home)
    from forge_actors.runtime.backup import back_up

    file = Path(os.path.abspath(args.file))
    contents = back_up(Path(home), file, overwrite=args.force)
    if args.json:
        print_json({"file": str(file), **contents._asdict()})
    else:
        print(clean(f"{file}: {summary(contents)}"))
    return 0


def summary(contents: Contents) -> str:
    """What a store holds, in a line."""
    jobs = contents.waiting + contents.reserved + contents.ended
    size = max(1, contents.size // 1024)
    return (
        f"{size} KiB, {contents.repositories} repositories, {jobs} jobs"
        f" ({contents.waiting} wait, {contents.reserved} run, {contents.ended} ended)"
    )
