"""`controller`: agent sessions that own a piece of work, and are woken to go on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forge_actors.cli.controller_text import detail, listing
from forge_actors.cli.prompts import add_prompt, prompt_of
from forge_actors.cli.text import clean
from forge_actors.cli.verb import (
    UsageError,
    add_common,
    note,
    print_json,
    repository,
)
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse

HELP = (
    "Have the session of an agent go on with its work: at times, when a job ends, or\n"
    "when its agent asks for it. See also: schedule add NAME --wake CONTROLLER."
)
EXAMPLES = """\
  forge-actors controller add fixer --job 7q3a --prompt "Go on with the next failure."
  forge-actors controller wake fixer
  forge-actors controller tell wait --note "the tests run"
"""
DISPOSITIONS = ("continue_immediately", "wait", "wait_for_user", "goal_complete")
#: Options that go into a controller under their own name.
_PLAIN = ("job", "host", "rounds", "repeats", "failures", "grace", "stalled")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="have a session go on from now on")
    _add_options(add)
    actions.add_parser("list", help="all controllers")
    show = actions.add_parser("show", help="a controller, and what woke it")
    show.add_argument(
        "--count", type=int, default=10, metavar="N", help="wakes to tell of (10)"
    )
    wake = actions.add_parser("wake", help="have it go on now")
    wake.add_argument(
        "--request-id", metavar="ID", help="the same id again wakes it no second time"
    )
    pause = actions.add_parser("pause", help="let nothing wake it, until resume")
    resume = actions.add_parser("resume", help="let it go on; its budgets begin anew")
    remove = actions.add_parser("remove", help="forget it; its jobs stay")
    for named in (add, show, wake, pause, resume, remove):
        named.add_argument("name", metavar="CONTROLLER", help="what it is called")
    tell = actions.add_parser("tell", help="say how a turn ends, within its job")
    tell.add_argument("disposition", choices=DISPOSITIONS, help="how it goes on")
    tell.add_argument(
        "name", nargs="?", metavar="CONTROLLER", help="which one (that of this job)"
    )
    tell.add_argument("--note", default="", metavar="TEXT", help="why, for people")
    tell.add_argument(
        "--state",
        default="",
        metavar="TEXT",
        help="where the work stands; the same again counts as no progress",
    )
    for action in actions.choices.values():
        add_common(action, again=True)


def _add_options(add: argparse.ArgumentParser) -> None:
    add.add_argument("--job", metavar="JOB", help="the job whose session goes on")
    add.add_argument("--repo", metavar="REPO", help="where its work is (that of JOB)")
    add_prompt(add.add_mutually_exclusive_group(required=True))
    add.add_argument("--host", help="what has it go on (process: the agent's program)")
    add.add_argument("--binding", metavar="JSON", help="what the host needs to know")
    add.add_argument(
        "--rounds", type=int, metavar="N", help="turns until a person looks (8)"
    )
    add.add_argument(
        "--repeats", type=int, metavar="N", help="turns in a row to the same state (2)"
    )
    add.add_argument(
        "--failures", type=int, metavar="N", help="turns in a row that fail (3)"
    )
    add.add_argument(
        "--grace", metavar="TIME", help="no schedule wakes it so soon (5m)"
    )
    add.add_argument(
        "--stalled", metavar="TIME", help="without a word it goes on after this (10m)"
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    match args.action:
        case "add":
            view = service.post("controllers", body=_wanted(args))
            _print(args, view, lambda: [view["name"]])
        case "list":
            views = service.get("controllers")["controllers"]
            _print(args, views, lambda: listing(views))
        case "show":
            view = service.get("controllers", args.name)
            query = [("limit", args.count)]
            wakes = service.get("controllers", args.name, "wakes", query=query)["wakes"]
            _print(args, {**view, "wakes": wakes}, lambda: detail(view, wakes))
        case "wake":
            return _wake(service, args)
        case "tell":
            body = {
                "disposition": args.disposition,
                "note": args.note,
                "state": args.state,
            }
            names = [] if args.name is None else [args.name]
            view = service.post("controllers", *names, "tell", body=body)
            _print(args, view, lambda: [f"{view['name']} {args.disposition}"])
        case "remove":
            view = service.delete("controllers", args.name)
            _print(args, view, lambda: [view["name"]])
        case _:
            view = service.post("controllers", args.name, args.action)
            _print(args, view, lambda: [f"{view['name']} {view['state']}"])
    return 0


def _print(args: argparse.Namespace, value: Any, lines: Any) -> None:
    if args.json:
        print_json(value)
    else:
        for line in lines():
            print(clean(line))


def _wanted(args: argparse.Namespace) -> dict[str, Any]:
    wanted = {"name": args.name, "prompt": prompt_of(args, from_input=False)}
    given = {name: getattr(args, name) for name in _PLAIN}
    wanted |= {name: value for name, value in given.items() if value is not None}
    if args.repo is not None:
        wanted["repo"] = repository(args.repo)
    elif args.job is None:
        raise UsageError(
            "which session? --job names a job of it, --repo where it works"
        )
    if args.binding is not None:
        try:
            wanted["binding"] = json.loads(args.binding)
        except ValueError as error:
            raise InvalidInput("binding", f"is no JSON: {error}") from None
    return wanted


def _wake(service: Service, args: argparse.Namespace) -> int:
    body = {"request_id": args.request_id}
    told = service.post("controllers", args.name, "wake", body=body)
    woken = told["state"] == "dispatched"
    _print(args, told, lambda: [told["job"] or told["dispatch"] or told["state"]])
    if not woken and not args.json:
        note(f"{args.name} was not woken: {told['reason']}")
    return 0 if woken else 1
