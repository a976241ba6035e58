"""`import`: make a new home of what `export` wrote on another machine."""

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

HELP = (
    "Make a new home of an export. Everything in it is checked before. A repository\n"
    "that is not here at its old path is disabled, unless --repo says where it is.\n"
    "What ran on the other machine counts as interrupted."
)
EXAMPLES = """\
  forge-actors import home.tar
  forge-actors import --home /var/tmp/forge --repo app=~/src/app home.tar
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what export wrote")
    parser.add_argument(
        "--repo",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="where a repository is on this machine",
    )


def run(args: argparse.Namespace) -> int:
    places = dict(map(_place, args.repo))
    from time import time

    import trio

    from forge_actors.runtime.importing import import_here

    home = Path(resolve_home(args.home))
    file = Path(os.path.abspath(args.file))
    made = trio.run(import_here, home, file, places, time())
    if args.json:
        table = {**made._asdict(), "contents": made.contents._asdict()}
        print_json({"home": str(home), **table})
        return 0
    print(clean(f"{home}: {summary(made.contents)}"))
    for name, problem in made.disabled.items():
        note(f"{name} is disabled: {problem}; forge-actors repo enable {name}")
    if made.interrupted:
        note(f"{made.interrupted} jobs ran there; the first start decides about them")
    if made.secrets:
        note(f"set these secrets: {', '.join(made.secrets)}")
    return 0


def _place(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--repo {text!r}: write NAME=PATH")
    return name, path
