"""`logs`: the output of a job, whole, its end, or as it comes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.verb import UsageError
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

HELP = (
    "Print the output of a job. Into a pipe or a file go the exact bytes; on a\n"
    "terminal control characters are left out, and secrets are [redacted]."
)
EXAMPLES = """\
  forge-actors logs 4f2k9x
  forge-actors logs -f --tail 20 4f2k9x
  forge-actors logs --stream stderr 4f2k9x > errors.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("job", metavar="JOB", help="id, or part of one")
    add("-f", "--follow", action="store_true", help="print on until the job has ended")
    add(
        "--stream",
        choices=("stdout", "stderr", "both"),
        default="both",
        help="which output (default: both, stdout first, or as it comes with -f)",
    )
    add("--tail", type=int, metavar="N", help="begin with the last N lines of a stream")


def run(args: argparse.Namespace) -> int:
    if args.tail is not None and args.tail < 0:
        raise UsageError("--tail: must not be negative")
    exact = None if sys.stdout.isatty() else 1
    pieces = Service(args.home).stream(
        "GET",
        ("jobs", args.job, "logs", args.stream),
        query=[
            ("tail", args.tail),
            ("follow", 1 if args.follow else None),
            ("raw", exact),
        ],
    )
    if args.json:
        _print_json(pieces)
    elif sys.stdout.isatty():
        _print_clean(pieces)
    else:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    return 0


def _print_clean(pieces: Iterator[bytes]) -> None:
    cleaner = Cleaner()
    for piece in pieces:
        print(cleaner.feed(piece), end="", flush=True)
    print(cleaner.feed(b"", final=True), end="", flush=True)


def _print_json(pieces: Iterator[bytes]) -> None:
    """One JSON text a piece: bytes that are no text become replacement characters."""
    import codecs
    import json

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        print(json.dumps({"text": decoder.decode(piece)}), flush=True)
    rest = decoder.decode(b"", final=True)
    if rest:
        print(json.dumps({"text": rest}), flush=True)
