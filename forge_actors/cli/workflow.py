"""`workflow`: jobs that depend on each other, begun from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.out_file import write_out
from forge_actors.cli.text import clean
from forge_actors.cli.verb import (
    TIMED_OUT,
    UsageError,
    add_common,
    note,
    print_json,
    repository,
)
from forge_actors.cli.workflow_text import detail, listing, report
from forge_actors.client.sync import Service
from forge_actors.client.workflow_files import read_workflow

if TYPE_CHECKING:
    import argparse

HELP = (
    "Run steps that depend on each other, across repositories; the same for many\n"
    "items; or an agent, until a check passes. Each step is a job as any other. What\n"
    "runs goes on by what it was begun with, whatever becomes of the file, and over\n"
    "every restart."
)
EXAMPLES = """\
  forge-actors workflow run release.toml --follow
  forge-actors workflow run release.toml --set version=1.2
  forge-actors workflow graph release --svg release.svg
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_file = actions.add_parser("run", help="begin the workflow of a file")
    check = actions.add_parser("check", help="say what is wrong with a file")
    for of_file in (run_file, check):
        of_file.add_argument("file", metavar="FILE", help="a workflow in TOML")
        of_file.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="give a parameter of the file another value",
        )
        of_file.add_argument(
            "--repo",
            metavar="REPO",
            help="FILE is the name of a workflow that this repository brings along, as"
            " somebody has trusted it",
        )
    run_file.add_argument("--name", help="call it so, and not as the file says")
    run_file.add_argument(
        "--request-id", metavar="ID", help="the same id again begins nothing more"
    )
    run_file.add_argument(
        "--follow",
        action="store_true",
        help="wait until it has ended, and exit with 1 unless it succeeded",
    )
    listed = actions.add_parser("list", help="the workflows, the newest first")
    listed.add_argument("--state", help="only those in this state")
    listed.add_argument(
        "--limit", type=int, default=50, metavar="N", help="at most N (50)"
    )
    show = actions.add_parser("show", help="a workflow and its steps")
    wait = actions.add_parser("wait", help="wait until it has ended, then show it")
    for waiting in (run_file, wait):
        waiting.add_argument(
            "--timeout", metavar="TIME", help="how long to wait, for example 90s or 2h"
        )
    pause = actions.add_parser("pause", help="let nothing new begin, until resume")
    resume = actions.add_parser("resume", help="let it go on")
    cancel = actions.add_parser("cancel", help="let nothing new begin, end its jobs")
    retry = actions.add_parser("retry", help="begin what failed anew")
    approve = actions.add_parser("approve", help="say yes to what a step asks")
    deny = actions.add_parser("deny", help="say no to what a step asks")
    report = actions.add_parser("report", help="how it went, in a few lines")
    graph = actions.add_parser("graph", help="its steps as a graph, or a picture of it")
    graph.add_argument("--svg", metavar="FILE", help="draw it; - for the output")
    for named in (
        show,
        wait,
        pause,
        resume,
        cancel,
        retry,
        approve,
        deny,
        graph,
        report,
    ):
        named.add_argument(
            "name", metavar="WORKFLOW", help="its name, or its id or the begin of it"
        )
    retry.add_argument(
        "steps", nargs="*", metavar="STEP", help="only these (all that failed)"
    )
    for answered in (approve, deny):
        answered.add_argument("step", metavar="STEP", help="the step that asks")
    for action in actions.choices.values():
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    match args.action:
        case "run" | "check":
            return _run(service, args)
        case "list":
            query = [("limit", args.limit)]
            if args.state is not None:
                query.append(("state", args.state))
            views = service.get("workflows", query=query)["workflows"]
            _print(args, views, lambda: listing(views))
        case "wait":
            return _wait(service, args, args.name)
        case "show":
            view = service.get("workflows", args.name)
            _print(args, view, lambda: detail(view))
        case "report":
            view = service.get("workflows", args.name)
            _print(args, view, lambda: report(view))
        case "graph":
            return _graph(args, service.get("workflows", args.name))
        case "retry":
            body: dict[str, Any] = {"steps": args.steps}
            _told(args, service.post("workflows", args.name, "retry", body=body))
        case "approve" | "deny":
            body = {"step": args.step, "yes": args.action == "approve"}
            _told(args, service.post("workflows", args.name, "answer", body=body))
        case _:
            _told(args, service.post("workflows", args.name, args.action))
    return 0


def _print(args: argparse.Namespace, value: Any, lines: Any) -> None:
    if args.json:
        print_json(value)
    else:
        for line in lines():
            print(clean(line))


def _graph(args: argparse.Namespace, view: dict[str, Any]) -> int:
    from forge_actors.cli.workflow_graph import lines, picture

    if args.svg is None:
        _print(args, view, lambda: lines(view))
        return 0
    write_out(args.svg, picture(view))
    return 0


def _told(args: argparse.Namespace, view: dict[str, Any]) -> None:
    _print(args, view, lambda: [f"{view['name']} {view['state']}"])


def _run(service: Service, args: argparse.Namespace) -> int:
    only_check = args.action == "check"
    parameters = _given(args.set)
    more = {} if only_check else {"name": args.name, "request_id": args.request_id}
    if args.repo is not None:
        body: dict[str, Any] = {"parameters": parameters, "dry_run": only_check, **more}
        path = ("repositories", repository(args.repo), "workflows", args.file, "run")
        view = service.post(*path, body=body)
    else:
        workflow = read_workflow(args.file)
        workflow["parameters"] = {**workflow.get("parameters", {}), **parameters}
        workflow |= {name: text for name, text in more.items() if text is not None}
        body = {"workflow": workflow, "dry_run": only_check}
        view = service.post("workflows", body=body)
    if only_check:
        what = "a goal" if view["goal"] else f"{len(view['steps'])} steps"
        _print(args, view, lambda: [f"{view['name']}: {what}, nothing is wrong"])
        return 0
    if args.follow:
        note(f"workflow {view['id']} has begun")
        return _wait(service, args, view["id"])
    _print(args, view, lambda: [view["id"]])
    return 0


def _given(parameters: list[str]) -> dict[str, str]:
    given = {}
    for each in parameters:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--set {each}: has the form NAME=VALUE")
        given[name] = value
    return given


def _wait(service: Service, args: argparse.Namespace, name: str) -> int:
    body = {"timeout": args.timeout}
    answer = service.post("workflows", name, "wait", body=body)
    view = answer["workflow"]
    _print(args, view, lambda: detail(view))
    if answer["timed_out"]:
        note(f"not ended within {args.timeout}")
        return TIMED_OUT
    return 0 if view["state"] == "succeeded" else 1
