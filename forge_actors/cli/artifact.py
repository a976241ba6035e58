"""`artifact`: the files that were collected from jobs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from forge_actors.cli.artifact_text import file_lines, left_out_lines, summary
from forge_actors.cli.reading import read
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import NotFound

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]
    #: What is there of a job, and what gives the bytes of one file.
    Found = tuple[Json, Callable[[str], Iterator[bytes]]]

HELP = "List or fetch the files that were collected from a job (submit --artifact)."
EXAMPLES = """\
  forge-actors artifact list 4f2k9x
  forge-actors artifact get 4f2k9x --to results
  forge-actors artifact get 4f2k9x report/index.html --to -
"""
#: Bytes that are read at once.
PIECE = 256 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="which files there are")
    get = actions.add_parser("get", help="write files to a folder, or one to stdout")
    for action in (listing, get):
        action.add_argument("job", metavar="JOB", help="its id, or a part of it")
    get.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="a file, or a folder for all in it (default: everything)",
    )
    get.add_argument(
        "--to",
        metavar="DIR",
        default=".",
        help="where to (default: the current folder); - for stdout",
    )
    get.add_argument(
        "--force", action="store_true", help="replace files that are there already"
    )
    for action in (listing, get):
        action.add_argument(
            "--attempt", type=int, metavar="N", help="of this attempt, not the last"
        )
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)

    def served() -> Found:
        query = [("attempt", args.attempt)]
        found = service.get("jobs", args.job, "artifacts", query=query)
        del found["next"]  # all of them are on this page

        def pieces(path: str) -> Iterator[bytes]:
            place = ("jobs", args.job, "artifacts", *path.split("/"))
            return service.stream("GET", place, query=query)

        return found, pieces

    def kept() -> Found:
        return _kept(service.home, args.job, args.attempt)

    found, pieces = read(service, served, kept)
    if args.action == "list":
        return _list(found, args)
    files = _wanted(found, args)
    if args.to == "-":
        return _print(files, pieces)
    return _write(files, pieces, args)


def _kept(home: str, selector: str, attempt: int | None) -> Found:
    """The same from the files of a home that nothing serves."""
    from forge_actors.cli.kept_artifacts import artifacts_of
    from forge_actors.runtime.kept_artifacts import KeptFile, as_json

    job, found = artifacts_of(home, selector, attempt)

    def pieces(path: str) -> Iterator[bytes]:
        with KeptFile(home, job, found.attempt, path).opened() as reading:
            while piece := reading(PIECE):
                yield piece

    return as_json(found), pieces


def _list(found: Json, args: argparse.Namespace) -> int:
    if args.json:
        print_json(found)
        return 0
    for line in file_lines(found):
        print(line)
    note(f"attempt {found['attempt']}: {summary(found)}")
    for line in left_out_lines(found):
        note(f"left out: {line}")
    return 0


def _wanted(found: Json, args: argparse.Namespace) -> list[Json]:
    files: list[Json] = found["files"]
    if not files:
        raise NotFound(f"there are no artifacts: {summary(found)}")
    chosen: dict[str, Json] = {}
    for path in args.path or [""]:
        name = path.rstrip("/")
        under = [
            file
            for file in files
            if not name or file["path"] == name or file["path"].startswith(f"{name}/")
        ]
        if not under:
            raise NotFound(f"no artifact is called {path!r}; see: artifact list")
        chosen |= {file["path"]: file for file in under}
    return list(chosen.values())


def _print(files: list[Json], pieces: Callable[[str], Iterator[bytes]]) -> int:
    from forge_actors.cli.fetching import verified

    if len(files) != 1:
        raise UsageError(f"--to -: takes one file, these are {len(files)}")
    [file] = files
    for piece in verified(file, pieces(file["path"])):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return 0


def _write(
    files: list[Json],
    pieces: Callable[[str], Iterator[bytes]],
    args: argparse.Namespace,
) -> int:
    from forge_actors.cli.fetching import Target

    target = Target(args.to, force=args.force)
    try:
        target.check(files)
        for file in files:
            target.write(file, pieces(file["path"]))
    finally:
        target.close()
    if args.json:
        print_json(files)
    else:
        size = sum(file["bytes"] for file in files)
        note(f"{len(files)} files, {size} bytes, written to {args.to}")
    return 0
