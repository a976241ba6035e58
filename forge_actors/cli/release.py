"""`release`: which build of the program serves a home, and changing to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.stop import go_on
from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import add_common, note, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import ForgeError, Unavailable
from forge_actors.domain.jobs import RESERVED

if TYPE_CHECKING:
    import argparse

    from forge_actors.domain.releases import ActiveRelease, Release

HELP = (
    "Show which release this program is and which one the home lets serve, or make\n"
    "this program's the active one. A service of another release then hands over:\n"
    "what runs goes on, the service exits with 75, and whoever manages it starts the\n"
    "new one. A release is a version and the content of its files."
)
EXAMPLES = """\
  forge-actors release show
  /opt/forge-new/bin/forge-actors release activate
"""
HEAD = ("", "RELEASE", "REVISION", "SINCE", "FOLDER")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="this program's, the home's, the service's")
    activate = actions.add_parser("activate", help="let this program serve the home")
    for action in (show, activate):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    return (
        _activate(service, args) if args.action == "activate" else _show(service, args)
    )


def _show(service: Service, args: argparse.Namespace) -> int:
    from pathlib import Path

    from forge_actors.runtime.release import read_active, this_release

    mine, active = this_release(), read_active(Path(service.home))
    running = _running(service)
    if args.json:
        previous = None if active is None else active.previous
        print_json(
            {
                "program": _view(mine),
                "active": None if active is None else _active_view(active),
                "previous": None if previous is None else _view(previous),
                "service": running,
            }
        )
        return 0
    rows = [("this program", mine.id, "", "", mine.path)]
    if active is not None:
        view = _active_view(active)
        number, since = str(view["revision"]), view["since"]
        rows.append(("active", view["id"], number, since, view["path"]))
        if active.previous is not None:
            before = active.previous
            rows.append(("before it", before.id, "", "", before.path))
    if running is not None and running["id"] is not None:
        name, number = f"service {running['pid']}", str(running["revision"])
        rows.append((name, running["id"], number, "", running["path"]))
    print("\n".join(table(HEAD, rows, columns=terminal_width(), flexible=[4])))
    if active is None:
        note(f"no release serves {service.home} yet; the first service decides")
    return 0


def _activate(service: Service, args: argparse.Namespace) -> int:
    from pathlib import Path

    from forge_actors.runtime.ownership import prepare_home
    from forge_actors.runtime.release import activate, this_release
    from forge_actors.runtime.service_install import renew_launcher

    home = prepare_home(Path(service.home))
    # Before, since a service that notices by itself may be gone right after.
    running = _running(service)
    active, changed = activate(home, this_release())
    renew_launcher(home)
    if running is not None:
        _tell(service)
    if args.json:
        view = {**_active_view(active), "changed": changed, "service": running}
        print_json(view)
        return 0
    verb = "is" if changed else "was already"
    print(
        clean(f"{active.release} {verb} the active release of {home}")
        + f" (revision {active.revision})"
    )
    if running is not None and changed:
        note(
            f"the service (pid {running['pid']}) hands over and exits with 75"
            f"{go_on(running['running'])}; if nothing starts the new one:"
            " forge-actors serve"
        )
    return 0


def _tell(service: Service) -> None:
    """Have the service look, which it does by itself where the system tells it."""
    try:
        service.post("release", "check")
    except Unavailable:
        return  # it has looked, and ends
    except ForgeError as error:
        note(f"the service could not be told: {error}")


def _running(service: Service) -> dict[str, Any] | None:
    """The service and its release; None if none answers."""
    try:
        status = service.get("status")
    except Unavailable:
        return None
    found, counts = status["service"], status["counts"]
    release = found.get("release") or {"id": None, "path": None, "revision": None}
    running = sum(counts.get(state, 0) for state in RESERVED)
    return {"pid": found["pid"], **release, "running": running}


def _view(release: Release) -> dict[str, Any]:
    return {"id": release.id, "version": release.version, "path": release.path}


def _active_view(active: ActiveRelease) -> dict[str, Any]:
    from datetime import UTC, datetime

    since = datetime.fromtimestamp(int(active.activated_at), UTC)
    return {
        **_view(active.release),
        "revision": active.revision,
        "since": since.isoformat().replace("+00:00", "Z"),
    }
