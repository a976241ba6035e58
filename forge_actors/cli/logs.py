"""`logs`: the output of jobs, whole, a part of it, or as it comes."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import TYPE_CHECKING

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.reading import begun, read
from forge_actors.cli.selection import add_selectors, names_one, selected
from forge_actors.cli.verb import UsageError
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    Printer = Callable[[], None]
    Query = list[tuple[str, str | int | None]]

HELP = (
    "Print the output of a job, or of several with a prefix each. Into a pipe or a\n"
    "file go the exact bytes; on a terminal control characters are left out. There\n"
    "and with --json secrets are [redacted]."
)
EXAMPLES = """\
  forge-actors logs 4f2k9x
  forge-actors logs -f --tail 20 --repo app
  forge-actors logs --stderr --since 10m 4f2k9x
"""
#: What `--json` says of each piece of several jobs, beside its text.
_SHOWN = ("job", "name", "stream", "attempt")
_RANGE = re.compile(r"(?P<first>\d*)-(?P<last>\d*)")


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)
    add = parser.add_argument
    add(
        "-f",
        "--follow",
        action="store_true",
        help="print on until every job has ended; selectors mean jobs that have not",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--stream",
        choices=("stdout", "stderr", "both"),
        default="both",
        help="which output (default: both, stdout first, or as it comes with -f)",
    )
    for name in ("stdout", "stderr"):
        which.add_argument(
            f"--{name}",
            dest="stream",
            action="store_const",
            const=name,
            help=f"the same as --stream {name}",
        )
    add("--tail", type=int, metavar="N", help="begin with the last N lines of a stream")
    add(
        "--since",
        metavar="TIME",
        help="only what came since 2026-01-02T03:04:05Z, or in the last 10m",
    )
    add(
        "--bytes",
        "--range",
        metavar="FROM-TO",
        help="only these bytes of one stream, the first is 0; FROM- to the end, -N the"
        " last N",
    )
    add("--attempt", type=int, metavar="N", help="of this attempt (default: the last)")


def run(args: argparse.Namespace) -> int:
    if args.tail is not None and args.tail < 0:
        raise UsageError("--tail: must not be negative")
    query: Query = [
        ("tail", args.tail),
        ("since", args.since),
        ("follow", 1 if args.follow else None),
        ("raw", None if sys.stdout.isatty() or args.json else 1),
        *_range(args),
    ]
    if not names_one(args):
        for option, value in (("--bytes", args.bytes), ("--attempt", args.attempt)):
            if value is not None:
                raise UsageError(f"{option}: belongs to one job, named by its id")
    service = Service(args.home)

    def served() -> Printer:
        return _answer(
            service, selected(service, args, active=args.follow), query, args
        )

    def kept() -> Printer:
        from forge_actors.client import offline

        found = selected(service, args, select=offline.selector(service.home))
        return _kept(service.home, found, query, args)

    read(service, served, kept)()
    return 0


def _answer(
    service: Service, jobs: list[str], query: Query, args: argparse.Namespace
) -> Printer:
    """What prints the answer, once its first piece is there."""
    if names_one(args):
        path = ("jobs", jobs[0], "logs", args.stream)
        query = [*query, ("attempt", args.attempt)]
        return partial(
            _print_one, begun(service.stream("GET", path, query=query)), args
        )
    import json

    body = json.dumps({"jobs": jobs}).encode("ascii")
    query = [*query, ("stream", args.stream)]
    pieces = service.stream("POST", ("logs",), query=query, body=body)
    return partial(_print_several, begun(pieces), args)


def _kept(
    home: str, jobs: list[str], query: Query, args: argparse.Namespace
) -> Printer:
    """The same from the files of a home that nothing serves."""
    import time

    from forge_actors.client import offline
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import convert
    from forge_actors.runtime.kept_logs import KeptOutput

    def find(selector: str) -> JobView:
        return convert(offline.job(home, selector), JobView)

    output = KeptOutput(home, find, time.time())
    if names_one(args):
        query = [*query, ("attempt", args.attempt)]
        pieces = output.read(jobs[0], args.stream, query)
        return partial(_print_one, begun(pieces), args)
    query = [*query, ("stream", args.stream)]
    pieces = output.read_several(jobs, query)
    return partial(_print_several, begun(pieces), args)


def _range(args: argparse.Namespace) -> Query:
    """The parameters that stand for a range of bytes."""
    if args.bytes is None:
        return []
    match = _RANGE.fullmatch(args.bytes)
    if match is None or not (match["first"] or match["last"]):
        raise UsageError(f"--bytes: {args.bytes!r} is not FROM-TO, FROM- or -N")
    if args.stream == "both":
        raise UsageError("--bytes: belongs to one stream; add --stdout or --stderr")
    if args.tail is not None:
        raise UsageError("--bytes: cannot be combined with --tail")
    if not match["first"]:
        count = int(match["last"])
        if count == 0:
            raise UsageError("--bytes: -0 is no byte at all")
        return [("offset", -count)]
    first = int(match["first"])
    if not match["last"]:
        return [("offset", first)]
    size = int(match["last"]) - first + 1
    if size < 1:
        raise UsageError(f"--bytes: {args.bytes!r} ends before it begins")
    return [("offset", first), ("limit", size)]


def _print_one(pieces: Iterator[bytes], args: argparse.Namespace) -> None:
    if args.json:
        _print_json(pieces)
    elif sys.stdout.isatty():
        _print_clean(pieces)
    else:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _print_several(pieces: Iterator[bytes], args: argparse.Namespace) -> None:
    # Only here: one job needs none of it.
    import json

    from forge_actors.cli.log_frames import Prefixer, frames

    if args.json:
        for frame, data in frames(pieces):
            if data:
                fields = {name: frame[name] for name in _SHOWN}
                text = data.decode("utf-8", "replace")
                print(json.dumps({**fields, "text": text}), flush=True)
        return
    prefixer = Prefixer(clean=sys.stdout.isatty())
    for frame, data in frames(pieces):
        sys.stdout.buffer.write(prefixer.feed(frame, data))
        sys.stdout.buffer.flush()


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
