"""`export`: a home as one file, to go on with it on another machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.backup import summary
from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.home import resolve_home

if TYPE_CHECKING:
    import argparse

HELP = (
    "Write a home to one tar file: its jobs and their history, their output, its\n"
    "settings. Secrets are not in it, only their names. Stop the service before, or\n"
    "what it does later is done here and not there. import reads the file."
)
EXAMPLES = """\
  forge-actors export home.tar
  forge-actors export --home /var/tmp/forge --force home.tar
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the tar file to write")
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there"
    )


def run(args: argparse.Namespace) -> int:
    from time import time

    from forge_actors.runtime.export import export

    home = resolve_home(args.home)
    file = Path(os.path.abspath(args.file))
    made = export(Path(home), file, time(), overwrite=args.force)
    if args.json:
        table = {**made._asdict(), "contents": made.contents._asdict()}
        print_json({"file": str(file), **table})
        return 0
    print(clean(f"{file}: {summary(made.contents)}, {made.logs} files of output"))
    if made.secrets:
        names = ", ".join(made.secrets)
        note(clean(f"these secrets are not in it; set them there: {names}"))
    if made.contents.reserved:
        note(f"{made.contents.reserved} jobs run here; there they count as interrupted")
    return 0
