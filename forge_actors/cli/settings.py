"""`settings`: check a file, show what is in force, reload it while jobs run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import add_common, note, print_json
from forge_actors.client.home import resolve_home
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    import argparse

HELP = (
    "Check a settings file without a service, show the settings in force with where\n"
    "each comes from, or let the service read its settings again while jobs run."
)
EXAMPLES = """\
  forge-actors settings check
  forge-actors settings show
  forge-actors settings reload
"""
HEAD = ("SETTING", "VALUE", "SOURCE")
_VIEW = ("name", "value", "source", "at")
#: What holds where a setting has no value of its own.
_INSTEAD = {"limits.repository_workers": "as limits.workers"}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="say what a file would mean, or its error")
    check.add_argument(
        "file", nargs="?", metavar="FILE", help="default: settings.toml in the home"
    )
    show = actions.add_parser("show", help="every setting, and where it comes from")
    reload = actions.add_parser("reload", help="read the file again; all of it or none")
    for action in (check, show, reload):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    if args.action == "reload":
        return _reload(Service(args.home), args)
    if args.action == "check":
        views = _read(args.home, args.file)
    else:
        service = Service(args.home)
        try:
            views = service.get("settings")["settings"]
        except Unavailable:
            views = _read(args.home, None)
            note(
                f"no service runs on {service.home};"
                " this is what one that is started here would use"
            )
    if args.json:
        print_json(views)
        return 0
    rows = [(view["name"], _value(view), _source(view)) for view in views]
    print("\n".join(table(HEAD, rows, columns=terminal_width(), flexible=[2, 0])))
    return 0


def _read(home: str | None, file: str | None) -> list[dict[str, Any]]:
    """The settings of a file and of the environment here."""
    from pathlib import Path

    from forge_actors.runtime.sources import SETTINGS_FILE, load

    path = Path(resolve_home(home), SETTINGS_FILE) if file is None else Path(file)
    if not os.path.lexists(path):
        if file is not None:
            raise InvalidInput(file, "does not exist")
        note(f"there is no {path}: the defaults hold")
    return [
        {name: getattr(view, name) for name in _VIEW} for view in load(path).views()
    ]


def _reload(service: Service, args: argparse.Namespace) -> int:
    answer = service.post("settings", "reload")
    if args.json:
        print_json(answer)
        return 0
    changed = answer["changed"]
    for change in changed:
        old, new = (_shown(change["name"], change[side]) for side in ("old", "new"))
        line = f"{change['name']}: {old} -> {new}"
        if change["needs_restart"]:
            line += "  (holds after a restart of the service)"
        print(clean(line))
    if not changed:
        note("nothing changed")
    return 0


def _value(view: dict[str, Any]) -> str:
    return _shown(view["name"], view["value"])


def _shown(name: str, value: object) -> str:
    return _INSTEAD.get(name, "not set") if value is None else str(value)


def _source(view: dict[str, Any]) -> str:
    return f"{view['source']} {view['at']}" if view["at"] else str(view["source"])
