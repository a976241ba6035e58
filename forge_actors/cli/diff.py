"""`diff`: what a job changed in its worktree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from forge_actors.cli.text import clean_lines
from forge_actors.cli.verb import note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Print what a job changed in its worktree since that was made: its commits and\n"
    "what it left uncommitted, as one patch that git apply takes."
)
EXAMPLES = """\
  forge-actors diff 4f2k9x
  forge-actors diff 4f2k9x --stat
  forge-actors diff 4f2k9x | git apply
"""
#: Bytes that are printed; the service sends one more if there is more.
MAX_DIFF = 16 * 1024 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="its id, or a part of it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--stat", action="store_true", help="lines that were changed, by file"
    )
    form.add_argument("--name-only", action="store_true", help="only the names")


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.json:
        print_json(service.get("jobs", args.job)["result"])
        return 0
    form = "stat" if args.stat else "names" if args.name_only else "patch"
    pieces = service.stream("GET", ("jobs", args.job, "diff"), query=[("form", form)])
    found = b"".join(pieces)
    shown = found[:MAX_DIFF]
    if sys.stdout.isatty():
        print(clean_lines(shown.decode("utf-8", "replace")), end="")
    else:
        sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()
    if len(found) > MAX_DIFF:
        note(f"that is not all: the diff is longer than {MAX_DIFF} bytes; see --stat")
    return 0
