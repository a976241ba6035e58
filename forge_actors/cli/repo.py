"""`repo`: add, list, show, trust, relocate, enable, disable or remove repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli import repo_trust
from forge_actors.cli.job_text import page
from forge_actors.cli.reading import read
from forge_actors.cli.repo_text import FLEXIBLE, HEAD, row, shown
from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import add_common, note, print_json, repository
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Add, list, show, trust, relocate, enable, disable or remove the repositories of\n"
    "jobs. A repository may bring schedules, templates and workflows along, in\n"
    ".forge/*.toml: none of them is used until trust has shown all of it and somebody\n"
    "has taken it over; a change of the files changes nothing until then."
)
EXAMPLES = """\
  forge-actors repo add .
  forge-actors repo trust app
  forge-actors repo remove app --cancel
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a git repository known")
    add.add_argument("path", metavar="PATH", help="a folder in the repository")
    add.add_argument("--name", help="its name here (default: the folder's)")
    listing = actions.add_parser("list", help="list all repositories")
    show = actions.add_parser("show", help="show one repository")
    relocate = actions.add_parser(
        "relocate", help="say where a repository was moved to, and its jobs with it"
    )
    remove = actions.add_parser("remove", help="forget a repository, not its files")
    remove.add_argument(
        "--cancel", action="store_true", help="end its jobs first, if it has any"
    )
    enable = actions.add_parser("enable", help="let its jobs start")
    disable = actions.add_parser("disable", help="start nothing new in it")
    trust = actions.add_parser(
        "trust",
        help="take over the schedules, templates and workflows of its .forge/*.toml",
    )
    repo_trust.configure(trust)
    for named in (show, remove, enable, disable, trust):
        named.add_argument("name", metavar="NAME", help="its name, or a path in it")
    relocate.add_argument("name", metavar="NAME", help="its name")
    relocate.add_argument("path", metavar="PATH", help="a folder in it, where it is")
    for action in (add, listing, show, relocate, remove, enable, disable, trust):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "trust":
        return repo_trust.trust(service, args)
    if args.action == "list":
        views = _all(service)
        if args.json:
            print_json(views)
        else:
            rows = [row(view) for view in views]
            columns = terminal_width()
            lines = table(HEAD, rows, columns=columns, flexible=FLEXIBLE)
            print("\n".join(lines))
        return 0
    view = _one(service, args)
    if view["note"]:
        note(view["note"])
    if args.json:
        print_json(view)
    elif args.action == "show":
        print("\n".join(page(shown(view))))
    else:
        print(clean(view["name"]))
    return 0


def _all(service: Service) -> list[dict[str, Any]]:
    def served() -> list[dict[str, Any]]:
        views: list[dict[str, Any]] = service.get("repositories")["repositories"]
        return views

    def kept() -> list[dict[str, Any]]:
        from forge_actors.client import offline_home

        return offline_home.repositories(service.home)

    return read(service, served, kept)


def _show(service: Service, name: str) -> dict[str, Any]:
    def served() -> dict[str, Any]:
        view: dict[str, Any] = service.get("repositories", name)
        return view

    def kept() -> dict[str, Any]:
        from forge_actors.client import offline_home

        return offline_home.repository(service.home, name)

    return read(service, served, kept)


def _one(service: Service, args: argparse.Namespace) -> dict[str, Any]:
    view: dict[str, Any]
    if args.action == "add":
        body = {"path": _place(args.path), "name": args.name}
        view = service.post("repositories", body=body)
    elif args.action == "relocate":
        body = {"path": _place(args.path)}
        view = service.post("repositories", args.name, "relocate", body=body)
    elif args.action == "show":
        view = _show(service, repository(args.name))
    elif args.action in ("enable", "disable"):
        view = service.post("repositories", repository(args.name), args.action)
    else:
        cancel = [("cancel", 1)] if args.cancel else []
        view = service.delete("repositories", repository(args.name), query=cancel)
    return view


def _place(path: str) -> str:
    """Always a path, also where it looks like a name."""
    return repository(path if "/" in path or not path else f"./{path}")
