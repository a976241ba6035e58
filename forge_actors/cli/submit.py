"""`submit`: queue one job, or all the jobs of a file or none of them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from forge_actors.cli.prompts import add_prompt, prompt_of, read_bytes
from forge_actors.cli.verb import UsageError, note, origin, print_json, repository
from forge_actors.client.errors import InputRefused
from forge_actors.client.home import own_job
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse

HELP = "Queue one job and print its id, or a batch of jobs: all of them or none."
EXAMPLES = """\
  forge-actors submit --repo app --kind check --priority P1 --timeout 10m -- pytest -q
  forge-actors submit --agent claude --prompt-file task.md
  forge-actors submit --batch jobs.jsonl
"""
TAKES_COMMAND = True

#: Options whose text goes to the service as it is, under the same name.
_PLAIN = (
    "kind",
    "priority",
    "timeout",
    "queue_timeout",
    "admission_timeout",
    "idle_timeout",
    "request_id",
    "name",
    "provider",
    "unique",
    "replay",
    "max_attempts",
    "stop_signal",
    "grace",
    "nice",
    "memory",
    "pids",
    "after_job",
    "agent",
    "budget_cost",
    "budget_tokens",
    "isolate",
    "branch",
    "base",
)
#: Options that take words with commas between them.
_LISTS = ("effects", "authorised")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "forge-actors submit [options] -- COMMAND...\n"
        "       forge-actors submit [options] --agent NAME --prompt TEXT"
        " [-- MORE ARGUMENTS...]\n"
        "       forge-actors submit --batch FILE"
    )
    add = parser.add_argument
    add("--repo", help="name or path of the repository (default: the current folder)")
    add("--kind", help="what the job is (default: repository-command)")
    add("--priority", help="P0, most urgent, to P4 (default: P2)")
    add(
        "--claim",
        action="append",
        default=[],
        metavar="MODE:FAMILY[:REST]",
        help="what the job touches, for example read:path:src; repeatable",
    )
    add(
        "--after",
        action="append",
        default=[],
        metavar="JOB",
        help="start only when this job has succeeded; repeatable",
    )
    add("--timeout", metavar="TIME", help="how long it may run, for example 90s or 2h")
    add("--queue-timeout", metavar="TIME", help="how long it may wait for its start")
    add("--admission-timeout", metavar="TIME", help="how long until it is looked at")
    add("--idle-timeout", metavar="TIME", help="how long it may print nothing")
    add("--request-id", metavar="ID", help="the same id again gives the same job")
    add("--name", help="a name for people")
    add("--label", action="append", default=[], help="repeatable")
    add("--provider", metavar="NAME", help="take a token of this agent provider")
    add(
        "--unique", metavar="KEY", help="while a job with this key lives, give that one"
    )
    add("--read-only", action="store_true", help="the job changes nothing")
    add("--replay", metavar="never|safe|always", help="may it be started again?")
    add("--max-attempts", type=int, metavar="N", help="how often it may be started")
    add("--cwd", metavar="DIR", help="folder to run in")
    add(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the job; without a value, the one set here; repeatable",
    )
    add(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a secret the job gets as this variable, masked in its log; repeatable",
    )
    add("--stdin-file", metavar="FILE", help="the job reads this file as its input")
    add("--stop-signal", metavar="NAME", help="how to ask it to stop (SIGTERM)")
    add("--grace", metavar="TIME", help="time between that and the hard end (10s)")
    add(
        "--keep-leftovers",
        action="store_true",
        help="processes it leaves behind may live on",
    )
    add("--pty", action="store_true", help="give it a terminal (80x24), nobody types")
    add("--nice", type=int, metavar="N", help="step back behind others: 0 to 19")
    add("--memory", metavar="SIZE", help="memory it may use, like 2G: see doctor")
    add("--pids", type=int, metavar="N", help="processes and threads it may have")
    add(
        "--after-job",
        metavar="CMD",
        help="a shell command for its end, however it ends, at most 60 s",
    )
    add(
        "--artifact",
        action="append",
        default=[],
        metavar="GLOB",
        help="files of its folder to keep when it has ended; repeatable",
    )
    add(
        "--isolate",
        action="store_true",
        default=None,
        help="run it in a worktree of its own",
    )
    add(
        "--no-isolate",
        action="store_false",
        dest="isolate",
        help="never run it in one, even if it has to wait",
    )
    add("--branch", metavar="PATTERN", help="its branch there (forge/{job})")
    add("--base", metavar="REF", help="what that begins at (HEAD of the checkout)")
    add(
        "--agent",
        metavar="NAME[,NAME]",
        help="run this agent: claude, codex, copilot, ...; of several the first able",
    )
    add(
        "--budget-cost",
        type=float,
        metavar="USD",
        help="what that may cost, all attempts together",
    )
    add("--budget-tokens", type=int, metavar="N", help="the tokens that it may use")
    add(
        "--effects",
        metavar="NAME[,NAME]",
        help="what it does to the outside: push, pull_request, merge, release, ...",
    )
    add(
        "--origin",
        metavar="schedule:NAME|...",
        help="what asks for it if no person does: it is held back from effects",
    )
    add(
        "--authorise",
        dest="authorised",
        metavar="NAME[,NAME]",
        help="effects that you allow such a job",
    )
    prompt = parser.add_mutually_exclusive_group()
    add_prompt(prompt)
    prompt.add_argument(
        "from_input", nargs="?", choices=("-",), metavar="-", help="its prompt is stdin"
    )
    add("--batch", metavar="FILE", help="jobs as JSON lines; - reads standard input")


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.batch is not None:
        return _submit_batch(service, args)
    if not args.command and args.agent is None:
        raise UsageError("no command: put it behind --, as in: submit -- make test")
    try:
        request = _request(args)
        if (parent := _parent(service.home)) is not None:
            request["parent"] = parent
        answer = service.post("jobs", body={"jobs": [request]})
    except InputRefused as error:
        # There is one job, so its place among the jobs says nothing.
        message = str(error).removeprefix("jobs[0].").removeprefix("jobs[0]: ")
        field = error.field.removeprefix("jobs[0].")
        raise InputRefused(message, field, error.allowed) from None
    _print(answer["jobs"], args, answer["jobs"][0])
    return 0


def _submit_batch(service: Service, args: argparse.Namespace) -> int:
    if args.command:
        raise UsageError("--batch takes its commands from the file, not from behind --")
    query = [("base", os.getcwd())]
    parent = _parent(service.home)
    if parent is not None:
        query.append(("parent", json.dumps(parent)))
    answer = service.post_bytes(
        "batch", body=read_bytes(args.batch, "batch"), query=query
    )
    _print(answer["jobs"], args, answer["jobs"])
    return 0


def _parent(home: str) -> dict[str, object] | None:
    """The attempt that we are a part of, if it is one of this home's jobs."""
    job = own_job(home)
    attempt, fence = (os.environ.get(f"FORGE_{n}", "") for n in ("ATTEMPT", "FENCE"))
    if job is None or not (attempt.isdecimal() and fence.isdecimal()):
        return None
    return {"job": job, "attempt": int(attempt), "fence": int(fence)}


