"""`webhook`: who is told of events by HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean
from forge_actors.cli.verb import add_common, note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "List the webhooks of the settings and how far each is, tell one something to see\n"
    "whether it works, or open one again that failed for too long."
)
EXAMPLES = """\
  forge-actors webhook list
  forge-actors webhook test ci
  forge-actors webhook open ci
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list them, and how far each is")
    test = actions.add_parser("test", help="tell one something that is no event")
    open_ = actions.add_parser("open", help="tell one again what comes")
    for action in (test, open_):
        action.add_argument("name", metavar="NAME")
    for action in (listing, test, open_):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "list":
        return _list(service, args)
    answer = service.post("webhooks", args.name, args.action)
    if args.json:
        print_json(answer)
    elif args.action == "test":
        print(f"it answered {answer['status']}")
    else:
        print(clean(_line(answer)))
    return 0


def _list(service: Service, args: argparse.Namespace) -> int:
    found: list[dict[str, Any]] = service.get("webhooks")["webhooks"]
    if args.json:
        print_json(found)
        return 0
    for hook in found:
        print(clean(_line(hook)))
    if not found:
        note("there are no [[webhooks]] in the settings")
    return 0


def _line(hook: dict[str, Any]) -> str:
    line = f"{hook['name']}  {hook['state']}  {hook['url']}  {hook['behind']} behind"
    if hook["detail"]:
        line += f"  since {hook['since']}: {hook['detail']}"
    return line
