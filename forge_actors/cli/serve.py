"""`serve`: run the service of a home, here or detached."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.home import prepare_socket_path, resolve_home, socket_path
from forge_actors.domain.errors import ForgeError, InvalidInput

if TYPE_CHECKING:
    import argparse
    from io import FileIO

HELP = (
    "Run the service of a home until it is stopped: by stop, drain --stop, Ctrl-C or\n"
    "SIGTERM. What runs then goes on, and the next service takes it over; stop --jobs\n"
    "ends it too. Exits with 75 when another release was made the active one of the\n"
    "home, so that whoever manages the service starts that one. It reads its settings\n"
    "from settings.toml in the home (settings show lists them). Detached, it writes\n"
    "what it says of itself to service.log there; [log] says how, and how much is kept."
)
EXAMPLES = """\
  forge-actors serve
  forge-actors serve --detach
  forge-actors serve --home /var/tmp/forge
"""
#: What a detached service says of itself goes to this file in its home.
LOG = "service.log"
#: How a line of a service begins that tells of a stage of its start.
STAGE_LINE = "stage "
#: Seconds after which a stage that still lasts is worth a word.
STAGE_SECONDS = 1.0


class StartFailed(ForgeError):
    """The service ended before it was ready."""

    code = "START_FAILED"


def configure(parser: argparse.ArgumentParser) -> None:
    import argparse

    parser.add_argument(
        "--detach",
        action="store_true",
        help="return once it is ready, and print its process id",
    )
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--stages", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--log-file", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    home = Path(resolve_home(args.home))
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput("home", f"{home} is no folder") from None
    except OSError as error:
        raise InvalidInput("home", f"{home}: {error.strerror}") from None
    if args.detach:
        pid = start_detached(home)
        if args.json:
            print_json({"pid": pid, "home": str(home)})
        else:
            print(pid)
        return 0
    import gc
    import signal

    # All that is loaded stays. To look through it time and again takes a sixth of the
    # loading; the service lets the collector of cycles begin once it is ready.
    gc.disable()
    # Loading the service takes a while. A signal of that time waits until it can act.
    ours = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    ours |= {signal.SIGUSR1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    from forge_actors.runtime.service import serve

    socket_path(str(home))  # a place that is not fit is refused before anything runs
    place = partial(prepare_socket_path, str(home))
    return serve(
        home,
        place,
        ready_fd=args.ready_fd,
        stages=args.stages,
        log_file=args.log_file,
    )


def start_detached(home: Path) -> int:
    """Start a service of an existing home in a session of its own; its pid.

    Raises:
        StartFailed: it ended first; carries its words and its exit status.
    """
    # `-P`: not a package of the folder that the user happens to be in.
    command = [sys.executable, "-P", "-m", "forge_actors"]
    command += ["serve", "--home", str(home)]
    reading, writing = os.pipe()
    path = home / LOG
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        opened = os.open(path, flags, 0o600)
    except OSError as error:
        raise InvalidInput("home", f"{path}: {error.strerror}") from None
    with os.fdopen(opened, "ab") as log:
        before = log.seek(0, os.SEEK_END)
        try:
            service = subprocess.Popen(
                [
                    *(*command, "--ready-fd", str(writing), "--stages"),
                    *("--log-file", str(path)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[writing],
            )
        finally:
            os.close(writing)
    # Unbuffered: what is left in a buffer would be waited for.
    with open(reading, "rb", buffering=0) as ready:
        try:
            if (told := _through(ready)) is not None:
                if told:
                    note(f"the service is not ready yet; it waits for space: {told}")
                return service.pid
        except KeyboardInterrupt:
            service.terminate()
            raise
    status = service.wait()
    raise _failure(path, before, status)


def _through(ready: FileIO) -> str | None:
    """What a service says once it is ready (nothing) or has to wait; None: it ended.

    A stage of its start that lasts is noted meanwhile.
    """
    stage = ""
    while True:
        if stage and not select.select([ready], [], [], STAGE_SECONDS)[0]:
            note(f"the service starts: {clean(stage)}")
        stage = ""
        told = ready.readline().decode("utf-8", "replace")
        if not told:
            return None
        if not told.startswith(STAGE_LINE):
            return told.strip()
        stage = told.removeprefix(STAGE_LINE).partition(": ")[2].strip()


def _failure(log: Path, start: int, status: int) -> StartFailed:
    if status == 0:
        return StartFailed("the service was told to stop before it was ready")
    with log.open("rb") as file:
        if file.seek(0, os.SEEK_END) < start:
            start = 0  # it has begun anew
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    # Its own last words: one that started at the same time writes here too.
    words = [line for line in lines if line.startswith("forge-actors: ")] or lines
    reason = clean(words[-1]).removeprefix("forge-actors: ") if words else ""
    failure = StartFailed(
        f"the service did not start: {reason or f'it ended with status {status}'}"
        f" (see {log})"
    )
    # A negative status is a signal, which a shell shows as 128 and its number.
    failure.exit_code = status if status > 0 else 128 - status
    return failure
