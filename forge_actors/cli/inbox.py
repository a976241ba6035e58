"""`inbox`: everything that needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.reading import read
from forge_actors.cli.text import clean
from forge_actors.cli.verb import add_common, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show everything that needs a person, with the evidence and the commands to\n"
    "choose from: questions of agents, providers that are closed until somebody acts,\n"
    "records that were set aside, kept claims, jobs whose outcome is not known, and\n"
    "worktrees that have to stay. `inbox dismiss ITEM` says that one is seen to."
)
EXAMPLES = """\
  forge-actors inbox
  forge-actors inbox --json
  forge-actors inbox dismiss job:4f2k9x
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="list the items (the default)")
    dismiss = actions.add_parser("dismiss", help="show an item no more")
    dismiss.add_argument("item", metavar="ITEM", help="its id, or an end of that")
    for action in (listing, dismiss):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "dismiss":
        item = service.post("inbox", "dismiss", body={"item": args.item})
        if args.json:
            print_json(item)
        else:
            print(clean(item["id"]))
        return 0

    def served() -> dict[str, Any]:
        found: dict[str, Any] = service.get("inbox")
        return found

    def kept() -> dict[str, Any]:
        from forge_actors.client import offline_inbox

        return offline_inbox.items(service.home)

    found = read(service, served, kept)
    if args.json:
        print_json(found)
        return 0
    if found["items"]:
        print("\n\n".join("\n".join(_lines(item)) for item in found["items"]))
    if found["more"]:
        note(f"and {found['more']} more; they are shown once these are seen to")
    if not (found["items"] or found["more"]):
        note("nothing needs you")
    return 0


def _lines(item: dict[str, Any]) -> list[str]:
    lines = [f"{item['id']}  since {item['since']}", f"  {item['says']}"]
    lines += [f"    {name}: {text}" for name, text in item["evidence"].items()]
    lines += [f"  $ {command}" for command in item["actions"]]
    return [clean(line) for line in lines]
