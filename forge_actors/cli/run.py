"""`run`: a file of jobs, or one command, here and now, without a service."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.cleaner import Cleaner
from forge_actors.cli.verb import UsageError, note
from forge_actors.client.home import resolve_home
from forge_actors.domain.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    import argparse
    from typing import TextIO

    from forge_actors.domain.jobs import JobView
    from forge_actors.runtime.batch import Progress, Watcher

HELP = (
    "Run a file of jobs under its limits, or one command in the current repository,\n"
    "and return when everything has ended. With a command the exit status is its own;\n"
    "with a file it is 1 if a job did not succeed. The output of a command goes into\n"
    "a pipe or a file as it is; on a terminal control characters are left out."
)
EXAMPLES = """\
  forge-actors run examples/quickstart.toml
  forge-actors run --plain nightly.toml
  forge-actors run -- make test
"""
TAKES_COMMAND = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="a job file (TOML)")
    parser.add_argument(
        "--plain", action="store_true", help="a line for each change, no live table"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the temporary home, with its logs"
    )
    parser.add_argument("--timeout", metavar="TIME", help="limit of the one command")


def run(args: argparse.Namespace) -> int:
    if (args.file is None) == (args.command is None):
        raise UsageError("give either a job file, or a command behind --")
    if args.file is not None and args.timeout is not None:
        raise UsageError("--timeout: belongs to a command; a file has it for each job")
    if args.home is None:
        home = Path(tempfile.mkdtemp(prefix="forge-"))
    else:
        home = Path(resolve_home(args.home))
    done = False
    try:
        code = _run_command(args, home) if args.file is None else _run_file(args, home)
        done = code == 0
        return code
    except (InvalidInput, NotFound, Refused):
        done = True  # nothing ran, so there is nothing to look at
        raise
    finally:
        if args.home is None:
            _leave(home, keep=args.keep or not done)


def _leave(home: Path, *, keep: bool) -> None:
    from forge_actors.runtime.worktree_folders import discard, has_artifacts

    if not keep or not (home / "store.sqlite").exists():
        if has_artifacts(home):
            note(f"the home of this run is kept, it has artifacts of its jobs: {home}")
        elif not discard(home):
            note(f"the home of this run is kept, it has worktrees of its jobs: {home}")
    else:
        note(f"the home of this run is kept: {home}")


def _run_file(args: argparse.Namespace, home: Path) -> int:
    import trio

    from forge_actors.cli import run_view
    from forge_actors.runtime.batch import run_file
    from forge_actors.runtime.interrupts import until_interrupted

    live = not (args.plain or args.json) and sys.stdout.isatty()
    watcher: Watcher = run_view.Live() if live else run_view.Plain(quiet=args.json)
    with watcher if isinstance(watcher, run_view.Live) else run_view.nothing():
        work = partial(run_file, args.file, home, watcher)
        progress: Progress = trio.run(until_interrupted, work)
    if args.json:
        run_view.print_summary_json(progress)
    else:
        run_view.print_summary(progress, home)
    return 0 if progress.succeeded else 1


def _run_command(args: argparse.Namespace, home: Path) -> int:
    import trio

    from forge_actors.cli.wait import own_code
    from forge_actors.domain.requests import JobRequest, encode_argv
    from forge_actors.runtime.batch import run_command
    from forge_actors.runtime.interrupts import until_interrupted
    from forge_actors.runtime.views import as_json

    request = JobRequest(
        repo=os.getcwd(),
        argv=encode_argv(args.command),
        timeout=args.timeout,
        origin="run",
    )
    stdout = _Sink(sys.stderr if args.json else sys.stdout)
    stderr = _Sink(sys.stderr)
    try:
        work = partial(run_command, request, home, stdout, stderr)
        view: JobView = trio.run(until_interrupted, work)
    finally:
        stdout.end()
        stderr.end()
    job = as_json(view)
    if args.json:
        from forge_actors.cli.verb import print_json

        print_json(job)
    elif view.error is not None and view.exit_code is None:
        # What it printed last was on this terminal already.
        note(view.error.message.partition("\n")[0])
    return own_code(job)


class _Sink:
    """Where the output of the command goes: as it is, but fit for a terminal on one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream.buffer
        self._cleaner = Cleaner() if stream.isatty() else None

    def __call__(self, data: bytes) -> None:
        self._write(self._cleaner.feed(data).encode() if self._cleaner else data)

    def end(self) -> None:
        """Write what was held back: it could have been the beginning of a sequence."""
        if self._cleaner is not None:
            self._write(self._cleaner.feed(b"", final=True).encode())

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()
