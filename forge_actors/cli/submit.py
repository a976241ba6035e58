"""`submit`: queue one job, or all the jobs of a file or none of them."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forge_actors.cli.delegation import parent_of
from forge_actors.cli.job_options import add_job_options, check_texts, job_of
from forge_actors.cli.prompts import add_prompt, read_bytes
from forge_actors.cli.verb import UsageError, note, origin, print_json
from forge_actors.client.errors import InputRefused
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = "Queue one job and print its id, or a batch of jobs: all of them or none."
EXAMPLES = """\
  forge-actors submit --repo app --kind check --priority P1 --timeout 10m -- pytest -q
  forge-actors submit --agent claude --prompt-file task.md
  forge-actors submit --batch jobs.jsonl
"""
TAKES_COMMAND = True
#: Options of one job, which go to the service as they are.
_OWN = ("request_id", "name", "unique")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "forge-actors submit [options] -- COMMAND...\n"
        "       forge-actors submit [options] --agent NAME --prompt TEXT"
        " [-- MORE ARGUMENTS...]\n"
        "       forge-actors submit --template NAME [--set PARAMETER=VALUE ...]\n"
        "       forge-actors submit --batch FILE"
    )
    add = parser.add_argument
    add_job_options(parser)
    add(
        "--after",
        action="append",
        default=[],
        metavar="JOB",
        help="start only when this job has succeeded; repeatable",
    )
    add(
        "--input",
        action="append",
        default=[],
        metavar="JOB[:GLOB]",
        help="artifacts of this job, in the folder FORGE_INPUTS names, once it has"
        " succeeded; repeatable",
    )
    add("--request-id", metavar="ID", help="the same id again gives the same job")
    add("--name", help="a name for people")
    add(
        "--origin",
        metavar="schedule:NAME|...",
        help="what asks for it if no person does: it is held back from effects",
    )
    add(
        "--unique", metavar="KEY", help="while a job with this key lives, give that one"
    )
    prompt = parser.add_mutually_exclusive_group()
    add_prompt(prompt)
    prompt.add_argument(
        "from_input", nargs="?", choices=("-",), metavar="-", help="its prompt is stdin"
    )
    later = parser.add_mutually_exclusive_group()
    later.add_argument(
        "--at", metavar="TIME", help="at this time, such as 2026-01-02T03:04"
    )
    later.add_argument(
        "--in", dest="delay", metavar="TIME", help="after this time, such as 90m"
    )
    add("--template", metavar="TEMPLATE", help="the job of this template")
    add(
        "--set",
        action="append",
        default=[],
        metavar="PARAMETER=VALUE",
        help="what is put into a place of the template; repeatable",
    )
    add("--batch", metavar="FILE", help="jobs as JSON lines; - reads standard input")


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.batch is not None:
        return _submit_batch(service, args)
    if args.template is not None:
        return _submit_template(service, args)
    if args.set:
        raise UsageError("--set is for a --template")
    if not args.command and args.agent is None:
        raise UsageError("no command: put it behind --, as in: submit -- make test")
    if args.at is not None or args.delay is not None:
        return _submit_later(service, args)
    try:
        request = _request(args)
        if (parent := parent_of(service.home)) is not None:
            request["parent"] = parent
        answer = service.post("jobs", body={"jobs": [request]})
    except InputRefused as error:
        # There is one job, so its place among the jobs says nothing.
        message = str(error).removeprefix("jobs[0].").removeprefix("jobs[0]: ")
        field = error.field.removeprefix("jobs[0].")
        raise InputRefused(message, field, error.allowed) from None
    _print(answer["jobs"], args, answer["jobs"][0])
    return 0


def _submit_later(service: Service, args: argparse.Namespace) -> int:
    """As a schedule that comes once, which is forgotten with the end of its job."""
    for option in (*_OWN, "after", "input"):
        if getattr(args, option):
            name = option.replace("_", "-")
            raise UsageError(f"--{name} cannot be given with --at or --in")
    request = job_of(args, from_input=bool(args.from_input))
    repo = request.pop("repo")
    at = args.at
    if at is None:
        # Not for others: it loads what jobs are made of.
        from forge_actors.domain.deadlines import parse_duration

        moment = time.time() + parse_duration(args.delay, field="in")
        at = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    body = {
        "name": f"once-{os.urandom(6).hex()}",
        "repo": repo,
        "job": {name: value for name, value in request.items() if value},
        "at": at,
        "transient": True,
    }
    view = service.post("schedules", body=body)
    if args.json:
        print_json(view)
    else:
        print(view["name"])
        note(f"its job comes at {view['next']}; see forge-actors schedule list")
    return 0


def _submit_template(service: Service, args: argparse.Namespace) -> int:
    if args.command:
        raise UsageError("--template has a command of its own: give none behind --")
    if args.at is not None or args.delay is not None:
        raise UsageError("--at and --in cannot be given with --template")
    request = _request(args)
    body: dict[str, object] = {
        "repo": request.pop("repo"),
        "values": dict(map(_setting, args.set)),
        "origin": request.pop("origin"),
    }
    request.pop("cwd", None)
    body["job"] = {name: value for name, value in request.items() if value}
    if (parent := parent_of(service.home)) is not None:
        body["parent"] = parent
    accepted = service.post("templates", args.template, "submit", body=body)
    _print([accepted], args, accepted)
    return 0


def _setting(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not (name and given):
        raise UsageError(f"--set {text!r} is no PARAMETER=VALUE")
    return name, value


def _submit_batch(service: Service, args: argparse.Namespace) -> int:
    if args.command:
        raise UsageError("--batch takes its commands from the file, not from behind --")
    query = [("base", os.getcwd())]
    parent = parent_of(service.home)
    if parent is not None:
        query.append(("parent", json.dumps(parent)))
    answer = service.post_bytes(
        "batch", body=read_bytes(args.batch, "batch"), query=query
    )
    _print(answer["jobs"], args, answer["jobs"])
    return 0


def _print(jobs: list[dict[str, Any]], args: argparse.Namespace, whole: object) -> None:
    for job in jobs:
        if job["existing"]:
            note(f"job {job['id']} was there already")
    if args.json:
        print_json(whole)
    else:
        print("\n".join(job["id"] for job in jobs))


def _request(args: argparse.Namespace) -> dict[str, object]:
    request = job_of(args, from_input=bool(args.from_input))
    asked_by = origin() if args.origin is None else args.origin
    request |= {"after": args.after, "origin": asked_by}
    if args.input:
        request["inputs"] = args.input
    given = {name: getattr(args, name) for name in _OWN}
    request |= {name: value for name, value in given.items() if value is not None}
    check_texts(request)
    return request