def _print(jobs: list[dict[str, Any]], args: argparse.Namespace, whole: object) -> None:
    for job in jobs:
        if job["existing"]:
            note(f"job {job['id']} was there already")
    if args.json:
        print_json(whole)
    else:
        print("\n".join(job["id"] for job in jobs))


def _request(args: argparse.Namespace) -> dict[str, object]:
    request: dict[str, object] = {
        "repo": os.getcwd() if args.repo is None else repository(args.repo),
        "argv": [_encode(part) for part in args.command or ()],
        "claims": args.claim,
        "after": args.after,
        "labels": args.label,
        "read_only": args.read_only,
        "keep_leftovers": args.keep_leftovers,
        "pty": args.pty,
        "origin": origin() if args.origin is None else args.origin,
        "env": dict(_variable(text) for text in args.env),
    }
    prompt = prompt_of(args, from_input=bool(args.from_input))
    if prompt is not None:
        request["prompt"] = prompt
    if args.secret:
        request["secrets"] = args.secret
    if args.artifact:
        request["artifacts"] = args.artifact
    for name in _PLAIN:
        value = getattr(args, name)
        if value is not None:
            request[name] = value
    for name in _LISTS:
        if (words := getattr(args, name)) is not None:
            request[name] = words.split(",")
    # Without --repo the command runs where it was typed.
    folder = os.getcwd() if args.repo is None and args.cwd is None else args.cwd
    if folder is not None:
        request["cwd"] = os.path.abspath(folder)
    if args.stdin_file is not None:
        request["stdin"] = os.path.abspath(args.stdin_file)
    for name, value in request.items():
        _check_text(name, value)
    return request


def _check_text(name: str, value: object) -> None:
    """Only arguments may be bytes that are no text; the rest travels as JSON."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput(name, "is no UTF-8 text") from None


def _encode(argument: str) -> str | dict[str, str]:
    """An argument as JSON can carry it: bytes that are no text as base64."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        import base64

        raw = argument.encode("utf-8", "surrogateescape")
        return {"b64": base64.b64encode(raw).decode("ascii")}
    return argument


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not name:
        raise InvalidInput("env", f"{text!r} is neither NAME=VALUE nor NAME")
    if not given:
        if name not in os.environ:
            raise InvalidInput("env", f"{name} is not set here; write {name}=VALUE")
        value = os.environ[name]
    return name, value
