"""`policy`: which work is let in and started now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.reading import read
from forge_actors.cli.text import clean
from forge_actors.cli.verb import add_common, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Show or set which work is let in and started. What runs goes on in any case.\n"
    "  normal       anything; nothing is held back\n"
    "  exclusive    only jobs of one work: a workflow instance or an EPIC run\n"
    "  convergence  nothing new is let in, what is open is brought to its end\n"
    "  maintenance  nothing is started\n"
    "It lasts until it is set again, also over restarts, or until --until or --for.\n"
    "narrow goes from convergence to exclusive, and from nothing else."
)
EXAMPLES = """\
  forge-actors policy show
  forge-actors policy set maintenance --for 2h --reason "new disk"
  forge-actors policy normal
"""
#: Those of the domain; importing it would cost too much.
MODES = ("normal", "exclusive", "convergence", "maintenance")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="which one it is, and what ends it")
    set_ = actions.add_parser("set", help="have another one in force")
    set_.add_argument("mode", choices=MODES, metavar="MODE", help=", ".join(MODES))
    text = "the work whose jobs alone are started, of exclusive"
    set_.add_argument("--work", metavar="ID", help=text)
    narrow = actions.add_parser("narrow", help="from convergence to one work")
    narrow.add_argument("work", metavar="WORK")
    normal = actions.add_parser("normal", help="let in and start anything again")
    for action in (set_, narrow):
        add = action.add_argument
        add("--until", metavar="TIME", help="end it then, e.g. 2026-01-31T18:00")
        add("--for", dest="span", metavar="TIME", help="end it after so long, e.g. 2h")
        add("--reason", default="", metavar="TEXT", help="what for; why shows it")
    for action in (set_, narrow, normal):
        text = "only if it still has this revision"
        action.add_argument("--revision", type=int, metavar="N", help=text)
    for action in (show, set_, narrow, normal):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "show":
        policy = read(
            service, lambda: service.get("policy"), lambda: _kept(service.home)
        )
    elif args.action == "normal":
        body = {"mode": "normal", "revision": args.revision}
        policy = service.post("policy", body=body)
    else:
        path = ("policy", "narrow") if args.action == "narrow" else ("policy",)
        policy = service.post(*path, body=_body(args))
    if args.json:
        print_json(policy)
    else:
        print("\n".join(map(clean, policy_lines(policy))))
    return 0


def _body(args: argparse.Namespace) -> dict[str, object]:
    body: dict[str, object] = {
        "work": args.work,
        "until": args.until,
        "for": args.span,
        "reason": args.reason,
        "revision": args.revision,
    }
    return body if args.action == "narrow" else {"mode": args.mode, **body}


def _kept(home: str) -> dict[str, Any]:
    from forge_actors.client import offline_policy

    return offline_policy.policy(home)


def policy_lines(policy: dict[str, Any]) -> list[str]:
    """The policy, what it means, and how long it lasts."""
    line = f"{policy['mode']}, revision {policy['revision']}"
    if policy["since"] is not None:
        line += f", since {policy['since']}"
    if policy["until"] is not None:
        line += f", until {policy['until']}"
    return [line, *([policy["note"]] if policy["note"] else [])]
