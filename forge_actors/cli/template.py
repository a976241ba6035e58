"""`template`: jobs with places for values, of the home and of trusted repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import table, terminal_width
from forge_actors.cli.verb import add_common, note, print_json, repository
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "List and show templates: those of templates.toml in the home, and those that\n"
    "repositories bring along and somebody has trusted (repo trust). Submit one with\n"
    "submit --template NAME --set PARAMETER=VALUE."
)
EXAMPLES = """\
  forge-actors template list --repo app
  forge-actors template show test
"""
HEAD = ("TEMPLATE", "REPO", "PARAMETERS", "DESCRIPTION")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="all templates")
    show = actions.add_parser("show", help="one, with its job in full")
    show.add_argument("name", metavar="TEMPLATE", help="what it is called")
    for action in (listing, show):
        action.add_argument("--repo", help="only its own, and those of the home")
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    query = [("repo", None if args.repo is None else repository(args.repo))]
    if args.action == "list":
        views = service.get("templates", query=query)["templates"]
        if args.json:
            print_json(views)
        elif views:
            rows = list(map(_row, views))
            lines = table(HEAD, rows, columns=terminal_width(), flexible=(3, 2))
            print("\n".join(lines))
        else:
            note("there are none; see forge-actors repo trust")
        return 0
    view = service.get("templates", args.name, query=query)
    if args.json:
        print_json(view)
        return 0
    from forge_actors.cli.trust_text import template_lines, visible

    for line in template_lines(view):
        print(visible(line))
    return 0


def _row(view: dict[str, Any]) -> tuple[str, ...]:
    names = " ".join(
        name if "default" in parameter else f"{name}!"
        for name, parameter in view["parameters"].items()
    )
    hidden = "(hidden) " if view.get("hidden") else ""
    return (view["name"], view["repo"] or "-", names, hidden + view["description"])
