"""`open`: the pages of the service in a browser, logged in."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from forge_actors.cli.verb import UsageError, note, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse

HELP = (
    "Open the pages of the service in a browser: what runs, what waits and why, the\n"
    "output of jobs as they print it. It is logged in by a link that works once and\n"
    "for a minute. The service begins to listen on 127.0.0.1 if it does not yet."
)
EXAMPLES = """\
  forge-actors open
  forge-actors open 4f2k9x
  forge-actors open --print
"""
#: Leads a browser to the link: what a program is started with, others can read.
FILE = "open.html"
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={url}">
<title>Forge Actors</title>
<p><a href="{url}">To the pages</a></p>
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("job", nargs="?", metavar="JOB", help="begin with the page of this job")
    add("--print", action="store_true", help="print the link and start nothing")
    add(
        "--direct",
        action="store_true",
        help="give the link itself to the browser, for one that may not read files of"
        " the home; for a moment other users of this machine can see it",
    )


def run(args: argparse.Namespace) -> int:
    if args.print and args.direct:
        raise UsageError("--direct: goes not with --print, which starts no browser")
    service = Service(args.home)
    place = "/"
    if args.job is not None:
        place = f"/jobs/{service.get('jobs', args.job)['id']}"
    shows = args.print or args.json
    opener = None if shows else _opener()
    link = service.post("login-links", body={"place": place})
    if args.json:
        print_json(link)
    elif opener is None:
        print(link["url"])
        if not shows:
            note("there is no browser to start here; the link works once")
    else:
        target = link["url"] if args.direct else _written(service.home, link["url"])
        _start(opener, target)
        note(
            f"{link['endpoint']} is opened in a browser; --print prints a link instead"
        )
    return 0


def _opener() -> str | None:
    """The program that opens what it is given in the browser of the user, if any."""
    import shutil

    if sys.platform == "darwin":
        return shutil.which("open")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open")


def _written(home: str, url: str) -> str:
    """A file that leads to the link, for the owner only; the next one replaces it."""
    import contextlib
    import html

    path = os.path.join(home, FILE)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(_PAGE.format(url=html.escape(url, quote=True)))
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror}"
        raise Refused(f"{problem}; --print prints the link") from None
    return path


def _start(opener: str, target: str) -> None:
    """Start it apart from us: a browser goes on when the terminal is closed."""
    nowhere = [
        (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)
    ]
    try:
        # Nobody waits for it: some openers end only with their browser.
        os.posix_spawn(
            opener,
            [opener, target],
            os.environ,
            file_actions=nowhere,
            setsid=True,
        )
    except OSError as error:
        problem = f"{opener} cannot be started: {error.strerror}"
        raise Refused(f"{problem}; --print prints the link") from None
