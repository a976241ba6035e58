"""`service`: have the system keep the service of a home running."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.home import resolve_home
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput, NotFound, Refused, Unavailable
from forge_actors.domain.services import MANAGERS

if TYPE_CHECKING:
    import argparse

    from forge_actors.domain.services import ManagedState

HELP = (
    "Have systemd or launchd of the user start the service, watch it and start it\n"
    "again when it fails. What runs goes on over its restarts and upgrades. It keeps\n"
    "the PATH and the language that it was installed with."
)
EXAMPLES = """\
  forge-actors service install
  forge-actors service status
  forge-actors service logs -f
"""
MAX_LINES = 100_000


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser("install", help="install it and start it")
    install.add_argument(
        "--manager",
        choices=MANAGERS,
        help="by default the one that there is; portable starts it only now",
    )
    install.add_argument(
        "--no-start", action="store_true", help="install it, and start it later"
    )
    uninstall = actions.add_parser(
        "uninstall", help="stop it and take it out; jobs that run go on"
    )
    status = actions.add_parser("status", help="what the manager says of it")
    logs = actions.add_parser("logs", help="what the service says of itself")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as it comes")
    logs.add_argument(
        "--lines", type=int, default=100, metavar="N", help="the last N (100)"
    )
    for action in (install, uninstall, status, logs):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    from forge_actors.runtime import service_install

    home = Path(resolve_home(args.home))
    match args.action:
        case "install":
            return _install(home, args)
        case "uninstall":
            manager, notes = service_install.uninstall(home)
            if args.json:
                print_json({"manager": manager, "installed": False})
            else:
                print(f"the service is no longer installed with {manager}")
            for text in notes:
                note(text)
        case "status":
            state = service_install.state(home)
            _print(args, state)
            if state.warning is not None:
                note(state.warning)
        case _:
            if not 1 <= args.lines <= MAX_LINES:
                raise UsageError(f"--lines: must be from 1 to {MAX_LINES}")
            if args.json:
                raise UsageError("the log of a service has no JSON form here")
            words = service_install.log_command(home, args.lines, follow=args.follow)
            try:
                os.execvp(words[0], words)  # noqa: S606 - its output is what is asked
            except OSError as error:
                raise NotFound(f"{words[0]}: {error.strerror}") from None
    return 0


def _install(home: Path, args: argparse.Namespace) -> int:
    from forge_actors.runtime import service_install

    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput("home", f"{home}: {error.strerror}") from None
    pid = _unmanaged(home)
    if pid is not None and not args.no_start and args.manager != "portable":
        raise Refused(
            f"a service runs on {home} already (pid {pid}) that nobody manages: stop it"
            " first with forge-actors stop; its jobs go on"
        )
    state, notes = service_install.install(home, args.manager, start=not args.no_start)
    _print(args, state)
    for text in notes:
        note(text)
    return 0


def _unmanaged(home: Path) -> int | None:
    """The service of a home that runs without a manager, if one does."""
    from forge_actors.runtime.service_install import installed_with

    if installed_with(home) is not None:
        return None
    try:
        found: dict[str, Any] = Service(str(home)).get("status")["service"]
    except Unavailable:
        return None
    return int(found["pid"])


def _print(args: argparse.Namespace, state: ManagedState) -> None:
    if args.json:
        print_json({name: getattr(state, name) for name in state.__struct_fields__})
        return
    enabled = "starts by itself" if state.enabled else "does not start by itself"
    rows = [
        ("manager", f"{state.manager}, {enabled}"),
        ("service", state.name),
        ("state", state.detail),
        ("pid", "" if state.pid is None else str(state.pid)),
        ("file", state.file or ""),
    ]
    for name, text in rows:
        if text:
            print(clean(f"{name:8}  {text}"))
